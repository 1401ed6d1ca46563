/**
 * Gives the gateway's log: a logger of one line an event, and the access line of a request.
 */
import { Clock, Console, Effect, type Layer, Logger, References, type Scope } from "effect";
import { type Deadline, Deadlines } from "../../adapters/relay/deadline/Deadlines.ts";
import type { Access, AccessRecord } from "./AccessRecord.ts";
import { type LogFormat, lineOf } from "./LogLine.ts";

/**
 * Replaces the program's loggers by one that writes lines to its console: to stderr where `Logger.LogToStderr` says so.
 *
 * Lines that come within `linesMs` are written together, because each write blocks the loop. A warning or an error is written at
 * once, and so is everything that is left when the process exits, or comes behind the layer's end.
 *
 * @param format of the lines
 */
export const layer = (format: LogFormat): Layer.Layer<never> => Logger.layer([made(format)]);

/** How long a line waits for others, in milliseconds. */
export const linesMs = 10;

const made = Effect.fnUntraced(function* (
  format: LogFormat,
): Effect.fn.Return<Logger.Logger<unknown, void>, never, Scope.Scope> {
  const lines = new WaitingLines(Deadlines.of(yield* Clock.Clock));
  const over = () => lines.waitNoMore();
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("exit", over)),
    () =>
      Effect.sync(() => {
        over();
        process.off("exit", over);
      }),
  );
  return Logger.make(({ cause, date, fiber, logLevel, message }) => {
    const annotations = fiber.getRef(References.CurrentLogAnnotations);
    const line = lineOf(format, { cause, date, logLevel, message, annotations });
    const out = fiber.getRef(Console.Console);
    lines.add(line, out, fiber.getRef(Logger.LogToStderr));
    if (out !== globalThis.console || !(logLevel === "Info" || logLevel === "Debug" || logLevel === "Trace"))
      lines.flush();
  });
});

/** Lines that are written together. */
class WaitingLines {
  #lines: Array<string> = [];
  #out: Console.Console | undefined;
  #toStderr = false;
  #waits = true;
  readonly #deadlines: Deadlines;
  readonly #due: Deadline = { act: () => this.flush(), at: 0, place: -1 };

  constructor(deadlines: Deadlines) {
    this.#deadlines = deadlines;
  }

  add(line: string, out: Console.Console, toStderr: boolean): void {
    if (out !== this.#out || toStderr !== this.#toStderr) this.flush();
    if (this.#lines.length === 0) this.#deadlines.set(this.#due, this.#deadlines.now() + linesMs);
    this.#out = out;
    this.#toStderr = toStderr;
    this.#lines.push(line);
    if (!this.#waits) this.flush();
  }

  /** Writes those that wait, and each that still comes at once: a fiber may outlive its logger, and the process ends with neither. */
  waitNoMore(): void {
    this.#waits = false;
    this.flush();
  }

  flush(): void {
    if (this.#lines.length === 0) return;
    this.#deadlines.clear(this.#due);
    const text = this.#lines.join("\n");
    this.#lines = [];
    if (this.#toStderr) this.#out?.error(text);
    else this.#out?.log(text);
  }
}

/**
 * Writes the access line of a request that is over. The gateway's own paths are asked for again and again, by probes and open
 * pages: where they answer, their line has the level Debug.
 */
export const accessLine = ({ own }: Pick<Access, "own">, record: AccessRecord): Effect.Effect<void> =>
  own && (record.status ?? 0) < 400 ? Effect.logDebug("request", record) : Effect.logInfo("request", record);
