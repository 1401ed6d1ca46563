/**
 * Finds out whether the server's disk has room for a run. A page that is there already takes a short change on a full disk too.
 */
import * as Data from "effect/Data";
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";

/** How long the row is: no shorter than that of a run, and short enough to stand in its page. */
const recordCharacters = 1_800;

/** The table of runs, and who asks. */
interface Tables {
  readonly runs: Fragment;
  readonly sql: SqlClient;
}

class TakenBack extends Data.TaggedError("TakenBack") {}

/** Writes a run's row within a transaction and takes it back. Its number is none of a run's. */
export const tried = ({ runs, sql }: Tables): Effect.Effect<void, SqlError> =>
  sql
    .withTransaction(
      Effect.andThen(
        sql`INSERT INTO ${runs} (seq, run_id, version, state, provider, model, started_at, broken, record)
          OVERRIDING SYSTEM VALUE
          VALUES (0, '', 1, 'live', '', '', 0, 0, ${"x".repeat(recordCharacters)})`,
        new TakenBack(),
      ),
    )
    .pipe(Effect.catchTag("TakenBack", () => Effect.void));
