/**
 * Keeps what is logged, a text a line.
 */
import { Layer, Logger, References } from "effect";
import { lineOf } from "../../../src/gateway/log/LogLine.ts";

/** A log, and what was said in it: level, message and fields, without the time. */
export const heard = () => {
  const said: Array<string> = [];
  const logger = Logger.make<unknown, void>(({ cause, date, logLevel, message }) => {
    said.push(lineOf("text", { cause, date, logLevel, message, annotations: {} }).replace(/^\S+ +(\S+) +/, "$1 "));
  });
  const log = Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Info" as const));
  return { log, said };
};
