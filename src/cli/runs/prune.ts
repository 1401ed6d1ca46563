/**
 * `stream-recovery runs prune`: forgets ended runs.
 */
import { Clock, Console, Effect, Option } from "effect";
import { Command, Flag } from "effect/cli";
import { type PruneQuery, RunRecorder } from "../../recorder/RunRecorder.ts";
import { exitCodesHelp, failing } from "../Outcome.ts";
import { dbFlag, jsonFlag, withStore } from "../Store.ts";
import { parseDuration } from "../When.ts";

/** `runs prune`. */
export const pruneCommand = Command.make(
  "prune",
  {
    db: dbFlag,
    olderThan: Flag.String("older-than").pipe(
      Flag.withDescription("Forget runs that ended longer ago than this: 30d, 12h, 2w"),
      Flag.optional,
    ),
    keep: Flag.Int("keep").pipe(
      Flag.withDescription("Keep at most so many ended runs, the newest"),
      Flag.filter(
        (keep) => keep >= 0,
        (keep) => `Expected 0 or more, got ${keep}`,
      ),
      Flag.optional,
    ),
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Only say how many would be forgotten"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
  },
  ({ db, ...options }) => withStore("runs prune", db, () => prune(options)),
).pipe(
  Command.withDescription(
    `Forget ended runs by age, by count, or by both; a run that has not ended is never forgotten.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Forget ended runs by age or count"),
  Command.withExamples([
    { command: "stream-recovery runs prune --older-than 30d --dry-run", description: "How many that would be" },
  ]),
);

interface PruneOptions {
  readonly olderThan: Option.Option<string>;
  readonly keep: Option.Option<number>;
  readonly dryRun: boolean;
  readonly json: boolean;
}

const fail = failing("runs prune");

/** Forgets, or counts what would be forgotten. */
export const prune = Effect.fn("cli.runs.prune")(function* ({ dryRun, json, keep, olderThan }: PruneOptions) {
  if (Option.isNone(olderThan) && Option.isNone(keep)) {
    return yield* fail("refused", "say what to forget: --older-than 30d, --keep 1000");
  }
  const age = Option.isSome(olderThan) ? parseDuration(olderThan.value) : 0;
  if (age === undefined) return yield* fail("refused", "--older-than: expected a duration like 30d, 12h or 2w");
  const query: PruneQuery = {
    ...(Option.isSome(olderThan) ? { endedBefore: (yield* Clock.currentTimeMillis) - age } : {}),
    ...(Option.isSome(keep) ? { keep: keep.value } : {}),
  };
  const count = yield* dryRun ? counted(query) : (yield* RunRecorder).prune(query);
  if (json) return yield* Console.log(JSON.stringify({ dry_run: dryRun, runs: count }));
  const runs = count === 1 ? "one ended run" : `${count} ended runs`;
  yield* Console.log(dryRun ? `${runs} would be forgotten` : `forgot ${runs}`);
});

const page = 500;

/** What `RunRecorder.prune` would forget, by its own words: too old, or behind the newest that are kept. */
const counted = Effect.fnUntraced(function* ({ endedBefore, keep }: PruneQuery) {
  const recorder = yield* RunRecorder;
  let before: string | undefined;
  let index = 0;
  let count = 0;
  while (true) {
    const runs = yield* recorder.runs({ state: "ended", limit: page, ...(before === undefined ? {} : { before }) });
    for (const { end } of runs) {
      const behind = keep !== undefined && index >= keep;
      if (behind || (endedBefore !== undefined && (end?.at ?? 0) < endedBefore)) count += 1;
      index += 1;
    }
    before = runs.at(-1)?.run_id;
    if (runs.length < page) return count;
  }
});
