/**
 * Plays histories of real processes over a SQLite file. `npm run histories -- --store sqlite --seconds 120` plays a longer one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { formatProblems, type Happened, isRich, play, summarize } from "../../scripts/histories/Playing.ts";
import * as Folder from "../recorder/sql/SqlFolder.ts";
import { again, processes, seeds } from "./Seeds.ts";

describe("Processes over one SQLite file that are stopped and killed", () => {
  for (const seed of seeds) {
    it.live(`were told what the file holds, from seed ${seed}`, () =>
      Effect.gen(function* () {
        const place = { store: yield* Folder.emptyPath };
        const given = { seed, processes, seconds: 12, until: (so: Happened) => isRich(so, place) };
        const played = yield* play(given, place);
        console.log(`seed ${seed}, sqlite: ${summarize(played)}`);
        assert.deepStrictEqual(formatProblems(played), [], again(seed, "sqlite"));
        assert.isTrue(isRich(played, place), `${again(seed, "sqlite")}: ${summarize(played)}`);
      }).pipe(Effect.scoped),
    );
  }
});
