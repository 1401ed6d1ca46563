/**
 * Reads what a person types, line by line, from a terminal or a pipe.
 */
import { createInterface, type Interface } from "node:readline";
import { Effect } from "effect";

/** The lines of one input. */
export interface Lines {
  /** The next line; undefined at the end of the input. */
  readonly next: Effect.Effect<string | undefined>;
  /** Forgets what was typed and not taken: it was not meant for what is asked now. */
  readonly forget: () => void;
  readonly close: () => void;
}

/** Opens an input when its first line is wanted: what nobody asks for is left to others. */
export const make = (input: NodeJS.ReadableStream): Lines => {
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
