/**
 * Makes folders and layers for tests of the SQL recorder.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Clock, Context, Effect, Layer, type Scope } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import * as SqlClients from "effect/sql/SqlClient";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder, writeTogetherOf } from "../../../src/recorder/RunRecorder.ts";
import { type SqlFileOptions, SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as SqlNodeSqlite from "../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts";
import type { Recorder } from "../suite/Bench.ts";

/** A folder that goes with the scope. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "recorder-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
);

/** The path of a store that is not there yet. */
export const emptyPath: Effect.Effect<string, never, Scope.Scope> = Effect.map(folder, (path) => join(path, "runs.db"));

/** What differs in the world of one process. */
export interface World {
  /** Its wall clock goes ahead of the test's by so many milliseconds. */
  readonly ahead?: () => number;
  /** Whether nothing that waits in it goes on any more: it was killed, or is frozen. */
  readonly stopped?: () => boolean;
}

/** A recorder of its own, as another process has it. */
export const open = (
  options: SqlFileOptions,
  { ahead = () => 0, stopped = () => false }: World = {},
): Effect.Effect<Recorder, RecorderError, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const own: Clock.Clock = {
      currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() + ahead()),
      currentTimeNanos: clock.currentTimeNanos,
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + ahead(),
      currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      sleep: (duration) =>
        Effect.andThen(
          clock.sleep(duration),
          Effect.suspend(() => (stopped() ? Effect.never : Effect.void)),
        ),
    };
    const layer = Layer.fresh(SqlRunRecorder.layerFile({ retention: false, ...options }));
    return Context.get(yield* Effect.provideService(Layer.build(layer), Clock.Clock, own), RunRecorder);
  });

/**
 * Writes entries together with those of others: whether they are on record. Undefined where the recorder does not take them.
 */
export const together = (
  recorder: object,
  runId: string,
  entries: ReadonlyArray<Entry>,
): Effect.Effect<boolean | undefined> =>
  Effect.callback((resume) => {
    const taken = writeTogetherOf(recorder)?.(runId, entries, (isOnRecord) => resume(Effect.succeed(isOnRecord)));
    if (taken !== true) resume(Effect.undefined);
  });

/** A recorder beside the client that it uses: whatever is done to the client's connection is done to the recorder's. */
export const openWithClient = (
  options: SqlFileOptions & { readonly file: string },
): Effect.Effect<{ readonly recorder: Recorder; readonly sql: SqlClient }, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const layer = SqlRunRecorder.layer({ retention: false, place: options.file, ...options });
    const both = yield* Layer.build(Layer.fresh(Layer.provideMerge(layer, SqlNodeSqlite.layer(options))));
    return { recorder: Context.get(both, RunRecorder), sql: Context.get(both, SqlClients.SqlClient) };
  });
