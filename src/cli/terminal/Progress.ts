/**
 * Prints progress: a line per finished run, updated in place on a terminal.
 */
import { Effect } from "effect";

/** Width of a terminal that does not report one. */
const columnsDefault = 80;

/** Counts finished runs on a terminal or in a log. */
export interface Progress {
  readonly report: (name: string, ok: boolean) => Effect.Effect<void>;
  /** Clears the progress line, so that later output starts on an empty line. */
  readonly done: Effect.Effect<void>;
}

/**
 * Starts a progress report.
 *
 * @param stream stderr, so that a table or JSON on stdout stays clean
 * @param total number of runs that will finish
 */
export const make = (stream: NodeJS.WriteStream, total: number): Progress => {
  const width = String(total).length;
  const inPlace = stream.isTTY === true;
  let count = 0;
  const write = (text: string) => Effect.sync(() => void stream.write(text));
  return {
    report: (name, ok) =>
      Effect.suspend(() => {
        count += 1;
        const line = `[${String(count).padStart(width)}/${total}] ${ok ? "ok  " : "FAIL"} ${name}`;
        return write(inPlace ? `\r\u001b[2K${line.slice(0, (stream.columns || columnsDefault) - 1)}` : `${line}\n`);
      }),
    done: write(inPlace ? "\r\u001b[2K" : ""),
  };
};

/** Number of counted items between two lines if the output is not updated in place. */
const lineEvery = 10_000;

/** Shows a count that may reach thousands, without a line for each item. */
export interface Counter {
  readonly update: (count: number) => void;
  /** Clears the progress line, so that later output starts on an empty line. */
  readonly done: () => void;
}

/**
 * Starts a count: updated in place on a terminal, otherwise a line per 10,000.
 *
 * @param stream stderr, so that the counted items may go to stdout
 * @param words formats the count
 */
export const startCounter = (stream: NodeJS.WriteStream, words: (count: string) => string): Counter => {
  const inPlace = stream.isTTY === true;
  let shown = 0;
  return {
    update: (count) => {
      if (!inPlace && Math.floor(count / lineEvery) === Math.floor(shown / lineEvery)) return;
      shown = count;
      const line = words(count.toLocaleString("en-US"));
      stream.write(inPlace ? `\r\u001b[2K${line.slice(0, (stream.columns || columnsDefault) - 1)}` : `${line}\n`);
    },
    done: () => {
      if (inPlace) stream.write("\r\u001b[2K");
    },
  };
};
