/**
 * `stream-recovery runs list`: lists recorded runs, starting with those that wait for a person.
 */
import { Config, Console, Effect, Option } from "effect";
import { Command, Flag } from "effect/cli";
import { none, type Prices } from "../../domain/Prices.ts";
import { pricesIn } from "../../gateway/config/ConfigFile.ts";
import { openConfig } from "../../gateway/config/ConfigSources.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { statusOf } from "../../story/RunStatus.ts";
import { summaryOf } from "../../story/RunSummary.ts";
import { type CommandFailed, exitCodesHelp, failing } from "../command/CommandFailed.ts";
import { dbFlag, jsonFlag, withStore } from "../command/Store.ts";
import type { Screen } from "../terminal/Screen.ts";
import { type RunRow, runTable } from "./RunTable.ts";

/** Maximum runs per page. */
const limitMax = 10_000;

const limitDefault = 20;

/** Maximum orphans (runs that no process owns) to read. It equals the limit of a page, because a page may consist only of orphans. */
const orphansMax = limitMax;

interface ListOptions {
  readonly state: Option.Option<RunRecord["state"]>;
  readonly broken: boolean;
  readonly limit: number;
  readonly before: Option.Option<string>;
  readonly config: Option.Option<string>;
  readonly json: boolean;
}

/** Lists one page of runs: first those that wait for an answer, then the newest. */
export const listCommand = Command.make(
  "list",
  {
    db: dbFlag,
    state: Flag.Literals("state", ["running", "asking", "waiting", "ended", "live", "parked"]).pipe(
      Flag.withDescription("Only runs in this state; `live` is another name for running, and `parked` for waiting"),
      Flag.map((word): RunRecord["state"] => (word === "running" ? "live" : word === "waiting" ? "parked" : word)),
      Flag.optional,
    ),
    broken: Flag.Boolean("broken").pipe(
      Flag.withDescription("Only runs with at least one incident"),
      Flag.withDefault(false),
    ),
    limit: Flag.Int("limit").pipe(
      Flag.withDescription(`Maximum runs to list, newest first; default ${limitDefault}`),
      Flag.withDefault(limitDefault),
      Flag.filter(
        (limit) => limit >= 1 && limit <= limitMax,
        (limit) => `Expected 1 to ${limitMax}, got ${limit}`,
      ),
    ),
    before: Flag.String("before").pipe(
      Flag.withDescription("Only runs that started before this one; expects its full id"),
      Flag.optional,
    ),
    config: Flag.String("config").pipe(
      Flag.withDescription(
        "A gateway's configuration file, whose `prices` give the cost of runs ($STREAM_RECOVERY_CONFIG)",
      ),
      Flag.withMetavar("file"),
      Flag.withFallbackConfig(Config.String("STREAM_RECOVERY_CONFIG")),
      Flag.optional,
    ),
    json: jsonFlag,
  },
  ({ db, ...options }) => withStore("runs list", db, (screen) => list(options, screen)),
).pipe(
  Command.withDescription(`List runs, newest first; runs that wait for an answer come first.${exitCodesHelp}`),
  Command.withShortDescription("List runs; those that wait for an answer come first"),
  Command.withExamples([
    { command: "stream-recovery runs list --broken", description: "List runs in which something broke" },
    { command: "stream-recovery runs list --state asking --json", description: "List open questions as JSON" },
  ]),
);

/** Prints one page of runs as a table or as JSON. */
export const list = Effect.fn("cli.runs.list")(function* (options: ListOptions, screen: Screen) {
  const prices = yield* readPrices(options.config);
  const { runs, more } = yield* pageOf(options, prices);
  if (options.json) {
    yield* Console.log(
      JSON.stringify(
        { runs: runs.map(({ summary }) => summary), limit: options.limit, cut: more !== undefined, more },
        null,
        2,
      ),
    );
  } else if (runs.length > 0) {
    yield* Console.log(runTable(runs, screen, more));
  }
  if (runs.length === 0) {
    const filtered = options.broken || Option.isSome(options.state) || Option.isSome(options.before);
    return yield* failing("runs list")("negative", filtered ? "no run matches" : "no run is on record");
  }
});

const readPrices = (config: Option.Option<string>): Effect.Effect<Prices, CommandFailed> =>
  Effect.suspend(() => {
    if (Option.isNone(config)) return Effect.succeed(none);
    const sources = openConfig(config.value);
    const prices = "unreadable" in sources ? sources.unreadable : pricesIn(sources);
    return typeof prices === "string" ? failing("runs list")("refused", `--config: ${prices}`) : Effect.succeed(prices);
  });

/** Reads a page. The first page starts with all runs that wait for a person, regardless of their age. */
const pageOf = Effect.fnUntraced(function* ({ before, broken, limit, state }: ListOptions, prices: Prices) {
  const recorder = yield* RunRecorder;
  const asking = Option.isNone(before) && Option.isNone(state) ? yield* recorder.runs({ state: "asking", limit }) : [];
  // Reads one run more than the limit, to know whether there is another page.
  const found = yield* recorder.runs({
    limit: limit + 1,
    broken,
    ...(Option.isSome(state) ? { state: state.value } : {}),
    ...(Option.isSome(before) ? { before: before.value } : {}),
  });
  const newest = found.slice(0, limit);
  const first = new Set(asking.map(({ run_id }) => run_id));
  const others = newest.filter(({ run_id }) => !first.has(run_id));
  const orphans = others.some(({ state: is }) => is === "live" || is === "parked")
    ? new Set((yield* recorder.orphans(orphansMax, { waits: false })).map(({ run_id }) => run_id))
    : new Set<string>();
  const runs = [...asking, ...others].map(
    (record): RunRow => ({ summary: summaryOf(record, orphans, prices), status: statusOf(record, orphans) }),
  );
  return { runs, more: found.length > limit ? newest.at(-1)?.run_id : undefined };
});
