/**
 * Feeds the parts of a run and its end into a web stream for the AI SDK, on demand.
 */
import { Cause, Context, Effect, Exit, type Fiber, Pull, Stream } from "effect";
import { InterruptSignature, stopperOfSignal } from "../../runtime/contract/InterruptSignature.ts";
import type { StreamPart } from "./Parts.ts";

/** Starts an effect with the services of a recovery. */
export type Fork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>;

/** A web stream that is fed by a run. */
export interface WebStream {
  readonly stream: ReadableStream<StreamPart>;
  /** Resolves when the first parts have arrived, or when the run has ended without parts. */
  readonly begun: Promise<void>;
}

/**
 * Feeds a web stream from a run.
 *
 * If the run fails, the stream itself errors. An `error` part would make the SDK return the partial text as `result.text`, and it might
 * retry in addition to the run (`streamRetries`).
 *
 * @param parts the parts to deliver
 * @param signal the caller's abort signal; it stops the run on behalf of the user, unless its reason is a timeout
 */
export const webStreamOf = <E>(
  fork: Fork,
  parts: Stream.Stream<StreamPart, E>,
  signal: AbortSignal | undefined,
): WebStream => {
  const demand = new Demand();
  const begun = Promise.withResolvers<void>();
  const stopping = new AbortController();
  const stream = new ReadableStream<StreamPart>(
    {
      start: (controller) => {
        const fiber = fork(Effect.scoped(feed(parts, demand, controller, begun.resolve)));
        const interrupt = () => fiber.interruptUnsafe(undefined, signedByUser);
        stopping.signal.addEventListener("abort", interrupt, { once: true });
        fiber.addObserver((exit) => {
          begun.resolve();
          if (!stopping.signal.aborted) end(exit, controller, signal);
          demand.end();
        });
        interruptOnAbort(fiber, signal);
      },
      pull: () => demand.ask(),
      cancel: () => stopping.abort(),
    },
    // A part counts as shown when it is read (L4), so no part is read ahead except those that arrived together with the first.
    { highWaterMark: 0 },
  );
  return { stream, begun: begun.promise };
};

/**
 * Runs an effect and returns its value. Like `webStreamOf`, it stops when the caller's signal aborts.
 *
 * @returns the value; rejects with the signal's own reason if the signal has aborted
 */
export const promiseOf = async <A, E>(
  fork: Fork,
  effect: Effect.Effect<A, E>,
  signal: AbortSignal | undefined,
): Promise<A> => {
  const fiber = fork(effect);
  interruptOnAbort(fiber, signal);
  const exit = await new Promise<Exit.Exit<A, E>>((resolve) => fiber.addObserver(resolve));
  if (Exit.isSuccess(exit)) return exit.value;
  throw errorOf(exit.cause, signal);
};

/** Interrupts a fiber when the caller's signal aborts. The listener is removed when the fiber ends. */
const interruptOnAbort = (fiber: Fiber.Fiber<unknown, unknown>, signal: AbortSignal | undefined): void => {
  if (signal === undefined) return;
  const onAbort = () => fiber.interruptUnsafe(undefined, signatureOf(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  fiber.addObserver(() => signal.removeEventListener("abort", onAbort));
  if (signal.aborted) onAbort();
};

const feed = <E>(
  parts: Stream.Stream<StreamPart, E>,
  demand: Demand,
  controller: ReadableStreamDefaultController<StreamPart>,
  begun: () => void,
) =>
  Effect.gen(function* () {
    const pull = yield* Stream.toPull(parts);
    while (true) {
      const chunk = yield* pull;
      for (const part of chunk) controller.enqueue(part);
      begun();
      yield* demand.met;
    }
  });

const end = <E>(
  exit: Exit.Exit<unknown, E | Cause.Done>,
  controller: ReadableStreamDefaultController<StreamPart>,
  signal: AbortSignal | undefined,
): void => {
  if (Exit.isFailure(exit) && !Pull.isDoneCause(exit.cause)) controller.error(errorOf(exit.cause, signal));
  else controller.close();
};

/** Returns the reason of the signal if it has aborted, otherwise the run's failure. */
const errorOf = (cause: Cause.Cause<unknown>, signal: AbortSignal | undefined): unknown =>
  signal?.aborted === true ? signal.reason : Cause.squash(cause);

const signedByUser = Context.make(InterruptSignature, "user");

/**
 * Signs an interrupt as the user's, unless it is caused by a timeout: `AbortSignal.timeout` and the SDK's timeouts are limits that the
 * caller sets, not cancels by the user (L10).
 */
const signatureOf = (signal: AbortSignal | undefined): Context.Context<never> | undefined =>
  stopperOfSignal(signal) === "user" ? signedByUser : undefined;

/** Tells the feeding fiber that the reader asks for more parts. */
class Demand {
  #resolveAsk: (() => void) | undefined;
  #wake: (() => void) | undefined;
  #over = false;

  /** Asks for a part. Resolves when a part was delivered, or when no more parts follow. */
  ask(): Promise<void> {
    if (this.#over) return Promise.resolve();
    return new Promise((met) => {
      this.#resolveAsk = met;
      this.#wake?.();
    });
  }

  /** Resolves the reader's request after parts were delivered, and waits for the next request. */
  readonly met: Effect.Effect<void> = Effect.callback((resume) => {
    this.#resolveAsk?.();
    this.#resolveAsk = undefined;
    const wake = () => {
      this.#wake = undefined;
      resume(Effect.void);
    };
    this.#wake = wake;
  });

  end(): void {
    this.#over = true;
    this.#resolveAsk?.();
  }
}
