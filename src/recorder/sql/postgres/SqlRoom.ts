/** Checks that the server's disk has room for a run. Even on a full disk, a short change fits into an existing page. */
import * as Data from "effect/Data";
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";

/** Length of the row, in characters: at least that of a run, and short enough to stay in its page. */
const recordCharacters = 1_800;

interface Tables {
  readonly runs: Fragment;
  readonly sql: SqlClient;
}

class TakenBack extends Data.TaggedError("TakenBack") {}

/** Inserts a run's row in a transaction and rolls it back. No real run has the number of this row. */
export const tryInsert = ({ runs, sql }: Tables): Effect.Effect<void, SqlError> =>
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
