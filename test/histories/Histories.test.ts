/**
 * Plays one history of real processes over a SQLite file. `npm run histories -- --store sqlite --seconds 120` plays a longer one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { play } from "../../scripts/histories/Playing.ts";
import * as Folder from "../recorder/sql/SqlFolder.ts";

const seed = Number(process.env.HISTORY_SEED ?? 20_261_123);

describe("Processes over one SQLite file that are stopped and killed", () => {
  it.live(
    `were told what the file holds, from seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const store = yield* Folder.emptyPath;
        const { kills, operations, problems } = yield* play({ seed, processes: 3, seconds: 12 }, { store });
        assert.deepStrictEqual(problems, [], `HISTORY_SEED=${seed}`);
        // A history in which nothing was taken, refused or killed proves nothing.
        assert.isAbove(operations.filter(({ outcome }) => outcome === "ok").length, 30);
        assert.isAbove(operations.filter(({ reason }) => reason === "owned" || reason === "fenced").length, 5);
        assert.isAbove(kills, 0);
      }).pipe(Effect.scoped),
    120_000,
  );
});
