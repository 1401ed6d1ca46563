/** `stream-recovery runs retain`: applies retention once, for use by a timer. Long-running programs apply it periodically themselves. */
import { Config, Console, Effect, Option } from "effect";
import { Command, Flag } from "effect/cli";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { resolveRetention, retainingOf, retentionDefault } from "../../recorder/retention/Retention.ts";
import { exitCodesHelp, failing } from "../command/CommandFailed.ts";
import { dbFlag, jsonFlag, keptFlags, withStore } from "../command/Store.ts";
import { startCounter } from "../terminal/Progress.ts";

/** Deletes ended runs once, by the rules that `serve` applies continuously. */
export const retainCommand = Command.make(
  "retain",
  {
    db: dbFlag,
    keepRuns: Flag.String("keep-runs").pipe(
      Flag.withDescription(
        "How long ended runs are kept: 30d, 12h, 2w, or forever ($STREAM_RECOVERY_KEEP_RUNS; default 30d)",
      ),
      Flag.withMetavar("duration"),
      Flag.withFallbackConfig(Config.String("STREAM_RECOVERY_KEEP_RUNS")),
      Flag.optional,
    ),
    keepRunsMax: Flag.Int("keep-runs-max").pipe(
      Flag.withDescription(
        `Maximum ended runs that are kept; the newest stay. No run is deleted within a minute of its end ($STREAM_RECOVERY_KEEP_RUNS_MAX; default ${retentionDefault.runs}, and all with --keep-runs forever)`,
      ),
      Flag.withFallbackConfig(Config.Int("STREAM_RECOVERY_KEEP_RUNS_MAX")),
      Flag.optional,
    ),
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Only print what would be deleted"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
  },
  ({ db, ...options }) => withStore("runs retain", db, () => retain(options)),
).pipe(
  Command.withDescription(
    `Delete ended runs once, as \`serve\` does continuously; meant for a timer (docs/postgres.md). A run that has not ended is never deleted, and gateways may serve meanwhile.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Delete ended runs once, as `serve` does continuously; meant for a timer"),
  Command.withExamples([
    { command: "stream-recovery runs retain --keep-runs 30d --dry-run", description: "Print what would be deleted" },
  ]),
);

interface RetainOptions {
  readonly keepRuns: Option.Option<string>;
  readonly keepRunsMax: Option.Option<number>;
  readonly dryRun: boolean;
  readonly json: boolean;
}

const command = "runs retain";
const fail = failing(command);

/** Applies retention once. With `--dry-run`, it only counts the runs that it would delete. */
export const retain = Effect.fn("cli.runs.retain")(function* ({ dryRun, json, ...options }: RetainOptions) {
  const kept = {
    keepRuns: Option.getOrUndefined(Option.filter(options.keepRuns, (it) => it !== "")),
    keepRunsMax: Option.getOrUndefined(options.keepRunsMax),
  };
  const retention = resolveRetention(kept);
  if ("expected" in retention) return yield* fail("refused", `${keptFlags[retention.name]}: ${retention.expected}`);
  const retaining = retainingOf(yield* RunRecorder);
  if (retaining === undefined) return yield* fail("refused", "this store deletes runs only with `runs prune`");
  const counter = startCounter(process.stderr, (count) => `${count} runs`);
  const looks = dryRun ? retaining.countOld(retention) : retaining.deleteOld(retention, counter.update);
  const runs = yield* Effect.ensuring(looks, Effect.sync(counter.done));
  const ended = runs === 1 ? "one ended run" : `${runs} ended runs`;
  const words = dryRun ? `${ended} would be deleted` : `deleted ${ended}`;
  yield* Console.log(json ? JSON.stringify({ dry_run: dryRun, runs }) : words);
});
