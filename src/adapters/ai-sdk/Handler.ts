/**
 * Wraps the `execute` of a tool, so that its handler starts inside the guard.
 */
import type { ToolSet } from "ai";
import { Effect, Schema } from "effect";

type Execute = NonNullable<ToolSet[string]["execute"]>;
type ExecuteOptions = Parameters<Execute>[1];

type Start = (
  call: { readonly id: string; readonly input: unknown },
  handler: Effect.Effect<unknown, HandlerFailed>,
) => Promise<unknown>;

/**
 * Returns the guarded `execute` of a tool, and nothing for a tool without one.
 *
 * A generator stays a generator, so that its preliminary results are seen as they arrive. A plain function that returns an
 * iterable is read to its end inside the guard, and only its last result is seen.
 */
export const guardExecute = (tool: ToolSet[string], start: Start): { readonly execute?: Execute } => {
  const execute: Execute | undefined = tool.execute;
  if (execute === undefined) return {};
  // The SDK calls `execute` as a method of its tool.
  const call = (input: unknown, options: ExecuteOptions) => execute.call(tool, input, options);
  if (!isGenerator(execute)) {
    return {
      execute: (input, options) =>
        start(
          { id: options.toolCallId, input },
          tryHandler(() => call(input, options)),
        ),
    };
  }
  return {
    execute: (input, options) => {
      const preliminary = new PreliminaryResults();
      const handler = tryHandler(() => preliminary.read(() => call(input, options)));
      return preliminary.results(() => start({ id: options.toolCallId, input }, handler));
    },
  };
};

/** A handler threw `cause`, which is kept unchanged. The call has settled, and the SDK passes the error to the model. */
export class HandlerFailed extends Schema.TaggedError<HandlerFailed>()("HandlerFailed", {
  reason: Schema.Literal("handler_threw"),
  cause: Schema.Unknown,
}) {}

const tryHandler = (call: () => unknown): Effect.Effect<unknown, HandlerFailed> =>
  Effect.tryPromise({
    try: async () => await last(call()),
    catch: (cause) => new HandlerFailed({ reason: "handler_threw", cause }),
  });

/** Returns the last result of an iterable, or the result itself. */
const last = async (result: unknown): Promise<unknown> => {
  const value = await result;
  if (!isIterable(value)) return value;
  let newest: unknown;
  for await (const output of value) newest = output;
  return newest;
};

const isIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value;

const isGenerator = (execute: (...args: never) => unknown): boolean =>
  Object.prototype.toString.call(execute) === "[object AsyncGeneratorFunction]";

/** Passes the results of a generator that runs inside the guard to the SDK, one at a time. */
class PreliminaryResults {
  #offered: { readonly output: unknown; readonly taken: () => void } | undefined;
  #wake: (() => void) | undefined;
  #left = false;

  /** Reads the handler inside the guard. Each result waits until it is taken. */
  async read(open: () => unknown): Promise<void> {
    const source = open();
    if (!isIterable(source)) return;
    for await (const output of source) {
      await new Promise<void>((taken) => {
        this.#offered = { output, taken };
        this.#wake?.();
      });
      if (this.#left) return;
    }
  }

  /** Yields the results as the SDK reads them. After the reader has left, the handler ends at its next result. */
  async *results(start: () => Promise<unknown>): AsyncGenerator<unknown, void> {
    let over = false;
    const ended = start().finally(() => {
      over = true;
      this.#wake?.();
    });
    try {
      while (true) {
        if (this.#offered === undefined && !over) {
          await new Promise<void>((wake) => {
            this.#wake = wake;
            if (this.#offered !== undefined || over) wake();
          });
        }
        const offered = this.#offered;
        if (offered === undefined) break;
        this.#offered = undefined;
        try {
          yield offered.output;
        } finally {
          offered.taken();
        }
      }
      await ended;
    } finally {
      this.#left = true;
      this.#offered?.taken();
      // A reader that is still there already has the error.
      await ended.catch(() => undefined);
    }
  }
}
