/**
 * Lets a program stop a recovered model on behalf of its user (L10). That stops the run, and the calls that still run after its response.
 */
import { Context, Effect, Stream } from "effect";
import type { AiError } from "effect/ai";
import { stopFailure, stopperOfSignal } from "../../runtime/contract/InterruptSignature.ts";
import { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { CallReference } from "../../runtime/contract/ToolCall.ts";
import { ofRun } from "./LanguageModelError.ts";

/**
 * The signal of the user's Stop, for all requests of an effect or a stream: `Stream.provideService(chat.streamText({ prompt, toolkit }),
 * EffectAi.StopSignal, stop.signal)`.
 *
 * If the signal aborts, the current run ends as `user_cancelled`, running tools are interrupted, and later requests are not sent. A signal
 * that aborts because of a timeout (`AbortSignal.timeout`) has the same effect, but does not count as a Stop of the user.
 */
export const StopSignal = Context.Reference<AbortSignal | undefined>("effect-stream-recovery/effect-ai/StopSignal", {
  defaultValue: () => undefined,
});

type Stopped = Pick<CallReference, "run_id"> & { readonly attempt?: number };

/**
 * Runs the work of a call until the signal aborts. The run of the call may have ended by then, so the run cannot stop the work.
 *
 * @param call the call that the work belongs to; omitted if the call belongs to no run
 */
export const untilStopped = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  signal: AbortSignal | undefined,
  call?: Stopped,
): Effect.Effect<A, E | AiError.AiError, R> => {
  if (signal === undefined) return work;
  const stop = failOnAbort(signal, call);
  // If the signal has already aborted, the work must not start.
  return Effect.suspend(() => (signal.aborted ? stop : Effect.raceFirst(work, stop)));
};

/** Emits results as they arrive, until the signal aborts. */
export const streamUntilStopped = <A, E, R>(
  results: Stream.Stream<A, E, R>,
  signal: AbortSignal | undefined,
): Stream.Stream<A, E | AiError.AiError, R> => {
  if (signal === undefined) return results;
  const stop = failOnAbort(signal);
  return Stream.suspend(() => (signal.aborted ? Stream.fromEffect(stop) : Stream.interruptWhen(results, stop)));
};

const failOnAbort = (signal: AbortSignal, call?: Stopped): Effect.Effect<never, AiError.AiError> =>
  Effect.callback((resume) => {
    const onAbort = () => resume(Effect.fail(errorOf(signal, call)));
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    return Effect.sync(() => signal.removeEventListener("abort", onAbort));
  });

const sentences = {
  user: "The user stopped the call.",
  caller: "The call was interrupted by a limit of the program around it.",
} as const;

const errorOf = (signal: AbortSignal, { attempt = 0, run_id }: Stopped = { run_id: "" }): AiError.AiError => {
  const by = stopperOfSignal(signal) ?? "user";
  return ofRun(
    "handle",
    new RunInterrupted({
      reason: "do_not_retry",
      run_id,
      rule: by === "user" ? "user_cancelled" : "caller_interrupted",
      failure: stopFailure(by),
      attempts: attempt,
      message: sentences[by],
    }),
  );
};
