/**
 * Decides what happens to the runs of a gateway whose process has died.
 *
 * These runs cannot continue, because their clients were disconnected and a client's retry starts a new run. Each run ends as
 * `client_gone`, together with a question that the dead process held open for its client. Any other question is answered `stop` at once if
 * the gateway holds no questions (`--on-question fail`).
 *
 * The policy also recovers runs of other programs in the same store, but leaves it to those programs to resume them.
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

/** Options of the recovery of dead gateways' runs. */
export interface GatewayRecoveryOptions {
  readonly terms?: QuestionTerms;
  /** True if the program answers questions with `stop` because there is no person to answer them. */
  readonly headless: boolean;
  readonly intervalMs?: number;
  /** Minimum time between sweeps of parked runs, in milliseconds. By default every sweep includes the parked runs. */
  readonly parkedMs?: number;
  /** Reports the dead processes of this gateway, if several processes serve as one gateway. */
  readonly siblings?: DeadSiblings;
}

/** Reports dead processes whose runs this process has to recover. */
export interface DeadSiblings {
  /** Waits until another process dies, and returns the name of that process in the store. */
  readonly ended: Effect.Effect<string>;
  /** Called after the lease of a dead process was ended in the store. From then on, each sweep finds its runs. */
  readonly onRecovered: (process: string) => void;
}

/** Maximum interval between sweeps for dead gateways, in milliseconds. */
const lookMsMax = 1_000;

/**
 * Computes the interval between sweeps for dead gateways, in milliseconds. A lease is timed from the sweep that saw the last heartbeat, so
 * with one sweep per lease the runs of a dead gateway could wait for two leases.
 *
 * @param leaseMs lease of a gateway
 */
export const lookMsOf = (leaseMs: number): number => Math.min(lookMsMax, leaseMs);

/** Provides the sweeps for dead gateways. The first starts at once. */
export const layer = (options: GatewayRecoveryOptions): Layer.Layer<never, never, RunRecorder> => {
  const outage = new OutageLog({
    away: "cannot end the runs of a dead gateway; each sweep tries again",
    back: "the runs of dead gateways are being ended again",
  });
  const ended = Effect.catch(Effect.andThen(endAbandoned(options.headless), outage.recordSuccess), ({ message }) =>
    outage.recordFailure(message),
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
          : { due: fenceDeadSibling(Context.get(services, RunRecorder), options.siblings) }),
      }),
    ),
    // An earlier process may have decided about a run without ending it. A sweep does not return such runs, so they are ended here.
  ).pipe(Layer.merge(Layer.effectDiscard(Effect.forkScoped(ended))));
};

/** Returns after a sibling has died and its lease was ended, so that another process can take over its runs. */
const fenceDeadSibling = (
  recorder: RunRecorder["Service"],
  { ended, onRecovered }: DeadSiblings,
): Effect.Effect<void> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(ended), (process) =>
      (recorder.processEnded?.(process) ?? Effect.void).pipe(
        Effect.andThen(Effect.sync(() => onRecovered(process))),
        Effect.catch(({ message }) =>
          Effect.logWarning(`the runs of a dead worker are recovered after its lease expires: ${message}`),
        ),
      ),
    ),
  );

/**
 * Ends the runs that no gateway can continue.
 *
 * @param headless also answers open questions with `stop`, because there is no person to answer them
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
    // Another gateway on the same store has already ended this run.
    Effect.catchIf(
      ({ reason }) => reason === "owned" || reason === "run_ended" || reason === "fenced",
      () => Effect.void,
    ),
  );

const clientGone = "client_gone";

const stop = ({ questions, run_id }: RunRecord): Effect.Effect<void, RecorderError, RunRecorder> => {
  const revision = questions.at(-1)?.revision;
  if (revision === undefined) return Effect.void;
  return CrashRecovery.answer({ run_id, revision, choice: "stop", by: "program" }).pipe(
    Effect.asVoid,
    // A person answered first, or the run has ended.
    Effect.catchTag("AnswerRefused", () => Effect.void),
  );
};
