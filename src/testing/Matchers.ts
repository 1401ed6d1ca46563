/** Describes and checks RunEvents without a test framework. The results are readable in a failed assertion. */
import { Exit } from "effect";
import type { RunEvent } from "../runtime/contract/RunEvent.ts";
import { GrammarCheck } from "./GrammarCheck.ts";

/**
 * Describes one event in a readable line.
 *
 * @param name the display name of a part
 */
export const line = <P>(event: RunEvent<P>, name: (part: P) => string): string => {
  switch (event._tag) {
    case "AttemptStarted":
      return `attempt ${event.attempt} ${event.mode}`;
    case "Part":
      return name(event.part);
    case "AttemptDiscarded":
      return `discard ${event.attempt} after ${event.keep_through}`;
    case "RetryScheduled":
      return `retry ${event.mode} ${event.rule}`;
    case "Waiting":
      return `wait ${event.for}`;
    case "QuestionAsked":
      return `ask ${event.question.rule}`;
    case "QuestionAnswered":
      return `answer ${event.choice}`;
    case "CallVerified":
      return `verified ${event.tool} ${event.verdict}`;
    case "Continued":
      return `continued at ${event.at} by ${event.proof}`;
    case "RunCompleted":
      return "completed";
  }
};

/**
 * Lists the events that a caller saw, one per line, and the end of the stream.
 *
 * @param events the events in order
 * @param name the display name of a part
 * @param exit the end of the stream; without it, there is no line for the end
 */
export const transcript = <P>(
  events: Iterable<RunEvent<P>>,
  name: (part: P) => string,
  exit?: Exit.Exit<unknown, unknown>,
): ReadonlyArray<string> => [
  ...[...events].map((event) => line(event, name)),
  ...(exit === undefined ? [] : endLines(exit)),
];

const endLines = (exit: Exit.Exit<unknown, unknown>): ReadonlyArray<string> => {
  if (Exit.isSuccess(exit)) return [];
  for (const reason of exit.cause.reasons) {
    if (reason._tag === "Fail")
      return [`end ${field(reason.error, "reason")} ${field(reason.error, "rule")}`.trimEnd()];
    if (reason._tag === "Die") return [`defect ${String(reason.defect)}`];
  }
  return ["interrupted"];
};

const field = (error: unknown, name: string): string => {
  const value: unknown = typeof error === "object" && error !== null ? Reflect.get(error, name) : error;
  return value === undefined ? "" : String(value);
};

/**
 * Returns the parts that the caller keeps, in order: those that were delivered and not withdrawn by an `AttemptDiscarded`.
 *
 * @param events the events in order
 */
export const remaining = <P>(events: Iterable<RunEvent<P>>): ReadonlyArray<P> => {
  let kept: Array<Extract<RunEvent<P>, { readonly _tag: "Part" }>> = [];
  for (const event of events) {
    if (event._tag === "Part") kept.push(event);
    if (event._tag === "AttemptDiscarded")
      kept = kept.filter((part) => part.attempt !== event.attempt || part.ordinal <= event.keep_through);
  }
  return kept.map(({ part }) => part);
};

/**
 * Checks events against the grammar that the header comment of RunEvent.ts defines.
 *
 * @param events the events in order, from the first
 * @param exit the end of the stream; omitted if the stream may still be running
 * @returns the violations, each with the position of its event; empty if the events follow the grammar
 */
export const checkGrammar = <P>(
  events: Iterable<RunEvent<P>>,
  exit?: Exit.Exit<unknown, unknown>,
): ReadonlyArray<string> => {
  const check = new GrammarCheck();
  for (const event of events) check.next(event);
  if (exit !== undefined) check.end(Exit.isSuccess(exit));
  return check.violations;
};

/** Number of lines shown before and after a difference. */
const contextLines = 3;

/**
 * Finds the first difference between two transcripts.
 *
 * @returns undefined if the transcripts are equal; otherwise the lines around the difference, like a unified diff
 */
export const difference = (actual: ReadonlyArray<string>, expected: ReadonlyArray<string>): string | undefined => {
  const longest = Math.max(actual.length, expected.length);
  const at = Array.from({ length: longest }, (_, index) => index).find((index) => actual[index] !== expected[index]);
  if (at === undefined) return undefined;
  const from = Math.max(0, at - contextLines);
  const prefixLines = (lines: ReadonlyArray<string>, sign: string) =>
    lines.slice(at, at + contextLines).map((text) => `${sign} ${text}`);
  return [
    `line ${at + 1} differs (- expected, + actual)`,
    ...actual.slice(from, at).map((text) => `  ${text}`),
    ...prefixLines(expected, "-"),
    ...prefixLines(actual, "+"),
  ].join("\n");
};
