/**
 * `stream-recovery runs prune`: deletes ended runs.
 */
import { Clock, Console, Effect, Option, Stream } from "effect";
import { Command, Flag } from "effect/cli";
import { streamRuns, waitingRuns } from "../../recorder/RunPages.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { type PruneQuery, RunRecorder } from "../../recorder/RunRecorder.ts";
import { parseDuration } from "../../recorder/retention/Duration.ts";
import * as CrashRecovery from "../../runtime/crash/CrashRecovery.ts";
import { exitCodesHelp, failing } from "../command/CommandFailed.ts";
import { dbFlag, jsonFlag, withStore } from "../command/Store.ts";

/** Deletes ended runs by age or number. With `--give-up`, it first ends runs that have waited for too long. */
export const pruneCommand = Command.make(
  "prune",
  {
    db: dbFlag,
    olderThan: Flag.String("older-than").pipe(
      Flag.withDescription("Delete runs that ended longer ago than this: 30d, 12h, 2w"),
      Flag.optional,
    ),
    keep: Flag.Int("keep").pipe(
      Flag.withDescription("Maximum ended runs to keep; the newest stay"),
      Flag.filter(
        (keep) => keep >= 0,
        (keep) => `Expected 0 or more, got ${keep}`,
      ),
      Flag.optional,
    ),
    giveUp: Flag.String("give-up").pipe(
      Flag.withDescription(
        "First end runs without an owner that began longer ago than this and wait to be resumed by a program or for an answer",
      ),
      Flag.optional,
    ),
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Only print how many runs would be deleted"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
  },
  ({ db, ...options }) => withStore("runs prune", db, () => prune(options)),
).pipe(
  Command.withDescription(
    `Delete ended runs by age, by count, or by both. A run that has not ended is never deleted; --give-up ends it first.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Delete ended runs by age or count"),
  Command.withExamples([
    {
      command: "stream-recovery runs prune --older-than 30d --dry-run",
      description: "Count the runs that would be deleted",
    },
  ]),
);

interface PruneOptions {
  readonly olderThan: Option.Option<string>;
  readonly keep: Option.Option<number>;
  readonly giveUp: Option.Option<string>;
  readonly dryRun: boolean;
  readonly json: boolean;
}

const fail = failing("runs prune");

/** Ends abandoned runs and deletes ended ones. With `--dry-run`, it only counts both. */
export const prune = Effect.fn("cli.runs.prune")(function* (options: PruneOptions) {
  const { dryRun, giveUp, json, keep, olderThan } = options;
  if (Option.isNone(olderThan) && Option.isNone(keep) && Option.isNone(giveUp)) {
    return yield* fail("refused", "expected at least one of --older-than 30d, --keep 1000, --give-up 30d");
  }
  const now = yield* Clock.currentTimeMillis;
  const endedBefore = yield* subtractDuration("--older-than", olderThan, now);
  const begunBefore = yield* subtractDuration("--give-up", giveUp, now);
  const ended = begunBefore === undefined ? undefined : yield* endWaitingRuns(begunBefore, dryRun);
  const query: PruneQuery = {
    ...(endedBefore === undefined ? {} : { endedBefore }),
    ...(Option.isSome(keep) ? { keep: keep.value } : {}),
  };
  const forgets = endedBefore !== undefined || Option.isSome(keep);
  const count = forgets ? yield* dryRun ? countPrunable(query) : (yield* RunRecorder).prune(query) : 0;
  const givenUp = ended === undefined ? {} : { given_up: ended };
  if (json) return yield* Console.log(JSON.stringify({ dry_run: dryRun, runs: count, ...givenUp }));
  if (ended !== undefined) {
    const waiting = ended === 1 ? "one waiting run" : `${ended} waiting runs`;
    yield* Console.log(dryRun ? `${waiting} would be ended` : `ended ${waiting}`);
  }
  const runs = count === 1 ? "one ended run" : `${count} ended runs`;
  if (forgets) yield* Console.log(dryRun ? `${runs} would be deleted` : `deleted ${runs}`);
});

/** Subtracts a given duration from the current time; undefined if the flag is missing. */
const subtractDuration = (flag: string, given: Option.Option<string>, now: number) => {
  if (Option.isNone(given)) return Effect.undefined;
  const age = parseDuration(given.value);
  return age === undefined
    ? fail("refused", `${flag}: expected a duration, for example 30d, 12h or 2w`)
    : Effect.succeed(now - age);
};

/** Ends the waiting runs that started before a time. Skips runs that a process has resumed since then. */
const endWaitingRuns = Effect.fnUntraced(function* (begunBefore: number, dryRun: boolean) {
  const recorder = yield* RunRecorder;
  const isGivenUp = ({ parked, started_at }: RunRecord) => parked !== undefined && started_at < begunBefore;
  const old = Stream.filter(waitingRuns(recorder), isGivenUp);
  const waiting = yield* Stream.runCollect(Stream.map(old, ({ run_id }) => run_id));
  if (dryRun) return waiting.length;
  const ended = yield* Effect.forEach(waiting, (runId) =>
    Effect.as(CrashRecovery.giveUp(runId), 1).pipe(
      Effect.catchTag("AnswerRefused", () => Effect.succeed(0)),
      Effect.catchIf(isElsewhere, () => Effect.succeed(0)),
    ),
  );
  return ended.reduce<number>((sum, one) => sum + one, 0);
});

const isElsewhere = ({ reason }: { readonly reason: string }): boolean =>
  reason === "owned" || reason === "fenced" || reason === "run_ended" || reason === "unknown_run";

/** Counts the runs that `RunRecorder.prune` would delete, because they ended too long ago or are not among the `keep` newest. */
const countPrunable = Effect.fnUntraced(function* ({ endedBefore, keep }: PruneQuery) {
  const isOld = ({ end }: RunRecord) => endedBefore !== undefined && (end?.at ?? 0) < endedBefore;
  const { all, old } = yield* Stream.runFold(
    streamRuns(yield* RunRecorder, { state: "ended" }),
    () => ({ all: 0, old: 0 }),
    (so, run) => ({ all: so.all + 1, old: so.old + (isOld(run) ? 1 : 0) }),
  );
  // Both sets consist of the runs that ended first, so the larger set contains the smaller one.
  return Math.max(old, keep === undefined ? 0 : all - keep);
});
