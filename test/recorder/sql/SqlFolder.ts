/**
 * Creates folders and layers for tests of the SQL recorder.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Clock, Context, Effect, Layer, type Scope } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import * as SqlClients from "effect/sql/SqlClient";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { type SqlFileOptions, SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as SqlNodeSqlite from "../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts";
import { take } from "../Committing.ts";
import type { Recorder } from "../suite/Bench.ts";

/** A temporary folder for the duration of the scope. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "recorder-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
);

/** The path of a store that does not exist yet. */
export const emptyPath: Effect.Effect<string, never, Scope.Scope> = Effect.map(folder, (path) => join(path, "runs.db"));

/** The special conditions of one process. */
export interface World {
  /** The lead of its wall clock over the test's, in milliseconds. */
  readonly ahead?: () => number;
  /** Returns true while its waits must not end, because it was killed or is frozen. */
  readonly stopped?: () => boolean;
}

/** A separate recorder, like that of another process. */
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
 * Writes entries in a group and returns true if they are on record; undefined if the recorder does not take them.
 */
export const together = (
  recorder: Recorder,
  runId: string,
  entries: ReadonlyArray<Entry>,
): Effect.Effect<boolean | undefined> =>
  Effect.callback((resume) => {
    const taken = take(recorder, runId, entries, (isOnRecord) => resume(Effect.succeed(isOnRecord)));
    if (!taken) resume(Effect.undefined);
  });

/** A recorder with the client that it uses, so that a test can act on the recorder's own connection. */
export const openWithClient = (
  options: SqlFileOptions & { readonly file: string },
): Effect.Effect<{ readonly recorder: Recorder; readonly sql: SqlClient }, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const layer = SqlRunRecorder.layer({ retention: false, place: options.file, ...options });
    const both = yield* Layer.build(Layer.fresh(Layer.provideMerge(layer, SqlNodeSqlite.layer(options))));
    return { recorder: Context.get(both, RunRecorder), sql: Context.get(both, SqlClients.SqlClient) };
  });
