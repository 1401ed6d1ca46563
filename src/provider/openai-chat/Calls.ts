/**
 * Gathers the tool calls of one choice of a chat completion from its deltas.
 *
 * OpenAI gives every call its own index, with id and name in the first delta and argument text in the rest. Servers that imitate OpenAI
 * omit the index, repeat index 0 for every call, send an id that is empty, `0` or new in every delta, or put a whole call into one delta.
 * All of these are accepted. An argument fragment may also arrive under an index that began no call, or under the index of a complete call.
 * If the fragment has neither id nor name, it belongs to the open call.
 */
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import type { CallSignal } from "../../domain/Observation.ts";
import type { Executor } from "../../domain/SideEffects.ts";
import * as JsonScan from "../stream/JsonScan.ts";
import { isBlank } from "../stream/Payload.ts";

/** Maximum calls of one choice. */
export const callsMax = 512;

/** A call as gathered so far. */
export interface Call {
  /** The server's index, or `hosted` and its index for a call that the provider runs; undefined if the server sent none. */
  readonly key: number | string | undefined;
  readonly id: string;
  readonly tool: string;
  readonly executor: Executor;
  readonly input: string;
  /** Progress of the input as JSON, so that a delta is checked without rereading earlier text (L11). */
  readonly scan: JsonScan.JsonScan;
  /** Set once the input is complete JSON: an object with fields, an empty object, or another value. */
  readonly whole: "object" | "empty" | "value" | undefined;
  /** True for a custom tool, whose input is any string. */
  readonly text: boolean;
  readonly settled: boolean;
  /** True once the call was reported ready. */
  readonly ready: boolean;
}

/** The effect of a delta: the resulting calls, the new signals, and the length of the argument text, in UTF-16 code units. */
export interface Gathered {
  readonly calls: ReadonlyArray<Call>;
  readonly signals: ReadonlyArray<CallSignal>;
  readonly characters: number;
  /** True if a call of the caller began. */
  readonly begins: boolean;
}

/** Reads the server's index of a choice or call. Some servers send the index as a string. */
export const indexOf = (index: unknown): number | undefined =>
  typeof index === "string" && /^\d{1,6}$/.test(index) ? Number(index) : Json.natural(index);

/**
 * Gathers the call fields of a delta: `tool_calls`, the legacy `function_call`, and Groq's `executed_tools`.
 *
 * @param calls the choice's calls so far
 * @param choice the choice's index
 */
export const gather = (calls: ReadonlyArray<Call>, choice: number, delta: Json.JsonRecord): Gathered => {
  const gathered: Gathering = { calls, signals: [], characters: 0, begins: false };
  const entries = Json.record(delta.tool_calls) === undefined ? Json.list(delta.tool_calls) : [delta.tool_calls];
  for (const entry of entries) take(gathered, choice, Json.record(entry) ?? {});
  const legacy = Json.record(delta.function_call);
  // If a server fills both forms, they contain the same call.
  if (legacy !== undefined && entries.length === 0) takeCall(gathered, choice, { function: legacy });
  for (const entry of Json.list(delta.executed_tools)) takeExecuted(gathered, choice, Json.record(entry) ?? {});
  return gathered;
};

/**
 * Closes the calls of a finished choice.
 *
 * @param finish `unsure` if more may come, so that only JSON calls with complete arguments are closed
 * @returns the calls, their signals, and `invalid` if some arguments could not be parsed
 */
export const close = (
  calls: ReadonlyArray<Call>,
  choice: number,
  finish: "sure" | "unsure",
): { readonly calls: ReadonlyArray<Call>; readonly signals: ReadonlyArray<CallSignal>; readonly invalid: boolean } => {
  let invalid = false;
  const signals: Array<CallSignal> = [];
  const closed = calls.map((call, ordinal) => {
    if (call.executor === "provider" || call.ready) return call;
    const valid = call.tool !== "" && (call.text || isReadable(call));
    if (finish === "unsure" && (!valid || call.text || isEmpty(call))) return call;
    invalid ||= !valid;
    if (!valid) signals.push(signal(call, choice, ordinal, "input_complete"));
    else signals.push({ ...signal(call, choice, ordinal, "ready"), input: inputOf(call) });
    return valid ? { ...call, ready: true } : call;
  });
  return { calls: closed, signals, invalid };
};

/**
 * True if the arguments of every call can be parsed.
 *
 * @param blank true if missing arguments count as `{}`
 */
export const areReadable = (calls: ReadonlyArray<Call>, blank = true): boolean =>
  calls.every(
    (call) =>
      call.executor === "provider" ||
      (call.tool !== "" && (call.text ? blank : isReadable(call) && (blank || !isEmpty(call)))),
  );

/** True if no argument text has arrived. The call then has no arguments. */
const isEmpty = (call: Call): boolean => call.scan.phase === "blank";

const isReadable = (call: Call): boolean => isEmpty(call) || call.whole !== undefined;

const inputOf = (call: Call): string => (call.text || !isEmpty(call) ? call.input : "{}");

interface Gathering {
  calls: ReadonlyArray<Call>;
  readonly signals: Array<CallSignal>;
  characters: number;
  begins: boolean;
}

/**
 * Reads an entry of `tool_calls`. Zhipu also lists its own tools there, by type and with their output. The type of a function is often
 * missing.
 */
const take = (gathering: Gathering, choice: number, entry: Json.JsonRecord): void => {
  const hosted = Json.record(entry[Json.string(entry.type)]);
  if (hosted === undefined || entry.function || entry.custom) takeCall(gathering, choice, entry);
  else takeExecuted(gathering, choice, { ...entry, output: hosted.outputs });
};

const takeCall = (gathering: Gathering, choice: number, entry: Json.JsonRecord): void => {
  const custom = Json.record(entry.custom);
  const called = Json.record(entry.function) ?? custom ?? {};
  const delta: Delta = {
    key: indexOf(entry.index),
    id: Json.string(entry.id),
    tool: Json.string(called.name),
    input: inputText(called.arguments ?? called.input),
    text: custom !== undefined,
  };
  const ordinal = findContinuedCall(gathering.calls, delta);
  const call = ordinal === undefined ? undefined : gathering.calls[ordinal];
  gathering.characters += delta.input.length;
  if (ordinal === undefined || call === undefined) {
    // Servers that fill every field send empty calls next to text.
    if (delta.id === "" && delta.tool === "" && delta.input === "") return;
    const begun: Call = { ...delta, ...appendPiece(fresh, delta.input, delta.text), ...unsettled, executor: "runtime" };
    gathering.begins = true;
    gathering.signals.push(signal(begun, choice, gathering.calls.length, "input_started"));
    gathering.calls = [...gathering.calls, begun];
    return;
  }
  gathering.calls = gathering.calls.with(ordinal, {
    ...call,
    id: call.id === "" ? delta.id : call.id,
    tool: call.tool === "" ? delta.tool : call.tool,
    ...appendArguments(call, delta.input),
  });
};

const unsettled = { settled: false, ready: false };

type Input = Pick<Call, "input" | "scan" | "whole">;

const fresh: Input = { input: "", scan: JsonScan.start, whole: undefined };

/** Appends a piece to an input, and parses the input after it has ended. */
const appendPiece = (before: Input, piece: string, text: boolean): Input => {
  const input = before.input + piece;
  const scan = text ? before.scan : JsonScan.scan(before.scan, piece);
  if (scan.phase === before.scan.phase && scan.phase !== "word") return { input, scan, whole: before.whole };
  return { input, scan, whole: scan.phase === "whole" || scan.phase === "word" ? wholeOf(input) : undefined };
};

const wholeOf = (input: string): Call["whole"] => {
  const parsed = Json.parse(input);
  if (parsed === undefined) return undefined;
  const said = Json.record(parsed.json);
  return said === undefined ? "value" : Object.keys(said).length === 0 ? "empty" : "object";
};

/**
 * Appends a piece of argument text. No text may follow complete JSON. So a piece that repeats the arguments replaces them, and so does a
 * piece that follows an empty object sent as a placeholder.
 */
const appendArguments = (call: Call, piece: string): Input => {
  if (call.ready) return { input: call.input, scan: call.scan, whole: call.whole };
  const held = !call.text && !isBlank(piece) && (call.whole === "empty" || isRepeat(call, piece));
  return appendPiece(held ? fresh : call, piece, call.text);
};

const isRepeat = (call: Call, piece: string): boolean => call.whole === "object" && piece.trim() === call.input.trim();

interface Delta {
  readonly key: number | undefined;
  readonly id: string;
  readonly tool: string;
  readonly input: string;
  readonly text: boolean;
}

/** Returns the ordinal of the call that a delta continues; undefined if the delta begins a call. */
const findContinuedCall = (calls: ReadonlyArray<Call>, delta: Delta): number | undefined => {
  const sameKey = calls.findLastIndex((call) => call.executor === "runtime" && call.key === delta.key);
  const sameId = delta.id === "" ? -1 : calls.findLastIndex((call) => call.id === delta.id);
  const last = calls.findLastIndex((call) => call.executor === "runtime");
  const ordinal =
    delta.key === undefined
      ? sameId !== -1
        ? sameId
        : last
      : delta.tool === ""
        ? callOfFragment(calls, delta, sameKey, sameId)
        : sameKey;
  const call = calls[ordinal];
  return call === undefined || isAnotherCall(call, delta) ? undefined : ordinal;
};

/** Finds the call of a delta without a name. Its index may have drifted, or collide with that of another call. */
const callOfFragment = (
  calls: ReadonlyArray<Call>,
  { id, input, text }: Delta,
  sameKey: number,
  sameId: number,
): number => {
  const call = calls[sameKey];
  if (sameId !== -1) return call?.id === id ? sameKey : sameId;
  if (id !== "" || isBlank(input)) return sameKey;
  const takes = call !== undefined && (call.whole !== "object" || call.text || isRepeat(call, input));
  if (takes) return sameKey;
  const open = calls.findLastIndex((other) => other.text === text && isOpen(other));
  return open === -1 ? sameKey : open;
};

const isOpen = (call: Call): boolean => call.executor === "runtime" && !call.ready && call.whole !== "object";

/** True if a delta under the index of `call` nevertheless begins another call. */
const isAnotherCall = (call: Call, delta: Delta): boolean => {
  // Only a delta with a name can begin a call. A delta with the call's own id continues that call.
  if (delta.tool === "" || call.tool === "") return false;
  if (delta.id !== "" && delta.id === call.id) return false;
  if (delta.tool !== call.tool) return true;
  const whole = call.whole !== undefined;
  // The same name with another id is a second call, unless the arguments of the first call are incomplete. In that case the server makes up
  // an id for each delta.
  if (delta.id !== "" && call.id !== "") return call.input === "" || whole;
  return whole && delta.input !== "";
};

/** Returns the arguments as text. They should be a JSON string, but some servers send the object itself. */
const inputText = (value: unknown): string =>
  typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);

/** Reads a tool that one of Groq's compound systems runs itself. Groq reports the tool's kind, its arguments and, later, its output. */
const takeExecuted = (gathering: Gathering, choice: number, entry: Json.JsonRecord): void => {
  const key = executedKey(entry);
  const type = Json.string(entry.type) || Json.string(entry.name);
  const settled = isSettled(entry);
  const ordinal = gathering.calls.findIndex((call) => call.key === key);
  const known = gathering.calls[ordinal];
  const call: Call = known ?? {
    key,
    id: Json.string(entry.id),
    tool: executedNames.get(type) ?? type,
    executor: "provider",
    ...fresh,
    text: false,
    ...unsettled,
  };
  const at = known === undefined ? gathering.calls.length : ordinal;
  if (known === undefined) gathering.signals.push(signal(call, choice, at, "input_started"));
  if (settled && !call.settled) gathering.signals.push(signal(call, choice, at, "settled"));
  const next = { ...call, settled: call.settled || settled };
  gathering.calls = known === undefined ? [...gathering.calls, next] : gathering.calls.with(at, next);
};

/** The key of a call that the provider runs. */
export const executedKey = (entry: Json.JsonRecord): string =>
  `hosted ${indexOf(entry.index) ?? Json.string(entry.id)}`;

/** True if a tool run by the provider has returned a result. */
export const isSettled = (entry: Json.JsonRecord): boolean =>
  [entry.output, entry.search_results, entry.code_results, entry.browser_results].some(isPresent);

const isPresent = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value));

/** Maps Groq's tool kinds to the names of the hosted-tool table. */
const executedNames: ReadonlyMap<string, string> = new Map([
  ["search", "web_search"],
  ["browser_search", "web_search"],
  ["visit", "web_fetch"],
  ["visit_website", "web_fetch"],
  ["python", "code_interpreter"],
]);

const signal = (call: Call, choice: number, ordinal: number, phase: CallSignal["phase"]): CallSignal => ({
  choice,
  ordinal,
  executor: call.executor,
  phase,
  ...(call.id === "" ? {} : { id: label(call.id) }),
  ...(call.tool === "" ? {} : { tool: label(call.tool) }),
});
