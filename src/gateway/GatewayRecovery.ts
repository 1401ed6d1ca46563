/**
 * Decides what becomes of a gateway's runs when its process has died.
 *
 * Such a run cannot go on: its client saw the connection break and is gone, and a repeat by the client is a new run. The run ends as
 * `client_gone`, with the question that a dead process held for its client. One that is left and offers nothing that needs the client is
 * answered `stop` at once where the gateway holds no questions (`--on-question fail`).
 *
 * Runs of other programs in the same store are recovered by the policy and left for their own program to take up.
 */
import { Context, Effect, Layer, Stream } from "effect";
import type { QuestionTerms } from "../recorder/Question.ts";
import type { RecorderError } from "../recorder/RecorderError.ts";
import { waitingRuns } from "../recorder/RunPages.ts";
import type { RunRecord } from "../recorder/RunRecord.ts";
import { RunRecorder } from "../recorder/RunRecorder.ts";
import { OutageLog } from "../recorder/shared/OutageLog.ts";
import * as CrashRecovery from "../runtime/crash/CrashRecovery.ts";
import { endByHand } from "../runtime/crash/Takeover.ts";
import { runIdPrefix } from "./proxy/RelayHandler.ts";

/** How a gateway recovers. */
export interface GatewayRecoveryOptions {
  /** Expiry and defaults of questions. */
  readonly terms?: QuestionTerms;
  /** No person answers questions: the program answers them `stop`. */
  readonly headless: boolean;
  /** From one look to the next, in milliseconds. */
  readonly intervalMs?: number;
  /** Least from one look at parked runs to the next, in milliseconds; left out, each look is one. */
  readonly parkedMs?: number;
  /** Where several processes serve as one. */
  readonly siblings?: DeadSiblings;
}

/** The processes that have died and whose runs this one is to recover. */
export interface DeadSiblings {
  /** The name in the store of the next one that has died. */
  readonly ended: Effect.Effect<string>;
  /** Told once its lease is over for every process: from then on each look finds its runs. */
  readonly recovered: (process: string) => void;
}

/** Longest from one look for dead gateways to the next, in milliseconds. */
const lookMsMax = 1_000;

/**
 * How long from one look for dead gateways to the next, in milliseconds. A lease is watched from the look on that has seen its
 * last beat: with one look a lease, the runs of a dead gateway were decided up to a second lease later.
 *
 * @param leaseMs lease of a gateway
 */
export const lookMsOf = (leaseMs: number): number => Math.min(lookMsMax, leaseMs);

/** Looks at once, and again and again while it lives. */
export const layer = (options: GatewayRecoveryOptions): Layer.Layer<never, never, RunRecorder> => {
  const outage = new OutageLog({
    away: "runs of a gateway that has died are not ended; each look tries again",
    back: "runs of a gateway that has died are ended again",
  });
  const ended = Effect.catch(Effect.andThen(endAbandoned(options.headless), outage.worked), ({ message }) =>
    outage.failed(message),
  );
  return Layer.unwrap(
    Effect.map(Effect.context<RunRecorder>(), (services) =>
      CrashRecovery.layer({
        ...(options.terms === undefined ? {} : { terms: options.terms }),
        ...(options.intervalMs === undefined ? {} : { intervalMs: options.intervalMs }),
        ...(options.parkedMs === undefined ? {} : { parkedMs: options.parkedMs }),
        unresumable: (runId) => (runId.startsWith(runIdPrefix) ? clientGone : undefined),
        onSwept: () => Effect.provideContext(ended, services),
        ...(options.siblings === undefined
          ? {}
          : { due: fenced(Context.get(services, RunRecorder), options.siblings) }),
      }),
    ),
    // What an earlier process has decided and not ended is no news to a sweep.
  ).pipe(Layer.merge(Layer.effectDiscard(Effect.forkScoped(ended))));
};

/** Returns when a sibling has died and its lease is over: its runs are there to be taken. */
const fenced = (recorder: RunRecorder["Service"], { ended, recovered }: DeadSiblings): Effect.Effect<void> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(ended), (process) =>
      (recorder.processEnded?.(process) ?? Effect.void).pipe(
        Effect.andThen(Effect.sync(() => recovered(process))),
        Effect.catch(({ message }) =>
          Effect.logWarning(`the runs of a worker that has died are recovered when its lease is over: ${message}`),
        ),
      ),
    ),
  );

/**
 * Ends the runs of gateways that no process can go on with.
 *
 * @param headless also those whose question no person answers
 */
export const endAbandoned = Effect.fn("GatewayRecovery.endAbandoned")(function* (headless: boolean) {
  const recorder = yield* RunRecorder;
  yield* Stream.runForEach(waitingRuns(recorder, pageRuns), (record) => {
    if (!record.run_id.startsWith(runIdPrefix)) return Effect.void;
    if (record.parked === "recovered" || record.parked === "answered") return end(recorder, record);
    return headless && record.parked === "question" ? stop(record) : Effect.void;
  });
});

const pageRuns = 200;

const end = (recorder: RunRecorder["Service"], { run_id }: RunRecord): Effect.Effect<void, RecorderError> =>
  endByHand(recorder, run_id, clientGone).pipe(
    Effect.asVoid,
    // Another gateway on the same store has looked after it.
    Effect.catchIf(
      ({ reason }) => reason === "owned" || reason === "run_ended" || reason === "fenced",
      () => Effect.void,
    ),
  );

/** Why such a run ended. */
const clientGone = "client_gone";

const stop = ({ questions, run_id }: RunRecord): Effect.Effect<void, RecorderError, RunRecorder> => {
  const revision = questions.at(-1)?.revision;
  if (revision === undefined) return Effect.void;
  return CrashRecovery.answer({ run_id, revision, choice: "stop", by: "program" }).pipe(
    Effect.asVoid,
    // A person has answered it first, or it has ended.
    Effect.catchTag("AnswerRefused", () => Effect.void),
  );
};
