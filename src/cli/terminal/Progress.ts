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
