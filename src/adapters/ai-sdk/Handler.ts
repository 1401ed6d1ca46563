/**
 * Wraps the `execute` of one tool, so that its handler starts inside the guard.
 */
import type { ToolSet } from "ai";
import { Effect, Schema } from "effect";
import type { Dispatch } from "./CallRegistry.ts";
import type { MarkedTool } from "./MarkedTool.ts";

type Execute = NonNullable<ToolSet[string]["execute"]>;
type ExecuteOptions = Parameters<Execute>[1];

/**
 * Gives the guarded `execute` of a tool; nothing for a tool that has none.
 *
 * A generator stays one, so that its preliminary results are seen as they come. A plain function that returns an iterable is
 * read to its end inside the guard: only its last result is seen.
 */
export const guardedExecute = (
  tool: ToolSet[string],
  marked: MarkedTool,
  dispatch: Dispatch,
): { readonly execute?: Execute } => {
  const execute: Execute | undefined = tool.execute;
  if (execute === undefined) return {};
  // As a method of its tool, which is how the SDK calls it.
  const call = (input: unknown, options: ExecuteOptions) => execute.call(tool, input, options);
  const started = (input: unknown, options: ExecuteOptions, handler: Effect.Effect<unknown, HandlerFailed>) =>
    dispatch(marked, { id: options.toolCallId, input }, handler);
  if (!isGenerator(execute)) {
    return { execute: (input, options) => started(input, options, settled(call, input, options)) };
  }
  return {
    execute: (input, options) => {
      const relay = new Relay();
      const read = (...told: readonly [unknown, ExecuteOptions]) => relay.read(() => call(...told));
      return relay.results(() => started(input, options, settled(read, input, options)));
    },
  };
};

/** What a handler has thrown, unchanged, as its cause. It has answered: the SDK gives its error to the model. */
export class HandlerFailed extends Schema.TaggedError<HandlerFailed>()("HandlerFailed", {
  reason: Schema.Literal("handler_threw"),
  cause: Schema.Unknown,
}) {}

const settled = (
  call: (input: unknown, options: ExecuteOptions) => unknown,
  input: unknown,
  options: ExecuteOptions,
): Effect.Effect<unknown, HandlerFailed> =>
  Effect.tryPromise({
    try: async () => await last(call(input, options)),
    catch: (cause) => new HandlerFailed({ reason: "handler_threw", cause }),
  });

/** The last result of an iterable, or the result itself. */
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

/** Carries the results of a generator that runs inside the guard to the SDK, one at a time. */
class Relay {
  #offered: { readonly output: unknown; readonly taken: () => void } | undefined;
  #wake: (() => void) | undefined;
  #left = false;

  /** Reads the handler inside the guard; each result waits until it is taken. */
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

  /** The results, as the SDK reads them. A reader that leaves ends the handler at its next result. */
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
      // Its error was given to the reader, unless the reader has left.
      await ended.catch(() => undefined);
    }
  }
}
