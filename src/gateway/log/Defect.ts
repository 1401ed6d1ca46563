/**
 * Describes a defect for a log by its class, its code and its location only, because its message may contain data of a client or a
 * provider.
 */
import { Cause, Effect } from "effect";
import { label } from "../../domain/Limits.ts";

/** The facts of a defect that may be logged. */
export interface DefectLabels {
  readonly class: string;
  readonly code?: string;
  readonly at?: string;
}

/**
 * Logs a defect. A cause that consists only of interrupts is not logged.
 *
 * @param what the failure, as a sentence
 */
export const logDefect = (what: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(what, labelsOf(Cause.squash(cause)));

/** Returns the facts of an error that may be logged. */
export const labelsOf = (defect: unknown): DefectLabels => {
  if (!(defect instanceof Error)) return { class: typeof defect };
  const at = framesOf(defect.stack ?? "");
  return {
    class: label(defect.name),
    ...("code" in defect && typeof defect.code === "string" ? { code: label(defect.code) } : {}),
    ...(at === "" ? {} : { at }),
  };
};

/** Returns the first frames of a stack trace, without the message. */
const framesOf = (stack: string): string =>
  stack
    .split("\n")
    .filter((line) => /^ {4}at /.test(line))
    .slice(0, framesMax)
    .map((line) => line.trim())
    .join(" ");

const framesMax = 4;
