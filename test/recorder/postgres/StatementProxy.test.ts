/** The statements that the proxy of these tests recognises. A test that waits for a misread statement would wait forever. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

describe("the proxy between a recorder and its server", () => {
  it.live("recognises a statement that is bound again, with any bytes in its parameters", () =>
    Effect.gen(function* () {
      const proxy = yield* StatementProxy.make(yield* Databases.empty);
      const client = yield* Databases.client(proxy.address);
      // The bytes of an epoch, which is a time, may look like the head of another message: a P, four bytes, and two texts.
      const asked = (epoch: bigint) => client`SELECT ${epoch}::bigint AS epoch, ${4}::int AS lines`;
      const epochs = [1n, 0x50n, 0x5011n, 0x6_5050_1122n, 0x6_5050_5050n];
      for (const epoch of epochs) yield* asked(epoch);
      assert.lengthOf(
        proxy.statements.filter((sql) => sql.startsWith("SELECT $1::bigint")),
        epochs.length,
      );
    }).pipe(Effect.scoped),
  );
});
