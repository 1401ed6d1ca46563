/**
 * Gathers the tool calls of one choice of a chat completion from its deltas.
 *
 * OpenAI gives every call an index of its own, an id and a name in its first delta, and argument text in the rest. Servers
 * that imitate it leave the index out, repeat index 0 for every call, send the id empty, anew in every delta or as `0`,
 * and put a whole call into one delta; all of these are read here.
 */
import * as Json from "../domain/Json.ts";
import { label } from "../domain/Limits.ts";
import type { CallSignal } from "../domain/Observation.ts";
import type { Executor } from "../domain/SideEffects.ts";

/** Most calls of one choice. */
export const callsMax = 512;

/** One call as gathered so far. */
export interface Call {
  /** The server's index, `hosted` and its index for a call that the provider runs; undefined where it sent none. */
  readonly key: number | string | undefined;
  readonly id: string;
  readonly tool: string;
  readonly executor: Executor;
  readonly input: string;
  readonly settled: boolean;
}

/** What a delta did to the calls: the calls after it, what became known, and how many code units of arguments came. */
export interface Gathered {
  readonly calls: ReadonlyArray<Call>;
  readonly signals: ReadonlyArray<CallSignal>;
  readonly characters: number;
}

/**
 * Takes the call fields of a delta: `tool_calls`, the first form `function_call`, and Groq's `executed_tools`.
 *
 * @param calls the choice's calls so far
 * @param choice the choice's index
 * @param delta the delta
 */
export const gather = (calls: ReadonlyArray<Call>, choice: number, delta: Json.JsonRecord): Gathered => {
  const gathered = { calls, signals: [] as CallSignal[], characters: 0 };
  const entries = Json.record(delta.tool_calls) === undefined ? Json.list(delta.tool_calls) : [delta.tool_calls];
  for (const entry of entries) takeCall(gathered, choice, Json.record(entry) ?? {});
  const legacy = Json.record(delta.function_call);
  if (legacy !== undefined) takeCall(gathered, choice, { function: legacy });
  for (const entry of Json.list(delta.executed_tools)) takeExecuted(gathered, choice, Json.record(entry) ?? {});
  return gathered;
};

/**
 * Closes the calls of a choice that has finished.
 *
 * @param runnable whether the finish leaves calls whole; one that was cut by a limit or a filter does not
 * @returns a signal for each runtime call, and whether an argument text could not be read
 */
export const close = (
  calls: ReadonlyArray<Call>,
  choice: number,
  runnable: boolean,
): { readonly signals: ReadonlyArray<CallSignal>; readonly invalid: boolean } => {
  if (!runnable || calls.length === 0) return { signals: [], invalid: false };
  let invalid = false;
  const signals: Array<CallSignal> = [];
  for (const [ordinal, call] of calls.entries()) {
    if (call.executor === "provider") continue;
    const valid = call.tool !== "" && isReadable(call.input);
    invalid ||= !valid;
    if (!valid) signals.push(signal(call, choice, ordinal, "input_complete"));
    else signals.push({ ...signal(call, choice, ordinal, "ready"), input: call.input === "" ? "{}" : call.input });
  }
  return { signals, invalid };
};

/** Whether the arguments of every call can be read; no arguments at all are `{}`. */
export const areReadable = (calls: ReadonlyArray<Call>): boolean =>
  calls.every((call) => call.executor === "provider" || isReadable(call.input));

const isReadable = (input: string): boolean => input === "" || Json.parse(input) !== undefined;

interface Gathering {
  calls: ReadonlyArray<Call>;
  readonly signals: Array<CallSignal>;
  characters: number;
}

const takeCall = (gathering: Gathering, choice: number, entry: Json.JsonRecord): void => {
  const called = Json.record(entry.function) ?? Json.record(entry.custom) ?? {};
  const delta: Delta = {
    key: Json.natural(entry.index),
    id: Json.string(entry.id),
    tool: Json.string(called.name),
    input: inputText(called.arguments ?? called.input),
  };
  const ordinal = belongsTo(gathering.calls, delta);
  const call = ordinal === undefined ? undefined : gathering.calls[ordinal];
  gathering.characters += delta.input.length;
  if (ordinal === undefined || call === undefined) {
    const begun: Call = { ...delta, executor: "runtime", settled: false };
    gathering.signals.push(signal(begun, choice, gathering.calls.length, "input_started"));
    gathering.calls = [...gathering.calls, begun];
    return;
  }
  gathering.calls = gathering.calls.with(ordinal, {
    ...call,
    id: call.id === "" ? delta.id : call.id,
    tool: call.tool === "" ? delta.tool : call.tool,
    input: call.input + delta.input,
  });
};

interface Delta {
  readonly key: number | undefined;
  readonly id: string;
  readonly tool: string;
  readonly input: string;
}

/** The call that a delta goes on with; undefined when it begins one. */
const belongsTo = (calls: ReadonlyArray<Call>, delta: Delta): number | undefined => {
  const sameKey = calls.findLastIndex((call) => call.executor === "runtime" && call.key === delta.key);
  const sameId = delta.id === "" ? -1 : calls.findLastIndex((call) => call.id === delta.id);
  const last = calls.findLastIndex((call) => call.executor === "runtime");
  const ordinal = delta.key !== undefined ? sameKey : sameId !== -1 ? sameId : last;
  const call = calls[ordinal];
  return call === undefined || begins(call, delta) ? undefined : ordinal;
};

/** Whether a delta that has the place of `call` begins another one all the same. */
const begins = (call: Call, delta: Delta): boolean => {
  // Only a delta with a name can begin a call, and one with the call's own id goes on with it.
  if (delta.tool === "" || call.tool === "") return false;
  if (delta.id !== "" && delta.id === call.id) return false;
  if (delta.tool !== call.tool) return true;
  const whole = call.input !== "" && isReadable(call.input);
  // The same name with another id is a second call, unless the first one's arguments are still open: then ids are made up per delta.
  if (delta.id !== "" && call.id !== "") return call.input === "" || whole;
  return whole && delta.input !== "";
};

/** Arguments are JSON as text; some servers send the object itself. */
const inputText = (value: unknown): string =>
  typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);

/** Groq's compound systems run tools themselves and say so with the tool's kind, its arguments and, later, its output. */
const takeExecuted = (gathering: Gathering, choice: number, entry: Json.JsonRecord): void => {
  const key = `hosted ${Json.natural(entry.index) ?? 0}`;
  const type = Json.string(entry.type) || Json.string(entry.name);
  const settled = [entry.output, entry.search_results, entry.code_results, entry.browser_results].some(isPresent);
  const ordinal = gathering.calls.findIndex((call) => call.key === key);
  const known = gathering.calls[ordinal];
  const call: Call = known ?? {
    key,
    id: Json.string(entry.id),
    tool: executedNames.get(type) ?? type,
    executor: "provider",
    input: "",
    settled: false,
  };
  const at = known === undefined ? gathering.calls.length : ordinal;
  if (known === undefined) gathering.signals.push(signal(call, choice, at, "input_started"));
  if (settled && !call.settled) gathering.signals.push(signal(call, choice, at, "settled"));
  const next = { ...call, settled: call.settled || settled };
  gathering.calls = known === undefined ? [...gathering.calls, next] : gathering.calls.with(at, next);
};

const isPresent = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value));

/** Groq's kinds by the names of the hosted-tool table. */
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
