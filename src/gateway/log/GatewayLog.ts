/**
 * Provides the gateway's logger, which writes one line per event, and the access line of a request.
 */
import { Clock, Console, Effect, type Layer, Logger, References, type Scope } from "effect";
import { Alarm, Alarms } from "../../adapters/relay/Alarms.ts";
import type { Access, AccessRecord } from "./AccessRecord.ts";
import { type LogFormat, lineOf } from "./LogLine.ts";

/**
 * Replaces the program's loggers with one that writes lines to the console, or to stderr if `Logger.LogToStderr` is set.
 *
 * Each write blocks the event loop, so lines that arrive within `linesMs` are written together. A warning or an error is written at once,
 * together with pending lines. Pending lines are also written when the process exits. After the layer is closed, each line is written at
 * once.
 *
 * @param format the format of the lines
 */
export const layer = (format: LogFormat): Layer.Layer<never> => Logger.layer([makeLogger(format)]);

/** Maximum delay of a log line, in milliseconds. */
export const linesMs = 10;

const makeLogger = Effect.fnUntraced(function* (
  format: LogFormat,
): Effect.fn.Return<Logger.Logger<unknown, void>, never, Scope.Scope> {
  const lines = new WaitingLines(Alarms.of(yield* Clock.Clock));
  const onExit = () => lines.waitNoMore();
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("exit", onExit)),
    () =>
      Effect.sync(() => {
        onExit();
        process.off("exit", onExit);
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

class WaitingLines {
  #lines: Array<string> = [];
  #out: Console.Console | undefined;
  #toStderr = false;
  #waits = true;
  readonly #alarms: Alarms;
  readonly #due = new Alarm(() => this.flush());

  constructor(alarms: Alarms) {
    this.#alarms = alarms;
  }

  add(line: string, out: Console.Console, toStderr: boolean): void {
    if (out !== this.#out || toStderr !== this.#toStderr) this.flush();
    if (this.#lines.length === 0) this.#alarms.set(this.#due, this.#alarms.now() + linesMs);
    this.#out = out;
    this.#toStderr = toStderr;
    this.#lines.push(line);
    if (!this.#waits) this.flush();
  }

  /**
   * Writes the pending lines, and from now on each line at once. A fiber may outlive its logger, and the process might exit before a
   * delayed write.
   */
  waitNoMore(): void {
    this.#waits = false;
    this.flush();
  }

  flush(): void {
    if (this.#lines.length === 0) return;
    this.#alarms.clear(this.#due);
    const text = this.#lines.join("\n");
    this.#lines = [];
    if (this.#toStderr) this.#out?.error(text);
    else this.#out?.log(text);
  }
}

/**
 * Writes the access line of a completed request. Successful requests for the gateway's own paths have the level Debug, because probes and
 * open pages repeat them.
 */
export const accessLine = ({ isOwn }: Pick<Access, "isOwn">, record: AccessRecord): Effect.Effect<void> =>
  isOwn && (record.status ?? 0) < 400 ? Effect.logDebug("request", record) : Effect.logInfo("request", record);
