/**
 * Opens the run store of a command and reports its problems in one line.
 */
import { existsSync } from "node:fs";
import { Console, Effect, Option } from "effect";
import { Flag } from "effect/cli";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { type Retention, resolveRetention } from "../../recorder/retention/Retention.ts";
import { defaultFile } from "../../recorder/sql/sqlite/SqlFile.ts";
import * as RunStore from "../../recorder/store/RunStore.ts";
import * as Screen from "../terminal/Screen.ts";
import { type CommandFailed, failing } from "./CommandFailed.ts";

/** Describes the problem with a store name; undefined if it is valid. */
export const storeNameProblem = (name: string): string | undefined => {
  const problem = RunStore.findProblem(name);
  return problem === undefined ? undefined : `--db: ${problem}`;
};

/** Error for a command that needs runs of an earlier process but was given `--db memory`. */
export const memoryHoldsNothing =
  "--db memory: this command cannot read the memory of another process; name a file or postgres://…";

/** The flag that selects the store. */
export const dbFlag = Flag.String("db").pipe(
  Flag.withDescription(
    "SQLite file with the runs, or postgres://… (default: $STREAM_RECOVERY_DB, else runs.db in the user's state folder)",
  ),
  Flag.withMetavar("file"),
  Flag.optional,
);

/** The retention flags. */
export const keptFlags = { keepRuns: "--keep-runs", keepRunsMax: "--keep-runs-max" } as const;

/** The environment variables that set retention for every program that shares a store. */
const keptVariables = { keepRuns: "STREAM_RECOVERY_KEEP_RUNS", keepRunsMax: "STREAM_RECOVERY_KEEP_RUNS_MAX" } as const;

/**
 * Reads the retention of a command that writes runs. Such a command has no flags for it and uses the gateways' variables. Every program
 * prunes the shared store by its own setting, so a different setting would delete runs that the others keep.
 */
export const readRetention = (): Required<Retention> | string => {
  // An empty variable counts as unset.
  const [keepRuns, most] = [process.env[keptVariables.keepRuns] || undefined, process.env[keptVariables.keepRunsMax]];
  const retention = resolveRetention({ keepRuns, keepRunsMax: most ? Number(most) : undefined });
  return "expected" in retention ? `$${keptVariables[retention.name]}: ${retention.expected}` : retention;
};

/** The flag for machine-readable output. */
export const jsonFlag = Flag.Boolean("json").pipe(
  Flag.withDescription("Print JSON instead of text"),
  Flag.withDefault(false),
);

/**
 * Opens the store of a command and runs the command on it. The store must exist, unless `makes` is true.
 *
 * @param command the command's name, printed before an error
 * @param db the `--db` value
 * @param body the command; a `RecorderError` exits with code 3
 * @param makes true to create a missing file
 */
export const withStore = <R>(
  command: string,
  db: Option.Option<string>,
  body: (screen: Screen.Screen) => Effect.Effect<void, CommandFailed | RecorderError, R>,
  makes = false,
): Effect.Effect<void, CommandFailed, Exclude<R, RunRecorder>> =>
  Effect.gen(function* () {
    const fail = failing(command);
    const file = Option.getOrUndefined(db) ?? defaultFile();
    if (file === RunStore.inMemory) return yield* fail("refused", memoryHoldsNothing);
    const foreign = storeNameProblem(file);
    if (foreign !== undefined) return yield* fail("refused", foreign);
    if (!makes && !RunStore.isServer(file) && !existsSync(file)) {
      return yield* fail("negative", `no run is on record: ${file} does not exist`);
    }
    const screen = yield* Screen.make(Option.getOrUndefined(db));
    return yield* body(screen).pipe(
      Effect.provide(layerOf(file)),
      Effect.catchTag("RecorderError", (error) => fail("store", errorText(error, file))),
    );
  });

/**
 * Lease of a command, in milliseconds. A process watches a silent owner for at least the duration of its own lease, so a command's lease is
 * short.
 */
const leaseMs = 1_000;

/** Retention is off, because a command that only reads must not delete runs. */
const layerOf = (file: string) => RunStore.layer({ file, leaseMs, retention: false });

/** Delay before a waiting command explains why, in milliseconds. */
const silentMs = 300;

/**
 * Runs an effect that may wait for a silent process, and explains a longer wait on stderr. Runs are taken over only after their owner was
 * watched for a whole lease, because the clock of another machine cannot prove that the owner is gone.
 *
 * @param lately message if no process is silent yet but one may have just died; if omitted, nothing is printed in that case
 */
export const withWaitNotice = <A, E, R>(
  command: string,
  waits: Effect.Effect<A, E, R>,
  lately?: string,
): Effect.Effect<A, E, R | RunRecorder> => {
  const line = "the process that owns a run is silent; waiting for the length of its lease to see whether it is gone";
  const announceWait = Effect.gen(function* () {
    yield* Effect.sleep(silentMs);
    const silent = yield* (yield* RunRecorder).orphans(1, { waits: false });
    const said = silent.length > 0 ? line : lately;
    if (said !== undefined) yield* Console.error(`${command}: ${said}`);
  });
  return Effect.scoped(Effect.andThen(Effect.forkScoped(Effect.ignore(announceWait)), waits));
};

/** Describes a store error in one line. */
export const errorText = ({ message, reason }: RecorderError, file: string): string =>
  // A server's error message already names the server; adding the address would only make it longer.
  RunStore.isServer(file) || message.includes(file) ? message : `${file}: ${message === "" ? reason : message}`;
