/**
 * Notifies readers of `/recovery/api/events` that runs have changed. Messages contain only ids; a reader fetches the details from the
 * record.
 *
 * Changes in this process are sent at once. Changes by other processes are found by polling the newest runs, the runs with an open
 * question, and the runs that a reader displays.
 */
import { Cause, type Context, Duration, Effect, Option, Schedule, Stream } from "effect";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import type { RunRecorder } from "../../recorder/RunRecorder.ts";
import { outageLogs } from "../../recorder/shared/OutageLog.ts";
import type { PathBoard } from "./PathBoard.ts";
import { pathsPrint } from "./PathList.ts";
import type { Traffic } from "./Traffic.ts";

/** A message of the feed `api/events`: the runs that changed. The list is empty if only time has passed. */
export interface FeedMessage {
  readonly runs: ReadonlyArray<string>;
  /** True if the state of a path has changed. */
  readonly paths?: true;
}

/** Interval between polls of the record while there is a reader, in milliseconds. */
export const lookMs = 1_000;

/** Number of newest runs that a poll compares with the previous poll. */
export const lookRunsMax = 50;

/** Number of newest runs with an open question that a poll also compares. It is also the maximum that the page displays. */
export const lookAskingMax = 100;

/** Maximum number of displayed runs that a poll also compares. A reader names them in the feed's address. */
export const lookShownMax = 8;

/** Time for which changes are gathered into one message, in milliseconds. */
export const gatherMs = 200;

/** Maximum number of runs in one message. The rest follow in the next message. */
export const messageRunsMax = 500;

/** Reconnection delay of a browser, in milliseconds. */
const reconnectMs = 2_000;

/**
 * Creates the feed as the body of a `text/event-stream` response.
 *
 * @param context context of the feed's fibers
 * @param more.list lists the paths
 * @param more.shown ids of runs that its readers display
 */
export const make = (
  recorder: RunRecorder["Service"],
  traffic: Option.Option<Traffic["Service"]>,
  context: Context.Context<never>,
  more: LookOptions = {},
): ReadableStream<Uint8Array> => {
  const changes: Stream.Stream<News> = Option.isNone(traffic)
    ? Stream.empty
    : Stream.map(traffic.value.changes, ({ run_id }) => ({ runs: [run_id], paths: false }));
  const messages = Stream.merge(changes, pollRecord(recorder, more)).pipe(
    Stream.groupedWithin(messageRunsMax, Duration.millis(gatherMs)),
    Stream.map((news) => {
      const runs = [...new Set(news.flatMap((it) => it.runs))].slice(0, messageRunsMax);
      return eventOf({ runs, ...(news.some((it) => it.paths) ? { paths: true } : {}) });
    }),
  );
  // Sends a first line at once, because the response head is sent with the first bytes.
  const body = Stream.concat(Stream.make(`retry: ${reconnectMs}\n\n`), messages);
  return Stream.toReadableStreamWith(Stream.encodeText(body), context);
};

const eventOf = (message: FeedMessage): string => `data: ${JSON.stringify(message)}\n\n`;

interface News {
  readonly runs: ReadonlyArray<string>;
  readonly paths: boolean;
}

interface LookOptions {
  readonly list?: PathBoard["Service"]["list"];
  readonly shown?: ReadonlyArray<string>;
}

/**
 * Polls the record and emits the differences. Empty differences are emitted too: they let progress bars advance, and their failed write
 * shows that a reader has left.
 */
const pollRecord = (recorder: RunRecorder["Service"], more: LookOptions): Stream.Stream<News> =>
  Stream.fromEffectSchedule(pollPrints(recorder, more), Schedule.spaced(Duration.millis(lookMs))).pipe(
    Stream.mapAccum(
      (): Prints | undefined => undefined,
      (before, now) => [
        now,
        [{ runs: diffRuns(before, now), paths: before !== undefined && before.paths !== now.paths }],
      ],
    ),
  );

interface Prints extends RunPrints {
  readonly paths: string;
}

interface RunPrints {
  readonly runs: ReadonlyMap<string, string>;
  /** Runs with an open question; undefined if the record could not be read. */
  readonly asking: ReadonlySet<string> | undefined;
}

/** Polls the record once. If the record cannot be read, the next poll tries again. */
const pollPrints = (recorder: RunRecorder["Service"], { list, shown = [] }: LookOptions): Effect.Effect<Prints> =>
  runPrints(recorder, [...new Set(shown)].slice(0, lookShownMax)).pipe(
    Effect.tap(outageOf(recorder).recordSuccess),
    Effect.catchCause((cause: Cause.Cause<RecorderError>) =>
      Effect.as(outageOf(recorder).recordFailure(whyOf(cause)), unread),
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
    // A displayed run may have been deleted.
    runs.set(runId, record === undefined ? "" : fingerprint(record));
  }
  return { runs, asking: new Set(asking.map(({ run_id }) => run_id)) } satisfies RunPrints;
});

/** All readers of the feed share one outage log, so that an outage is logged once. */
const outageOf = outageLogs({
  away: "the page's feed cannot read the record",
  back: "the page's feed can read the record again",
});

const whyOf = (cause: Cause.Cause<RecorderError>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause));
  return error === undefined ? "the read failed with a defect" : error.message === "" ? error.reason : error.message;
};

/**
 * Compares two polls. The first poll returns no changes, because a new reader fetches everything anyway. A run that had an open question
 * and is no longer listed was answered or has ended, so it counts as changed.
 */
const diffRuns = (before: Prints | undefined, now: Prints): ReadonlyArray<string> => {
  if (before === undefined) return [];
  const others = [...now.runs].filter(([runId, print]) => before.runs.get(runId) !== print).map(([runId]) => runId);
  if (now.asking === undefined) return others;
  return [...others, ...[...(before.asking ?? [])].filter((runId) => !now.runs.has(runId))];
};

/** Computes text that differs if a record has changed, from the counts and fields that every change of a record affects. */
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
