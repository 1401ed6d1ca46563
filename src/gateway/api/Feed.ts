/**
 * Tells readers of `/recovery/api/events` that something is new: which runs, never what. A reader looks at the record.
 *
 * Changes of this process come at once; what other processes write to the same record is found by looking: at the newest runs, at
 * those that wait for an answer, and at those that a reader says it shows.
 */
import { Cause, type Context, Duration, Effect, Option, Schedule, Stream } from "effect";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import type { RunRecorder } from "../../recorder/RunRecorder.ts";
import { outageLogs } from "../../recorder/shared/OutageLog.ts";
import type { PathBoard } from "./PathBoard.ts";
import { pathsPrint } from "./PathList.ts";
import type { Traffic } from "./Traffic.ts";

/** What the feed `api/events` sends: the runs of which something is new; none where only time has passed. */
export interface FeedMessage {
  readonly runs: ReadonlyArray<string>;
  /** A path stands otherwise than before. */
  readonly paths?: true;
}

/** Between two looks at the record, in milliseconds, while there is a reader. */
export const lookMs = 1_000;

/** Runs that a look compares, the newest. */
export const lookRunsMax = 50;

/** Runs that wait for an answer which a look compares besides, the newest: the page shows no more of them. */
export const lookAskingMax = 100;

/** Runs that a look compares besides because readers show them, by the feed's address. */
export const lookShownMax = 8;

/** Changes are gathered for so many milliseconds into one message. */
export const gatherMs = 200;

/** Most runs that one message names; the next message names the others. */
export const messageRunsMax = 500;

/** How long a browser waits before it connects again, in milliseconds. */
const reconnectMs = 2_000;

/**
 * The feed as the body of a response of type `text/event-stream`.
 *
 * @param context where its fibers run
 * @param more.list gives the paths
 * @param more.shown ids of runs that its readers show
 */
export const make = (
  recorder: RunRecorder["Service"],
  traffic: Option.Option<Traffic["Service"]>,
  context: Context.Context<never>,
  more: LookOptions = {},
): ReadableStream<Uint8Array> => {
  const told: Stream.Stream<News> = Option.isNone(traffic)
    ? Stream.empty
    : Stream.map(traffic.value.changes, ({ run_id }) => ({ runs: [run_id], paths: false }));
  const messages = Stream.merge(told, looks(recorder, more)).pipe(
    Stream.groupedWithin(messageRunsMax, Duration.millis(gatherMs)),
    Stream.map((news) => {
      const runs = [...new Set(news.flatMap((it) => it.runs))].slice(0, messageRunsMax);
      return eventOf({ runs, ...(news.some((it) => it.paths) ? { paths: true } : {}) });
    }),
  );
  // Something is sent at once, so that the head is, too.
  const body = Stream.concat(Stream.make(`retry: ${reconnectMs}\n\n`), messages);
  return Stream.toReadableStreamWith(Stream.encodeText(body), context);
};

const eventOf = (message: FeedMessage): string => `data: ${JSON.stringify(message)}\n\n`;

/** What is new: runs, and whether a path stands otherwise. */
interface News {
  readonly runs: ReadonlyArray<string>;
  readonly paths: boolean;
}

/** What a look looks at beside the runs that every reader sees. */
interface LookOptions {
  readonly list?: PathBoard["Service"]["list"];
  readonly shown?: ReadonlyArray<string>;
}

/** What another look has found changed. Nothing where nothing is: bars grow, and a reader that is gone is noticed. */
const looks = (recorder: RunRecorder["Service"], more: LookOptions): Stream.Stream<News> =>
  Stream.fromEffectSchedule(look(recorder, more), Schedule.spaced(Duration.millis(lookMs))).pipe(
    Stream.mapAccum(
      (): Prints | undefined => undefined,
      (before, now) => [
        now,
        [{ runs: changed(before, now), paths: before !== undefined && before.paths !== now.paths }],
      ],
    ),
  );

/** What every run and the paths of a look looked like. */
interface Prints extends RunPrints {
  readonly paths: string;
}

interface RunPrints {
  readonly runs: ReadonlyMap<string, string>;
  /** The runs that waited for an answer; undefined where the record could not be read. */
  readonly asking: ReadonlySet<string> | undefined;
}

/** A record that cannot be read now is looked at again with the next look. */
const look = (recorder: RunRecorder["Service"], { list, shown = [] }: LookOptions): Effect.Effect<Prints> =>
  runPrints(recorder, [...new Set(shown)].slice(0, lookShownMax)).pipe(
    Effect.tap(outageOf(recorder).worked),
    Effect.catchCause((cause: Cause.Cause<RecorderError>) =>
      Effect.as(outageOf(recorder).failed(whyOf(cause)), unread),
    ),
    Effect.flatMap((prints) =>
      Effect.map(list ?? Effect.succeed([]), (paths) => ({ ...prints, paths: pathsPrint(paths) })),
    ),
  );

const unread: RunPrints = { runs: new Map(), asking: undefined };

const runPrints = Effect.fnUntraced(function* (recorder: RunRecorder["Service"], shown: ReadonlyArray<string>) {
  const newest = yield* recorder.runs({ limit: lookRunsMax });
  const asking = yield* recorder.runs({ state: "asking", limit: lookAskingMax });
  const runs = new Map([...asking, ...newest].map((record) => [record.run_id, fingerprint(record)]));
  for (const runId of shown) {
    if (runs.has(runId)) continue;
    const record = yield* recorder.run(runId);
    // It may be forgotten while it is shown.
    runs.set(runId, record === undefined ? "" : fingerprint(record));
  }
  return { runs, asking: new Set(asking.map(({ run_id }) => run_id)) } satisfies RunPrints;
});

/** Every reader of the feed looks: they say it once. */
const outageOf = outageLogs({
  away: "the page's feed cannot look at the record",
  back: "the page's feed looks at the record again",
});

const whyOf = (cause: Cause.Cause<RecorderError>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause));
  return error === undefined ? "it died" : error.message === "" ? error.reason : error.message;
};

/**
 * The first look has nothing to compare with: a reader that has just connected reads everything. A run that waited for an answer and
 * is in no list any more has been answered, or has ended.
 */
const changed = (before: Prints | undefined, now: Prints): ReadonlyArray<string> => {
  if (before === undefined) return [];
  const others = [...now.runs].filter(([runId, print]) => before.runs.get(runId) !== print).map(([runId]) => runId);
  if (now.asking === undefined) return others;
  return [...others, ...[...(before.asking ?? [])].filter((runId) => !now.runs.has(runId))];
};

/** Everything that grows in a record, as counts. */
const fingerprint = ({ attempts, evidence, incidents, questions, ...record }: RunRecord): string => {
  const newest = attempts.at(-1);
  return [
    record.state,
    record.parked,
    record.resumes,
    JSON.stringify(record.waiting),
    newest?.attempt,
    JSON.stringify(newest?.facts),
    evidence.first.length + evidence.last.length + evidence.omitted,
    incidents.map(({ status }) => status).join(),
    questions.map(({ answer, revision }) => `${revision}${answer ?? ""}`).join(),
  ].join("|");
};
