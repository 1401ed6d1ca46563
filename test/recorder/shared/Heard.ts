/**
 * Collects log lines as text.
 */
import { Layer, Logger, References } from "effect";
import { lineOf } from "../../../src/gateway/log/LogLine.ts";

/** A logger and the lines it got: level, message and fields, without the time. */
export const heard = () => {
  const said: Array<string> = [];
  const logger = Logger.make<unknown, void>(({ cause, date, logLevel, message }) => {
    said.push(lineOf("text", { cause, date, logLevel, message, annotations: {} }).replace(/^\S+ +(\S+) +/, "$1 "));
  });
  const log = Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Info" as const));
  return { log, said };
};
