/**
 * Gives the gateway's log: a logger of one line an event, and the access line of a request.
 */
import { Console, Effect, type Layer, Logger, References } from "effect";
import type { Access } from "./AccessRecord.ts";
import { type LogFormat, lineOf } from "./LogLine.ts";

/**
 * Replaces the program's loggers by one that writes lines to its console: to stderr where `Logger.LogToStderr` says so.
 *
 * @param format of the lines
 */
export const layer = (format: LogFormat): Layer.Layer<never> =>
  Logger.layer([
    Logger.make(({ cause, date, fiber, logLevel, message }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations);
      const line = lineOf(format, { cause, date, logLevel, message, annotations });
      const out = fiber.getRef(Console.Console);
      if (fiber.getRef(Logger.LogToStderr)) out.error(line);
      else out.log(line);
    }),
  ]);

/**
 * Writes the access line of a request that is over. The gateway's own paths are asked for again and again, by probes and open
 * pages: where they answer, their line has the level Debug.
 */
export const accessLine = (access: Access): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { record } = access;
    const fields = { ...record };
    return access.own && (record.status ?? 0) < 400
      ? Effect.logDebug("request", fields)
      : Effect.logInfo("request", fields);
  });
