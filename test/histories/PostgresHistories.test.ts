/**
 * Plays one history of real processes over PostgreSQL, whose connections break. `npm run histories -- --store postgres` plays a longer
 * one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { inject } from "vitest";
import { play } from "../../scripts/histories/Playing.ts";
import * as SocketProxy from "../../scripts/postgres/SocketProxy.ts";
import * as Databases from "../recorder/postgres/Databases.ts";

const seed = Number(process.env.HISTORY_SEED ?? 20_261_123);

describe("Processes over one PostgreSQL that are stopped, killed and cut off", () => {
  it.live(
    `were told what the server holds, from seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const socket = inject("postgresSocket");
        const proxy = yield* SocketProxy.make(socket);
        const store = (yield* Databases.empty).replace(encodeURIComponent(socket), encodeURIComponent(proxy.socket));
        const played = yield* play({ seed, processes: 3, seconds: 12 }, { store, proxy });
        assert.deepStrictEqual(played.problems, [], `HISTORY_SEED=${seed}`);
        // A history in which nothing was taken, refused, killed or cut proves nothing.
        assert.isAbove(played.operations.filter(({ outcome }) => outcome === "ok").length, 30);
        assert.isAbove(played.operations.filter(({ reason }) => reason === "owned" || reason === "fenced").length, 5);
        assert.isAbove(played.kills, 0);
        assert.isAbove(played.resets, 0);
      }).pipe(Effect.scoped),
    120_000,
  );
});
