/**
 * Plays one history of real processes over PostgreSQL, whose connections break. `npm run histories -- --store postgres` plays a longer
 * one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { inject } from "vitest";
import { counted, type Happened, isRich, play, told } from "../../scripts/histories/Playing.ts";
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
        const given = { seed, processes: 3, seconds: 12, until: (so: Happened) => isRich(so, true) };
        const played = yield* play(given, { store, proxy });
        assert.deepStrictEqual(told(played), [], `HISTORY_SEED=${seed}`);
        assert.isTrue(isRich(played, true), `HISTORY_SEED=${seed}: ${counted(played)}`);
      }).pipe(Effect.scoped),
    240_000,
  );
});
