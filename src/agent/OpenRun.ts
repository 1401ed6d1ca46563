/**
 * Goes on with the run that an earlier process left open: by its record, and where that has ended by the journal.
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
import type { Called } from "./conversation/ChatRun.ts";
import type { Ending, Verdict } from "./conversation/Entry.ts";
import * as Step from "./ModelStep.ts";

/** How a request came out. */
export type Outcome =
  | {
      readonly _tag: "ended";
      readonly ending: Ending;
      readonly attempts: number;
      readonly finish: string | undefined;
    }
  | { readonly _tag: "interrupted"; readonly error: RunInterrupted };

/** How often it is looked whether the lease of the process before is over, in milliseconds. */
const lookEveryMs = 100;

/** Most refusals of a resume before the chat goes on by its journal alone: its tools may be others than when the run began. */
const refusalsMax = 5;

/** What a request came to. */
export const outcomeOf = <E, R>(
  played: Effect.Effect<RunCompleted | undefined, RunInterrupted | E, R>,
): Effect.Effect<Outcome, Exclude<E, RunInterrupted>, R> =>
  played.pipe(
    Effect.map(
      (completed): Outcome => ({
        _tag: "ended",
        ending: "completed",
        attempts: completed?.attempts ?? 0,
        finish: completed?.finish,
      }),
    ),
    Effect.catchIf(
      (error): error is RunInterrupted => error instanceof RunInterrupted,
      (error) => Effect.succeed<Outcome>({ _tag: "interrupted", error }),
    ),
    // `catchIf` took the one error that is a RunInterrupted; the compiler keeps it in a generic union.
  ) as Effect.Effect<Outcome, Exclude<E, RunInterrupted>, R>;

type Services = StreamProcessor | ProviderClient | RunRecorder;

/** Goes on with a run until it has ended or is parked. */
export const goOn = (run: string, given: Step.StepOptions): Effect.Effect<Outcome, AgentError, Services> =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    const processor = yield* StreamProcessor;
    let told = false;
    let refusals = 0;
    while (true) {
      yield* CrashRecovery.recover();
      const record = yield* recorder.run(run);
      if (record === undefined || record.state === "ended") return lost;
      const transcript = given.transcript.answering?.transcript ?? "";
      if (record.parked !== undefined) {
        const step = yield* Step.make(run, given);
        const outcome = yield* outcomeOf(step.play(processor.takeUp(run, { request: step.options, transcript })));
        if (outcome._tag === "ended" || outcome.error.reason !== "refused") return outcome;
        // Another process may have been faster. What is refused again and again goes on without its record.
        refusals += 1;
        if (refusals >= refusalsMax) return lost;
      }
      if (!told) given.watch({ _tag: "Waiting", run });
      told = true;
      yield* Effect.sleep(lookEveryMs);
    }
  }).pipe(Effect.catchTag("RecorderError", storeFailed));

/**
 * The run has ended on record, or was never there, and the journal does not know how: its process died in between. What was
 * not written down was not seen and not run.
 */
const lost: Outcome = { _tag: "ended", ending: "cut", attempts: 0, finish: undefined };

/**
 * Looks at the calls that began and have no result although their answer is over: the record asks no more about them, because
 * a whole answer needs no retry. Their tools are asked, and a person where nobody can tell.
 *
 * @returns the outcome, or that the run waits for the person
 */
export const accounted = (
  run: string,
  outcome: Outcome,
  { toolbox, transcript, watch }: Step.StepOptions,
  confirm: (call: Called) => Effect.Effect<Verdict | "parked">,
): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    if (outcome._tag === "interrupted") return outcome;
    for (const call of transcript.answering?.unknown ?? []) {
      const known = toolbox.verify(call);
      const verdict = known === "unknown" ? yield* confirm(call) : known;
      if (verdict === "parked") return { _tag: "interrupted", error: unanswered(run, call) };
      transcript.add({ _tag: "Judged", run, attempt: call.attempt, call: call.call, verdict });
      watch({ _tag: "Judged", tool: call.tool, verdict });
    }
    return outcome;
  });

const unanswered = (run: string, { tool }: Called): RunInterrupted =>
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
