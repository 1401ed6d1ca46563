/**
 * Shows that something happens: a line for every run as it finishes, in one place on a terminal.
 */
import { Effect } from "effect";

/** Columns of a terminal that does not say how wide it is. */
const columnsDefault = 80;

/** Counts finished runs. */
export interface Progress {
  /** One more run has finished. */
  readonly finished: (name: string, ok: boolean) => Effect.Effect<void>;
  /** Everything has finished: what follows stands on a line of its own. */
  readonly done: Effect.Effect<void>;
}

/**
 * Shows progress.
 *
 * @param stream where to: stderr, so that a table or JSON on stdout stays clean
 * @param total runs that will finish
 */
export const make = (stream: NodeJS.WriteStream, total: number): Progress => {
  const width = String(total).length;
  const inPlace = stream.isTTY === true;
  let count = 0;
  const write = (text: string) => Effect.sync(() => void stream.write(text));
  return {
    finished: (name, ok) =>
      Effect.suspend(() => {
        count += 1;
        const line = `[${String(count).padStart(width)}/${total}] ${ok ? "ok  " : "FAIL"} ${name}`;
        return write(inPlace ? `\r\u001b[2K${line.slice(0, (stream.columns || columnsDefault) - 1)}` : `${line}\n`);
      }),
    done: write(inPlace ? "\r\u001b[2K" : ""),
  };
};

/** From one line to the next where lines are not written over each other, in things that were counted. */
const lineEvery = 10_000;

/** Counts what goes by in large numbers. */
export interface Counter {
  /** So many have gone by. */
  readonly reached: (count: number) => void;
  /** Nothing more goes by: what follows stands on a line of its own. */
  readonly done: () => void;
}

/**
 * Shows how many have gone by: in one place on a terminal, else by a line for each 10,000.
 *
 * @param stream where to: stderr, so that what is counted may go to stdout
 * @param words what is said of a number
 */
export const counting = (stream: NodeJS.WriteStream, words: (count: string) => string): Counter => {
  const inPlace = stream.isTTY === true;
  let told = 0;
  return {
    reached: (count) => {
      if (!inPlace && Math.floor(count / lineEvery) === Math.floor(told / lineEvery)) return;
      told = count;
      const line = words(count.toLocaleString("en-US"));
      stream.write(inPlace ? `\r\u001b[2K${line.slice(0, (stream.columns || columnsDefault) - 1)}` : `${line}\n`);
    },
    done: () => {
      if (inPlace) stream.write("\r\u001b[2K");
    },
  };
};
