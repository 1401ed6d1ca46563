/**
 * Opens the store of runs that a command works on, and says in one line what is wrong with it.
 */
import { existsSync } from "node:fs";
import { Console, Effect, Option } from "effect";
import { Flag } from "effect/cli";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { type Retention, retentionOf } from "../../recorder/retention/Retention.ts";
import { defaultFile } from "../../recorder/sql/sqlite/SqlFile.ts";
import * as RunStore from "../../recorder/store/RunStore.ts";
import * as Screen from "../terminal/Screen.ts";
import { type CommandFailed, failing } from "./CommandFailed.ts";

/** Why the `--db` that was typed, or what stands in its place, is none of a store; undefined where it is one. */
export const foreignStore = (name: string): string | undefined => {
  const problem = RunStore.problem(name);
  return problem === undefined ? undefined : `--db: ${problem}`;
};

/** What is said where a command is about what an earlier process has left. */
export const memoryHoldsNothing = "--db memory holds nothing here: name a file or postgres://…";

/** The flag that names the store. */
export const dbFlag = Flag.String("db").pipe(
  Flag.withDescription(
    "SQLite file with the runs, or postgres://… (default: $STREAM_RECOVERY_DB, else runs.db in the user's state folder)",
  ),
  Flag.withMetavar("file"),
  Flag.optional,
);

/** The flags that say how long runs are kept. */
export const keptFlags = { keepRuns: "--keep-runs", keepRunsMax: "--keep-runs-max" } as const;

/** The variables that say so to all programs of a store. */
const keptVariables = { keepRuns: "STREAM_RECOVERY_KEEP_RUNS", keepRunsMax: "STREAM_RECOVERY_KEEP_RUNS_MAX" } as const;

/**
 * Which ended runs a command forgets that writes runs itself. It has no flags for it, and reads what gateways read: each program over a
 * store forgets by its own word, so that one with another word would forget what the others keep.
 */
export const retentionByVariables = (): Required<Retention> | string => {
  // An empty variable says nothing.
  const [keepRuns, most] = [process.env[keptVariables.keepRuns] || undefined, process.env[keptVariables.keepRunsMax]];
  const retention = retentionOf({ keepRuns, keepRunsMax: most ? Number(most) : undefined });
  return "expected" in retention ? `$${keptVariables[retention.name]}: ${retention.expected}` : retention;
};

/** The flag for machines. */
export const jsonFlag = Flag.Boolean("json").pipe(
  Flag.withDescription("Print JSON instead of words"),
  Flag.withDefault(false),
);

/**
 * Runs a command on a store that exists.
 *
 * @param command the command's name, which begins its errors
 * @param db the file that was typed
 * @param body what to do; a `RecorderError` of it ends the command with exit code 3
 * @param makes whether a file that is not there is made
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
    const foreign = foreignStore(file);
    if (foreign !== undefined) return yield* fail("refused", foreign);
    if (!makes && !RunStore.isServer(file) && !existsSync(file)) {
      return yield* fail("negative", `no run is on record: ${file} does not exist`);
    }
    const screen = yield* Screen.make(Option.getOrUndefined(db));
    return yield* body(screen).pipe(
      Effect.provide(layerOf(file)),
      Effect.catchTag("RecorderError", (error) => fail("store", said(error, file))),
    );
  });

/** Lease of a command, in milliseconds: it is short, so that a process that had a short lease is not watched for longer. */
const leaseMs = 1_000;

/** A command that only looks forgets nothing: retention is for programs that write. */
const layerOf = (file: string) => RunStore.layer({ file, leaseMs, retention: false });

/** After so many milliseconds a command says what it waits for. */
const silentMs = 300;

/**
 * Says on stderr, when it takes longer, that a command waits for a silent process: its runs are taken over only when it was
 * watched for as long as its lease is, because no clock of another machine proves that it is gone.
 *
 * @param lately what is said where no process is silent yet and one may have died just now; without it nothing is
 */
export const toldToWait = <A, E, R>(
  command: string,
  waits: Effect.Effect<A, E, R>,
  lately?: string,
): Effect.Effect<A, E, R | RunRecorder> => {
  const line = "a process that drove a run is silent; waiting as long as its lease is, to see whether it is gone";
  const told = Effect.gen(function* () {
    yield* Effect.sleep(silentMs);
    const silent = yield* (yield* RunRecorder).orphans(1, { waits: false });
    const said = silent.length > 0 ? line : lately;
    if (said !== undefined) yield* Console.error(`${command}: ${said}`);
  });
  return Effect.scoped(Effect.andThen(Effect.forkScoped(Effect.ignore(told)), waits));
};

/** What is wrong with a store, in one line. */
export const said = ({ message, reason }: RecorderError, file: string): string =>
  // A server is told by its own name, which an address says in more words.
  RunStore.isServer(file) || message.includes(file) ? message : `${file}: ${message === "" ? reason : message}`;
