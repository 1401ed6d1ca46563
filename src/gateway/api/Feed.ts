/**
 * Tells readers of `/recovery/api/events` that something is new: which runs, never what. A reader looks at the record.
 *
 * Changes of this process come at once; what other processes write to the same record is found by looking.
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
 */
export const make = (
  recorder: RunRecorder["Service"],
  traffic: Option.Option<Traffic["Service"]>,
  context: Context.Context<never>,
  paths?: Pick<PathBoard["Service"], "list">,
): ReadableStream<Uint8Array> => {
  const told: Stream.Stream<News> = Option.isNone(traffic)
    ? Stream.empty
    : Stream.map(traffic.value.changes, ({ run_id }) => ({ runs: [run_id], paths: false }));
  const messages = Stream.merge(told, looks(recorder, paths)).pipe(
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

/** What another look has found changed. Nothing where nothing is: bars grow, and a reader that is gone is noticed. */
const looks = (
  recorder: RunRecorder["Service"],
  paths: Pick<PathBoard["Service"], "list"> | undefined,
): Stream.Stream<News> =>
  Stream.fromEffectSchedule(look(recorder, paths), Schedule.spaced(Duration.millis(lookMs))).pipe(
    Stream.mapAccum(
      (): Prints | undefined => undefined,
      (before, now) => [
        now,
        [{ runs: changed(before?.runs, now.runs), paths: before !== undefined && before.paths !== now.paths }],
      ],
    ),
  );

/** What every run and the paths of a look looked like. */
interface Prints {
  readonly runs: ReadonlyMap<string, string>;
  readonly paths: string;
}

/** A record that cannot be read now is looked at again with the next look. */
const look = (
  recorder: RunRecorder["Service"],
  paths: Pick<PathBoard["Service"], "list"> | undefined,
): Effect.Effect<Prints> =>
  recorder.runs({ limit: lookRunsMax }).pipe(
    Effect.tap(outageOf(recorder).worked),
    Effect.map((records) => new Map(records.map((record) => [record.run_id, fingerprint(record)]))),
    Effect.catchCause((cause: Cause.Cause<RecorderError>) =>
      Effect.as(outageOf(recorder).failed(whyOf(cause)), new Map<string, string>()),
    ),
    Effect.flatMap((runs) =>
      Effect.map(paths?.list ?? Effect.succeed([]), (list) => ({ runs, paths: pathsPrint(list) })),
    ),
  );

/** Every reader of the feed looks: they say it once. */
const outageOf = outageLogs({
  away: "the page's feed cannot look at the record",
  back: "the page's feed looks at the record again",
});

const whyOf = (cause: Cause.Cause<RecorderError>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause));
  return error === undefined ? "it died" : error.message === "" ? error.reason : error.message;
};

/** The first look has nothing to compare with: a reader that has just connected reads everything. */
const changed = (before: Prints["runs"] | undefined, now: Prints["runs"]): ReadonlyArray<string> =>
  before === undefined ? [] : [...now].filter(([runId, print]) => before.get(runId) !== print).map(([runId]) => runId);

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
