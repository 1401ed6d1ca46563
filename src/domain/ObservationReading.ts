/**
 * Reads the observation that a caller's `observe` returns for a part. The caller may be plain JavaScript, so its type is not trusted.
 *
 * A valid observation is returned unchanged, because the check runs once per part and should allocate nothing. An invalid count is replaced
 * by the nearest valid one, because counts are only for reports. An unknown literal or a malformed call is rejected, because no decision
 * may rest on a guess.
 */
import * as Schema from "effect/Schema";
import * as FailureReading from "./FailureReading.ts";
import * as Json from "./Json.ts";
import { label, labelCharactersMax } from "./Limits.ts";
import type { CallSignal, Observation, Usage } from "./Observation.ts";

/**
 * Reports a value of `observe` that is not an observation. `field` is a path, for example `calls[0].phase`; the message begins
 * with it.
 */
export class ObservationError extends Schema.TaggedError<ObservationError>()("ObservationError", {
  reason: Schema.Literals(["missing_field", "bad_value"]),
  field: Schema.String,
  message: Schema.String,
}) {}

/**
 * Returns an observation that the facts can hold.
 *
 * @param given the return value of `observe`
 * @throws ObservationError naming the field and what was expected
 */
export const read = (given: Observation): Observation => (isValid(given) ? given : repair(given));

/** Returns the nearest count that a record can hold: 0 for a negative number and for NaN. */
export const count = (given: number): number => (given >= 0 ? Math.min(Math.floor(given), Number.MAX_SAFE_INTEGER) : 0);

const isValid = (o: Observation): boolean => {
  if (typeof o !== "object" || o === null) return false;
  const { calls, characters } = o;
  return (
    isProgress(o.progress) &&
    isShown(o.shows) &&
    isFlag(o.quiet) &&
    isFlag(o.keep_alive) &&
    isFlag(o.terminal) &&
    Number.isSafeInteger(characters) &&
    characters >= 0 &&
    Array.isArray(calls) &&
    (calls.length === 0 || calls.every(isSignal)) &&
    hasValidOptionals(o)
  );
};

const hasValidOptionals = (o: Observation): boolean =>
  (o.text_before_calls === undefined || isFlag(o.text_before_calls)) &&
  (o.terminal_at_end === undefined || isFlag(o.terminal_at_end)) &&
  (o.closes === undefined || o.closes === "later" || o.closes === "required" || o.closes === "now") &&
  (o.stores === undefined || typeof o.stores === "boolean") &&
  (o.finish === undefined || (typeof o.finish === "string" && o.finish.length <= labelCharactersMax)) &&
  (o.failure === undefined || FailureReading.read(o.failure) === o.failure) &&
  (o.usage === undefined || isUsage(o.usage));

const isFlag = (it: unknown): boolean => it === true || it === false;

// These checks compare the values one by one, the most frequent first, because this is the hot path.
const isProgress = (it: unknown): boolean => it === "output" || it === "reasoning" || it === "started" || it === "none";
const isShown = (it: unknown): boolean => it === "text" || it === "nothing" || it === "reasoning";
const isExecutor = (it: unknown): boolean => it === "runtime" || it === "provider";
const isPhase = (it: unknown): boolean =>
  it === "input_started" || it === "input_complete" || it === "ready" || it === "settled";
const isText = (it: unknown): boolean => it === undefined || typeof it === "string";

const isSignal = (it: CallSignal): boolean =>
  typeof it === "object" &&
  it !== null &&
  isIndex(it.choice) &&
  isIndex(it.ordinal) &&
  isExecutor(it.executor) &&
  isPhase(it.phase) &&
  isText(it.id) &&
  isText(it.tool) &&
  isText(it.input);

const isIndex = (it: unknown): boolean => Json.natural(it) !== undefined;

const isUsage = (it: Usage): boolean =>
  typeof it === "object" &&
  it !== null &&
  (it.input_tokens === undefined || isIndex(it.input_tokens)) &&
  (it.output_tokens === undefined || isIndex(it.output_tokens));

const repair = (given: unknown): Observation => {
  const o = Json.record(given) ?? refuse("observation", "an object", given);
  const { finish, usage } = o;
  return {
    progress: readLiteral("progress", o.progress, ["none", "started", "reasoning", "output"]),
    shows: readLiteral("shows", o.shows, ["nothing", "reasoning", "text"]),
    quiet: readFlag("quiet", o.quiet),
    keep_alive: readFlag("keep_alive", o.keep_alive),
    characters: countOf("characters", o.characters ?? 0),
    calls: readCalls(o.calls),
    terminal: readFlag("terminal", o.terminal),
    ...(o.text_before_calls === undefined
      ? {}
      : { text_before_calls: readFlag("text_before_calls", o.text_before_calls) }),
    ...(o.terminal_at_end === undefined ? {} : { terminal_at_end: readFlag("terminal_at_end", o.terminal_at_end) }),
    ...(o.closes === undefined ? {} : { closes: readLiteral("closes", o.closes, ["later", "required", "now"]) }),
    ...(o.stores === undefined ? {} : { stores: readFlag("stores", o.stores) }),
    ...(finish === undefined ? {} : { finish: label(readText("finish", finish)) }),
    ...(o.failure === undefined ? {} : { failure: FailureReading.read(o.failure) }),
    ...(usage === undefined ? {} : { usage: readUsage(usage) }),
  };
};

const readCalls = (given: unknown): ReadonlyArray<CallSignal> => {
  if (!Array.isArray(given)) return refuse("calls", "a list of call signals", given);
  return given.map((it: unknown, at): CallSignal => {
    const signal = Json.record(it) ?? refuse(`calls[${at}]`, "an object", it);
    const { id, input, tool } = signal;
    const field = (name: string): string => `calls[${at}].${name}`;
    return {
      choice: readIndex(field("choice"), signal.choice),
      ordinal: readIndex(field("ordinal"), signal.ordinal),
      executor: readLiteral(field("executor"), signal.executor, ["runtime", "provider"]),
      phase: readLiteral(field("phase"), signal.phase, ["input_started", "input_complete", "ready", "settled"]),
      ...(id === undefined ? {} : { id: readText(field("id"), id) }),
      ...(tool === undefined ? {} : { tool: readText(field("tool"), tool) }),
      ...(input === undefined ? {} : { input: readText(field("input"), input) }),
    };
  });
};

const readUsage = (given: unknown): Usage => {
  const usage = Json.record(given) ?? refuse("usage", "an object", given);
  // Some providers send null for counts that they do not report.
  const input = usage.input_tokens ?? undefined;
  const output = usage.output_tokens ?? undefined;
  return {
    ...(input === undefined ? {} : { input_tokens: countOf("usage.input_tokens", input) }),
    ...(output === undefined ? {} : { output_tokens: countOf("usage.output_tokens", output) }),
  };
};

const readLiteral = <const A extends string>(field: string, given: unknown, words: ReadonlyArray<A>): A =>
  words.find((word) => word === given) ?? refuse(field, words.map((word) => `"${word}"`).join(" | "), given);

const readFlag = (field: string, given: unknown): boolean =>
  given === undefined ? false : typeof given === "boolean" ? given : refuse(field, "a boolean", given);

const countOf = (field: string, given: unknown): number =>
  typeof given === "number" ? count(given) : refuse(field, "a number", given);

const readIndex = (field: string, given: unknown): number =>
  Json.natural(given) ?? refuse(field, "a whole number, not below 0", given);

const readText = (field: string, given: unknown): string =>
  typeof given === "string" ? given : refuse(field, "a string", given);

const refuse = (field: string, expected: string, given: unknown): never => {
  const message = `${field}: expected ${expected}, got ${describeKind(given)}`;
  throw new ObservationError({ reason: given === undefined ? "missing_field" : "bad_value", field, message });
};

/** Describes the kind of a value. Only numbers are quoted; other content is not. */
const describeKind = (given: unknown): string => {
  if (given === undefined) return "nothing";
  if (typeof given === "number" || given === null) return String(given);
  return Array.isArray(given)
    ? "a list"
    : typeof given === "string"
      ? "another string"
      : `a value of type ${typeof given}`;
};

/** Reads a cursor, which must be a string. Null and undefined mean that a part has no cursor. */
export const readCursor = (given: string | null | undefined): string | undefined => {
  if (given === undefined || given === null || typeof given === "string") return given ?? undefined;
  throw new TypeError("cursor: expected a string or undefined");
};
