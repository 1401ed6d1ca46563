/**
 * Wraps the `execute` function of a tool so that its handler runs inside the guard.
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
 * Returns the guarded `execute` of a tool, or an empty object for a tool without `execute`.
 *
 * A generator function stays a generator function, so that its preliminary results arrive one by one. If an ordinary function returns an
 * iterable, the guard reads it to the end, and only its last result is visible.
 */
export const guardExecute = (tool: ToolSet[string], start: Start): { readonly execute?: Execute } => {
  const execute: Execute | undefined = tool.execute;
  if (execute === undefined) return {};
  // Some `execute` functions use `this`: the SDK calls them as methods of the tool.
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

/** A handler threw `cause`, which is kept unchanged. The call has settled, and the SDK sends the error to the model. */
export class HandlerFailed extends Schema.TaggedError<HandlerFailed>()("HandlerFailed", {
  reason: Schema.Literal("handler_threw"),
  cause: Schema.Unknown,
}) {}

const tryHandler = (call: () => unknown): Effect.Effect<unknown, HandlerFailed> =>
  Effect.tryPromise({
    try: async () => await resolveLast(call()),
    catch: (cause) => new HandlerFailed({ reason: "handler_threw", cause }),
  });

/** Returns the last result of an iterable, or a plain result itself. */
const resolveLast = async (result: unknown): Promise<unknown> => {
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

/** Forwards the results of a generator that runs inside the guard to the SDK, one at a time. */
class PreliminaryResults {
  #offered: { readonly output: unknown; readonly taken: () => void } | undefined;
  #wake: (() => void) | undefined;
  #left = false;

  /** Runs the handler inside the guard. After each result it waits until the SDK has read the result. */
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

  /** Yields the results as the SDK reads them. If the SDK stops reading, the handler ends at its next result. */
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
      // If the reader has not left, it has already received the error.
      await ended.catch(() => undefined);
    }
  }
}
