/**
 * Reads what a person types, line by line, from a terminal or a pipe.
 */
import { createInterface, type Interface } from "node:readline";
import { Effect } from "effect";

/** The lines of one input. */
export interface LineReader {
  /** The next line; undefined at the end of the input. */
  readonly next: Effect.Effect<string | undefined>;
  /** Drops lines that were typed and not read: they were not meant for the question that comes next. */
  readonly forget: () => void;
  readonly close: () => void;
}

/** Makes a reader that opens its input with the first read, so that an unread input stays available to other readers. */
export const make = (input: NodeJS.ReadableStream): LineReader => {
  const waiting: Array<string> = [];
  let ended = false;
  let wake: (() => void) | undefined;
  let opened: Interface | undefined;
  const arrived = () => {
    const woken = wake;
    wake = undefined;
    woken?.();
  };
  const begin = () => {
    if (opened !== undefined) return;
    // The terminal edits the line itself, and Ctrl-C stays a signal.
    opened = createInterface({ input, terminal: false });
    opened.on("line", (line) => {
      waiting.push(line);
      arrived();
    });
    opened.once("close", () => {
      ended = true;
      arrived();
    });
  };
  return {
    next: Effect.suspend(() => {
      begin();
      const taken = () => waiting.shift();
      if (waiting.length > 0 || ended) return Effect.sync(taken);
      return Effect.callback<string | undefined>((resume) => {
        wake = () => resume(Effect.sync(taken));
        return Effect.sync(() => {
          wake = undefined;
        });
      });
    }),
    forget: () => {
      waiting.length = 0;
    },
    close: () => opened?.close(),
  };
};
