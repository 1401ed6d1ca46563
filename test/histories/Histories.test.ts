/**
 * Plays one history of real processes over a SQLite file. `npm run histories -- --store sqlite --seconds 120` plays a longer one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { counted, type Happened, isRich, play, told } from "../../scripts/histories/Playing.ts";
import * as Folder from "../recorder/sql/SqlFolder.ts";

const seed = Number(process.env.HISTORY_SEED ?? 20_261_123);

describe("Processes over one SQLite file that are stopped and killed", () => {
  it.live(
    `were told what the file holds, from seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const store = yield* Folder.emptyPath;
        const given = { seed, processes: 3, seconds: 12, until: (so: Happened) => isRich(so, false) };
        const played = yield* play(given, { store });
        assert.deepStrictEqual(told(played), [], `HISTORY_SEED=${seed}`);
        assert.isTrue(isRich(played, false), `HISTORY_SEED=${seed}: ${counted(played)}`);
      }).pipe(Effect.scoped),
    240_000,
  );
});
