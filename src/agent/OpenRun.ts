/**
 * Goes on with the run that an earlier process left open: by its record, or by the journal where the record has ended.
 */
import { Effect } from "effect";
import type { ProviderClient } from "../client/index.ts";
import type { RecorderError } from "../recorder/RunRecorder.ts";
import { RunRecorder } from "../recorder/RunRecorder.ts";
import type { RunCompleted } from "../runtime/contract/RunEvent.ts";
import { RunInterrupted } from "../runtime/contract/RunEvent.ts";
import * as CrashRecovery from "../runtime/crash/CrashRecovery.ts";
import { StreamProcessor } from "../runtime/StreamProcessor.ts";
import { AgentError } from "./conversation/AgentError.ts";
import type { StartedCall } from "./conversation/ChatRun.ts";
import type { CallVerdict, Ending } from "./conversation/Entry.ts";
import * as ModelStep from "./ModelStep.ts";

/** How a step ended. */
export type StepOutcome =
  | {
      readonly _tag: "ended";
      readonly ending: Ending;
      readonly attempts: number;
      readonly finish: string | undefined;
    }
  | { readonly _tag: "interrupted"; readonly error: RunInterrupted };

/** Milliseconds between two looks whether the lease of the process before is over. */
const lookEveryMs = 100;

/** Most refused attempts to take the run up before the chat goes on by its journal alone: its tools may have changed since. */
const refusalsMax = 5;

/** The outcome of a step that was played. */
export const outcomeOf = <E, R>(
  played: Effect.Effect<RunCompleted | undefined, RunInterrupted | E, R>,
): Effect.Effect<StepOutcome, Exclude<E, RunInterrupted>, R> =>
  played.pipe(
    Effect.map(
      (completed): StepOutcome => ({
        _tag: "ended",
        ending: "completed",
        attempts: completed?.attempts ?? 0,
        finish: completed?.finish,
      }),
    ),
    Effect.catchIf(
      (error): error is RunInterrupted => error instanceof RunInterrupted,
      (error) => Effect.succeed<StepOutcome>({ _tag: "interrupted", error }),
    ),
    // `catchIf` took the one error that is a RunInterrupted; the compiler keeps it in a generic union.
  ) as Effect.Effect<StepOutcome, Exclude<E, RunInterrupted>, R>;

type Services = StreamProcessor | ProviderClient | RunRecorder;

/** Goes on with a run until it has ended or is parked. */
export const goOn = (run: string, given: ModelStep.StepOptions): Effect.Effect<StepOutcome, AgentError, Services> =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    const processor = yield* StreamProcessor;
    let waitingReported = false;
    let refusals = 0;
    while (true) {
      yield* CrashRecovery.recover();
      const record = yield* recorder.run(run);
      if (record === undefined || record.state === "ended") return cutOff;
      const transcript = given.state.openRun?.transcript ?? "";
      if (record.parked !== undefined) {
        const step = yield* ModelStep.make(run, given);
        const outcome = yield* outcomeOf(step.play(processor.takeUp(run, { request: step.options, transcript })));
        if (outcome._tag === "ended" || outcome.error.reason !== "refused") return outcome;
        // Another process may have been faster. A run that is refused again and again goes on without its record.
        refusals += 1;
        if (refusals >= refusalsMax) return cutOff;
      }
      if (!waitingReported) given.watch({ _tag: "Waiting", run });
      waitingReported = true;
      yield* Effect.sleep(lookEveryMs);
    }
  }).pipe(Effect.catchTag("RecorderError", storeFailed));

/**
 * The run has ended on record, or has no record, and the journal does not say how: its process died in between. A part or a call
 * that is not in the journal was not shown and not run.
 */
const cutOff: StepOutcome = { _tag: "ended", ending: "cut", attempts: 0, finish: undefined };

/**
 * Judges the calls that began and have no result although their response is whole: the run does not ask about them, because a
 * whole response needs no retry. Their tools are asked, and a person where a tool cannot tell.
 *
 * @returns the outcome, or that the run waits for the person
 */
export const judgeOpenCalls = (
  run: string,
  outcome: StepOutcome,
  { toolbox, state, watch }: ModelStep.StepOptions,
  confirm: (call: StartedCall) => Effect.Effect<CallVerdict | "parked">,
): Effect.Effect<StepOutcome> =>
  Effect.gen(function* () {
    if (outcome._tag === "interrupted") return outcome;
    for (const call of state.openRun?.unknown ?? []) {
      const known = toolbox.verify(call);
      const verdict = known === "unknown" ? yield* confirm(call) : known;
      if (verdict === "parked") return { _tag: "interrupted", error: parkedOn(run, call) };
      yield* state.add({ _tag: "Judged", run, attempt: call.attempt, call: call.call, verdict });
      watch({ _tag: "Judged", tool: call.tool, verdict });
    }
    return outcome;
  });

const parkedOn = (run: string, { tool }: StartedCall): RunInterrupted =>
  new RunInterrupted({
    reason: "parked",
    run_id: run,
    rule: "tool_outcome_unknown",
    failure: { kind: "crashed" },
    attempts: 0,
    message: `the process died while ${tool} ran; whether it took effect is not known`,
  });

const storeFailed = ({ message }: RecorderError): Effect.Effect<never, AgentError> =>
  Effect.fail(new AgentError({ reason: "store", message }));
