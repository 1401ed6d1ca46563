/** Whose requests of one `fetch` share a cooldown. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { pathOf } from "../../../src/adapters/fetch/FetchRecovery.ts";

const url = "https://api.example.com:8443/v1/messages?beta=true";

describe("the path of a request that fetch sends", () => {
  it.effect("is its origin, with a digest of its own credential and no way to be asked", () =>
    Effect.gen(function* () {
      const of = (key: string) => Effect.promise(() => pathOf({ url, headers: [["x-api-key", key]] }));
      const one = yield* of("SECRET");
      assert.deepStrictEqual(Object.keys(one), ["id", "credential"]);
      assert.strictEqual(one.id, "https://api.example.com:8443");
      assert.match(one.credential ?? "", /^[0-9a-f]{32}$/);
      assert.deepStrictEqual(yield* of("SECRET"), one);
      assert.notDeepEqual(yield* of("other"), one);
      assert.deepStrictEqual(yield* Effect.promise(() => pathOf({ url, headers: [] })), { id: one.id });
    }),
  );
});
