/**
 * Says of a defect what may stand in a log: its class, its code and where it happened. Its message may hold what a client or a
 * provider sent.
 */
import { Cause, Effect } from "effect";
import { label } from "../../domain/Limits.ts";

/** What is known of a defect without its words. */
export interface DefectLabels {
  readonly class: string;
  readonly code?: string;
  readonly at?: string;
}

/**
 * Writes a defect to the log; an interrupt alone is none.
 *
 * @param what failed, as a sentence
 */
export const logged = (what: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(what, labelsOf(Cause.squash(cause)));

/** What a log may say of an error. */
export const labelsOf = (defect: unknown): DefectLabels => {
  if (!(defect instanceof Error)) return { class: typeof defect };
  const at = framesOf(defect.stack ?? "");
  return {
    class: label(defect.name),
    ...("code" in defect && typeof defect.code === "string" ? { code: label(defect.code) } : {}),
    ...(at === "" ? {} : { at }),
  };
};

/** The first frames of a stack; the lines before them are the message. */
const framesOf = (stack: string): string =>
  stack
    .split("\n")
    .filter((line) => /^ {4}at /.test(line))
    .slice(0, framesMax)
    .map((line) => line.trim())
    .join(" ");

const framesMax = 4;
