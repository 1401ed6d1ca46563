/**
 * Implements the API on the record of runs.
 */
import { Clock, Effect, Option, Result } from "effect";
import { HttpApiBuilder } from "effect/http-api";
import type { Choice } from "../../domain/Decision.ts";
import { label } from "../../domain/Limits.ts";
import { exportRun, IncidentExportError } from "../../recorder/export/IncidentExport.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { findLate } from "../../recorder/WriteQueue.ts";
import * as CrashRecovery from "../../runtime/crash/CrashRecovery.ts";
import * as RunCancel from "../../runtime/crash/RunCancel.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { cancelWords } from "../../story/CancelWords.ts";
import { openQuestionOf } from "../../story/Question.ts";
import { hasRecovered, isCancelled } from "../../story/RunStatus.ts";
import { attemptsOf, lastRuleOf } from "../../story/RunSummary.ts";
import { unknownOutcomes } from "../../story/UnknownOutcomes.ts";
import {
  Api,
  ApiNotFound,
  ApiRefused,
  ApiUnavailable,
  listRunsMax,
  type OpenQuestion,
  type RunSummary,
} from "./Api.ts";
import { PathBoard } from "./PathBoard.ts";
import { pathView, sortPaths } from "./PathList.ts";
import * as RunSearch from "./RunSearch.ts";
import { StoreHealth, type StoreState } from "./StoreHealth.ts";
import type { Totals } from "./Totals.ts";
import { Traffic } from "./Traffic.ts";

/** Maximum number of open questions in a list. */
export const questionsMax = 500;

const listRunsDefault = 100;

/**
 * Provides the handlers of the API.
 *
 * @param totals result of `Totals.make`
 */
export const layer = (totals: Effect.Effect<Totals, RecorderError>) =>
  HttpApiBuilder.group(Api, "runs", (handlers) =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      const traffic = yield* Effect.serviceOption(Traffic);
      const store = yield* Effect.serviceOption(StoreHealth);
      const processor = yield* Effect.serviceOption(StreamProcessor);
      const paths = yield* PathBoard.here;
      const find = (id: string) => findRun(recorder, id);
      return handlers.handleAll({
        list: ({ query }) => list(recorder, query),
        run: ({ params }) => find(params.id),
        incidents: ({ params }) => Effect.map(find(params.id), ({ incidents }) => ({ incidents })),
        export: ({ params }) => Effect.flatMap(find(params.id), exportRecord),
        questions: () =>
          recorder.runs({ state: "asking", limit: questionsMax }).pipe(
            Effect.map((asking) => ({ questions: asking.map(questionOf).filter((it) => it !== undefined) })),
            Effect.mapError(toUnavailable),
          ),
        answer: ({ params, payload }) => answer(recorder, params.id, payload),
        cancel: ({ params }) => cancel(recorder, processor, params.id),
        paths: () =>
          Effect.map(paths?.list ?? Effect.succeed([]), (list) => ({ paths: sortPaths(list).map(pathView) })),
        tryPath: ({ payload }) => tryPath(paths, payload.path),
        streams: () => streams(traffic),
        totals: () => Effect.mapError(totals, toUnavailable),
        health: () => health(recorder, traffic, store),
      });
    }),
  );

const list = Effect.fnUntraced(function* (recorder: RunRecorder["Service"], sent: RunSearch.SearchSent) {
  const now = yield* Clock.currentTimeMillis;
  const search = RunSearch.parse(sent, { byDefault: listRunsDefault, max: listRunsMax }, now);
  if (Result.isFailure(search)) return yield* search.failure;
  const { next, runs } = yield* Effect.mapError(RunSearch.find(recorder, search.success), toUnavailable);
  return { runs: runs.map(summaryOf), ...(next === undefined ? {} : { next }) };
});

const toUnavailable = ({ reason }: RecorderError): ApiUnavailable =>
  new ApiUnavailable({ reason, message: "cannot read or write the record of runs" });

const findRun = (
  recorder: RunRecorder["Service"],
  id: string,
): Effect.Effect<RunRecord, ApiNotFound | ApiUnavailable> =>
  findLate(recorder, id).pipe(
    Effect.mapError(toUnavailable),
    Effect.filterOrFail((record) => record !== undefined, unknownRun),
  );

const unknownRun = (): ApiNotFound => new ApiNotFound({ reason: "unknown_run", message: "no such run is on record" });

const exportRecord = (record: RunRecord) =>
  Effect.try({
    try: () => exportRun(record),
    catch: (error) =>
      new ApiUnavailable({
        reason: error instanceof IncidentExportError ? error.reason : "not_a_record",
        message: "this run cannot be exported",
      }),
  });

interface Given {
  readonly revision: number;
  readonly choice: Choice;
  readonly confirm_may_repeat?: boolean;
}

/** Answers a question. A retry that may run a call again must be confirmed. */
const answer = Effect.fn("Api.answer")(function* (recorder: RunRecorder["Service"], id: string, given: Given) {
  const question = questionOf(yield* findRun(recorder, id));
  const risky = given.choice === "retry" && question?.revision === given.revision && question.may_repeat.length > 0;
  if (risky && given.confirm_may_repeat !== true) {
    return yield* new ApiRefused({
      reason: "may_repeat",
      message: `calls that ran or may have run may run again: ${question.may_repeat.join(", ")}. Set confirm_may_repeat`,
    });
  }
  const { choice, revision } = given;
  const taken = yield* CrashRecovery.answer({ run_id: id, revision, choice, by: "person" }).pipe(
    Effect.provideService(RunRecorder, recorder),
    Effect.catchTags({
      AnswerRefused: ({ message, reason }) =>
        reason === "unknown_run" ? Effect.fail(unknownRun()) : Effect.fail(new ApiRefused({ reason, message })),
      RecorderError: (error) => Effect.fail(toUnavailable(error)),
    }),
  );
  return summaryOf(taken);
});

/**
 * Maximum time that a cancel waits for another process that does not reply, in milliseconds. A person waits for the response, so the
 * outcome is then `pending`.
 */
const silentMs = 3_000;

const cancel = Effect.fn("Api.cancel")(function* (
  recorder: RunRecorder["Service"],
  processor: Option.Option<StreamProcessor["Service"]>,
  id: string,
) {
  const here = Option.getOrUndefined(Option.map(processor, (it) => it.cancel));
  const cancelled = yield* RunCancel.cancel(id, { silentMs, ...(here === undefined ? {} : { cancelHere: here }) }).pipe(
    Effect.provideService(RunRecorder, recorder),
    Effect.mapError(toUnavailable),
  );
  if (cancelled === undefined) return yield* unknownRun();
  const { driver, outcome, record } = cancelled;
  const message = cancelWords(cancelled);
  if (outcome === "ended") return yield* new ApiRefused({ reason: "run_ended", message });
  if (outcome === "unreachable") return yield* new ApiRefused({ reason: "not_told", message });
  return { outcome, message, run: summaryOf(record), ...(driver === undefined ? {} : { driver: label(driver) }) };
});

/** Probes a path and waits for the result, so that the response contains it. */
const tryPath = Effect.fnUntraced(function* (paths: PathBoard["Service"] | undefined, path: string) {
  const isKnown = paths !== undefined && (yield* paths.tryNow(path));
  const found = isKnown ? (yield* paths.list).find((status) => status.path === path) : undefined;
  if (found !== undefined) return pathView(found);
  return yield* new ApiNotFound({ reason: "unknown_path", message: "this process does not know the path" });
});

const streams = (traffic: Option.Option<Traffic["Service"]>) =>
  Option.isNone(traffic)
    ? Effect.succeed({ streams: [] })
    : Effect.map(traffic.value.status, ({ attachable = [] }) => ({ streams: attachable }));

const health = Effect.fnUntraced(function* (
  recorder: RunRecorder["Service"],
  traffic: Option.Option<Traffic["Service"]>,
  store: Option.Option<StoreHealth["Service"]>,
) {
  yield* Effect.mapError(recorder.runs({ limit: 1 }), toUnavailable);
  const status = Option.isNone(traffic) ? undefined : yield* traffic.value.status;
  const state: StoreState = Option.isNone(store) ? { writes: "ok" } : yield* store.value.state;
  const isDegraded = state.writes !== "ok";
  return {
    status: status?.draining === true ? ("draining" as const) : isDegraded ? ("degraded" as const) : ("ok" as const),
    ...(isDegraded ? { degraded: "store" as const } : {}),
    store: state,
    durable: recorder.durable,
    live: status?.live.length ?? 0,
    draining: status?.draining ?? false,
  };
});

const summaryOf = (record: RunRecord): RunSummary => {
  const { end, parked, provider, retry_of, run_id, started_at, state } = record;
  const rule = lastRuleOf(record);
  const unknown = unknownOutcomes(record);
  return {
    run_id,
    provider,
    started_at,
    state,
    ...(parked === undefined ? {} : { parked }),
    attempts: attemptsOf(record),
    incidents: record.incidents.length + record.incidents_omitted,
    recovered: hasRecovered(record),
    ...(isCancelled(record) ? { cancelled: true as const } : {}),
    ...(unknown.length === 0 ? {} : { unknown_outcomes: unknown }),
    ...(rule === undefined ? {} : { rule }),
    ...(retry_of === undefined ? {} : { retry_of }),
    ...(end === undefined ? {} : { end }),
  };
};

const questionOf = (record: RunRecord): OpenQuestion | undefined => {
  const open = openQuestionOf(record);
  if (open === undefined) return undefined;
  const { incident, mayRepeat, question, unattended } = open;
  const { asked_at, choices, expires_at, revision, rule } = question;
  return {
    run_id: record.run_id,
    provider: record.provider,
    revision,
    rule,
    message: incident?.message ?? "",
    choices,
    default_choice: unattended,
    ...(asked_at === undefined ? {} : { asked_at }),
    ...(expires_at === undefined ? {} : { expires_at }),
    may_repeat: mayRepeat,
    calls: incident?.decision.calls ?? [],
  };
};
