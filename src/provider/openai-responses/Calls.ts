/**
 * Tracks the output items of a response as they arrive: the open items, their calls, and the text shown.
 *
 * Servers skip events: an item may begin with its `added`, its first delta or its `done`, or appear only in the final response.
 */
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import * as Observation from "../../domain/Observation.ts";
import { type Content, lengthOf, nothing } from "../stream/Content.ts";
import * as ResponsesContent from "./Content.ts";
import * as ResponsesItem from "./Item.ts";
import {
  type Call,
  type Change,
  callOf,
  find,
  flushGrowing,
  hasOtherId,
  inputCharactersMax,
  type Key,
  keyFor,
  keyOf,
  newSlot,
  type Output,
  produced,
  put,
  type Slot,
  signal,
} from "./Slots.ts";

/** Applies `response.output_item.added`. */
export const addItem = (output: Output, frame: Json.JsonRecord): Change => {
  const item = Json.record(frame.item);
  if (item === undefined) return [output, Observation.none];
  const key = keyOf(frame);
  const slot = output.slots.get(key);
  // The same item sent twice is one item. A different call under the index of an open call is a new call.
  const again = slot !== undefined && !slot.done && slot.type === item.type && !hasOtherId(slot, item);
  return again ? [output, produced, lateContentOf(output, key, item)] : open(flushGrowing(output), key, item);
};

/** Applies `response.output_item.done`: a call is now complete, or has its result. */
export const applyDone = (output: Output, frame: Json.JsonRecord): Change => {
  const item = Json.record(frame.item);
  if (item === undefined) return [output, Observation.none];
  const id = Json.string(item.call_id);
  const isNamed = ([, slot]: readonly [Key, Slot]) => !slot.done && slot.callId === id && slot.type === item.type;
  const found = id === "" ? undefined : [...output.slots].find(isNamed);
  return close(flushGrowing(output), found?.[0] ?? keyOf(frame), item);
};

/** Applies a delta of text, of a refusal or of a transcript. */
export const show = (output: Output, frame: Json.JsonRecord, said: ReadonlyArray<Content>): Change => {
  const characters = lengthOf(said);
  if (characters === 0) return [output, Observation.lifecycle];
  const key = keyOf(frame);
  const slot = output.slots.get(key);
  if (slot?.visible) return [output, Observation.text(characters), said];
  return put(output, key, { ...(slot ?? newSlot("message")), visible: true }, Observation.text(characters), said);
};

/** Applies a complete text. The text counts as shown only if no delta has shown it before. */
export const showWhole = (output: Output, frame: Json.JsonRecord, part: Json.JsonRecord): Change =>
  output.slots.get(keyOf(frame))?.visible
    ? [output, Observation.none]
    : show(output, frame, ResponsesContent.readWhole(frame, part));

/**
 * Applies an event about a call: `response.<type>.<status>`, or `response.<type>_<field>.<status>` for its input.
 *
 * @param type the item's type, for example `web_search_call`
 * @param field `arguments`, `input`, `code`, …; empty for the call itself
 * @param status `delta`, `done`, `in_progress`, `completed`, `failed`, …
 */
export const applyCallEvent = (
  output: Output,
  frame: Json.JsonRecord,
  type: string,
  field: string,
  status: string,
): Change => applyFlushed(status === "delta" ? output : flushGrowing(output), frame, type, field, status);

const applyFlushed = (output: Output, frame: Json.JsonRecord, type: string, field: string, status: string): Change => {
  const key = keyFor(output, frame);
  const slot = output.slots.get(key);
  if (slot?.call === undefined) {
    if (slot !== undefined && !slot.done) return [output, produced];
    // The server skipped `added`. The output of a call arrives under a separate index.
    const own = field.startsWith("output") ? `${type}_output` : type;
    const opened = open(flushGrowing(output), key, { ...frame, type: own, id: frame.item_id });
    return opened && merge(opened, applyCallEvent(opened[0], frame, type, field, status));
  }
  if (status === "partial_image")
    return [output, { ...produced, shows: "text" }, ResponsesContent.readMedia(frame, true)];
  if (slot.done || slot.type !== type || slot.call.settled) return [output, produced];
  if (field === "" && (status === "completed" || status === "failed")) return settle(output, key, slot);
  const holds = slot.call.executor === "runtime" && (type === "function_call" || type === "custom_tool_call");
  if (status === "delta" && holds) return gather(output, key, slot, Json.string(frame.delta));
  if (status !== "done" || slot.input !== undefined) return [output, produced];
  const told = Json.string(frame.arguments ?? frame.input) || (slot.streamed ?? "");
  if (output.characters + told.length > inputCharactersMax) return undefined;
  // A shell call has many commands, so the end of one command is not the end of its input.
  if (type === "shell_call") return [output, produced];
  const next = holds ? { ...output, characters: output.characters + told.length } : output;
  const signals = [signal(slot.call, "input_complete")];
  return put(next, key, holds ? { ...slot, input: told } : slot, Observation.calls(signals));
};

const gather = (output: Output, key: Key, slot: Slot, piece: string): Change => {
  const characters = output.characters + piece.length;
  if (characters > inputCharactersMax) return undefined;
  const { growing } = output;
  const before = growing?.key === key ? output : flushGrowing(output);
  const text = (growing?.key === key ? growing.text : (slot.streamed ?? "")) + piece;
  return [{ ...before, characters, growing: { key, text } }, produced];
};

/**
 * Applies the final response, including items that no event reported. If the response is complete, calls that lacked only the end of their
 * item are complete too.
 *
 * @param complete true if the response ended by itself; otherwise a limit or a filter may have cut its last call
 */
export const applyFinal = (output: Output, response: Json.JsonRecord, complete: boolean): Change => {
  const items = Json.list(response.output)
    .map(Json.record)
    .filter((item) => item !== undefined);
  const countFinal = (type: unknown) => items.filter((item) => item.type === type).length;
  const known = [...output.slots.values()];
  let change: Change = [flushGrowing(output), Observation.none];
  for (const [index, item] of items.entries()) {
    const key = find(output, index, item);
    // Gateways omit items from the final list, which shifts the others. In that case the number of items of this type shows if the item was
    // seen.
    if (key === undefined && known.filter((slot) => slot.type === item.type).length >= countFinal(item.type)) continue;
    if (key !== undefined && output.slots.get(key)?.done) continue;
    change = change && merge(change, close(change[0], key ?? `final:${index}`, item));
  }
  if (!complete || change === undefined) return change;
  for (const [key, slot] of change[0].slots)
    if (!slot.done && inputSoFar(slot) !== undefined && slot.call !== undefined)
      change = change && merge(change, finishCall(change[0], key, slot, slot.call, unreportedInput(slot), true));
  return change;
};

const unreportedInput = (slot: Slot): string =>
  slot.type === "custom_tool_call" ? (inputSoFar(slot) ?? "") : ResponsesItem.jsonInput(inputSoFar(slot) ?? "");

const inputSoFar = (slot: Slot): string | undefined => slot.input ?? slot.streamed;

// items

const open = (output: Output, key: Key, item: Json.JsonRecord): Change => {
  const read = ResponsesItem.read(item, output.hostsXSearch);
  const slot = newSlot(Json.string(item.type), item);
  switch (read.role) {
    case "message": {
      const texts = ResponsesContent.messageTexts(key, item);
      const said = [...ResponsesContent.readItem(key, item, "text", "begins"), ...texts];
      const characters = lengthOf(texts);
      return characters === 0
        ? put(output, key, slot, Observation.lifecycle, said)
        : put(output, key, { ...slot, visible: true }, Observation.text(characters), said);
    }
    case "reasoning":
      return put(
        output,
        key,
        slot,
        Observation.reasoning(0),
        ResponsesContent.readItem(key, item, "reasoning", "begins"),
      );
    case "call": {
      const call = callOf(output, item, read);
      // A server that sends the whole call at once may send no further event about the call.
      const whole = call.executor === "runtime" && slot.type === "function_call" ? Json.string(item.arguments) : "";
      const kept = Json.record(Json.parse(whole)?.json) === undefined ? {} : { input: whole };
      const characters = output.characters + (kept.input?.length ?? 0);
      const next = { ...output, characters, calls: output.calls + 1 };
      const signals = [signal(call, "input_started")];
      const said = callContent(key, item, signals, "begins");
      return put(next, key, { ...slot, ...kept, call }, Observation.calls(signals), said);
    }
    case "result":
      return applyResult(output, key, slot, "input_complete", ResponsesContent.readItem(key, item, "result", "begins"));
    case "other":
      return put(output, key, slot, produced);
  }
};

const close = (output: Output, key: Key, item: Json.JsonRecord): Change => {
  const before = output.slots.get(key);
  const read = ResponsesItem.read(item, output.hostsXSearch);
  const same = before !== undefined && before.type === item.type && !(before.done && hasOtherId(before, item));
  if (same && before.done) return [output, produced];
  const moved = read.role === "call" && before?.call !== undefined && before.call.executor !== read.executor;
  const slot = same && !moved ? before : newSlot(Json.string(item.type), item);
  const ended = { ...slot, callId: Json.string(item.call_id) || slot.callId, done: true };
  switch (read.role) {
    case "message": {
      const texts = slot.visible ? nothing : ResponsesContent.messageTexts(key, item);
      const said = [...ResponsesContent.readItem(key, item, "text", "ends"), ...texts];
      const characters = lengthOf(texts);
      return characters === 0
        ? put(output, key, ended, isWordless(item) && !slot.visible ? Observation.text(0) : Observation.none, said)
        : put(output, key, { ...ended, visible: true }, Observation.text(characters), said);
    }
    case "reasoning":
      return put(
        output,
        key,
        ended,
        Observation.reasoning(0),
        ResponsesContent.readItem(key, item, "reasoning", "ends"),
      );
    case "result":
      return applyResult(output, key, ended, "settled", ResponsesContent.readItem(key, item, "result", "ends"));
    case "other":
      return put(output, key, ended, produced);
    case "call": {
      const call = slot.call ?? callOf(output, item, read);
      const named = { ...call, tool: call.tool || read.tool };
      const next = slot.call === undefined ? { ...output, calls: output.calls + 1 } : output;
      if (read.executor === "runtime") {
        const input = ResponsesItem.inputOf(item, inputSoFar(slot));
        return finishCall(next, key, ended, named, input, slot.call !== undefined, item);
      }
      const phase = read.settledBy === "item" || call.settled ? "settled" : "input_complete";
      const signals = [signal(named, phase)];
      const seen = Observation.calls(signals);
      const shown: Observation.Observation = read.picture ? { ...seen, shows: "text" } : seen;
      const held = { ...ended, call: { ...named, settled: phase === "settled" } };
      return put(next, key, held, shown, callContent(key, item, signals, "ends"));
    }
  }
};

/** True if a message contains anything other than text, with or without text: sound, a picture, or an unknown type. */
const isWordless = (item: Json.JsonRecord): boolean =>
  Json.list(item.content).some((part) => !/^(?:(?:output_)?text|refusal)?$/.test(Json.string(Json.record(part)?.type)));

/**
 * Returns the content of an item that is announced after its texts. Calls of the caller's tools are omitted, because they were reported
 * when they began.
 */
const lateContentOf = (output: Output, key: Key, item: Json.JsonRecord): ReadonlyArray<Content> => {
  const read = ResponsesItem.read(item, output.hostsXSearch);
  switch (read.role) {
    case "message":
      return ResponsesContent.readItem(key, item, "text", "begins");
    case "reasoning":
    case "result":
      return ResponsesContent.readItem(key, item, read.role, "begins");
    case "call":
      return read.executor === "runtime" || item.type === "custom_tool_call"
        ? nothing
        : ResponsesContent.readItem(key, item, "hosted", "begins");
    case "other":
      return nothing;
  }
};

/** Returns the content of a call's item. If the caller runs the call, its signals carry its ordinal. */
const callContent = (
  key: Key,
  item: Json.JsonRecord,
  signals: ReadonlyArray<Observation.CallSignal>,
  phase: "begins" | "ends",
): ReadonlyArray<Content> => {
  if (signals[0]?.executor !== "provider") return ResponsesContent.readCall(signals, item);
  // A custom call that xAI runs itself has no result that could be sent back with the call.
  return item.type === "custom_tool_call" ? nothing : ResponsesContent.readItem(key, item, "hosted", phase);
};

/**
 * Finishes a runtime call. The call is ready if its input is complete, and not ready if it was cut.
 *
 * @param begun true if an earlier part reported the start of the call
 * @param item the call's item, if it is finished
 */
const finishCall = (
  output: Output,
  key: Key,
  slot: Slot,
  call: Call,
  input: string | "broken" | undefined,
  begun: boolean,
  item?: Json.JsonRecord,
): Change => {
  const { input: held, streamed, ...rest } = slot;
  const broken = output.broken || input === "broken";
  const next = { ...output, broken, characters: output.characters - (held?.length ?? 0) - (streamed?.length ?? 0) };
  const signals: ReadonlyArray<Observation.CallSignal> =
    input !== undefined && input !== "broken"
      ? [{ ...signal(call, "ready"), input }]
      : begun
        ? []
        : [signal(call, "input_started")];
  const seen = signals.length > 0 ? Observation.calls(signals) : produced;
  const said = item === undefined ? nothing : ResponsesContent.readCall(signals, item);
  return put(next, key, { ...rest, call, done: true }, seen, said);
};

const settle = (output: Output, key: Key, slot: Slot): Change => {
  if (slot.call === undefined || slot.call.executor === "runtime") return [output, produced];
  const call = { ...slot.call, settled: true };
  return put(output, key, { ...slot, call }, Observation.calls([signal(call, "settled")]));
};

/**
 * Applies the result of a call that the provider ran. It settles the call with the same `call_id`, or else the earliest call that waits for
 * such a result. If there is no such call, or the call counted as the caller's own, the result counts as a separate call, so that no call
 * run by the provider is missed.
 */
const applyResult = (
  output: Output,
  key: Key,
  slot: Slot,
  phase: "input_complete" | "settled",
  said: ReadonlyArray<Content>,
): Change => {
  const type = slot.type.replace(/_output$/, "");
  const isWaiting = ([, { call, callId, ...other }]: readonly [Key, Slot]): boolean =>
    call?.executor === "provider" &&
    !call.settled &&
    (slot.callId === "" || callId === ""
      ? other.type === type || other.type === `${type}_call`
      : callId === slot.callId);
  const found = slot.call ? undefined : [...output.slots].find(isWaiting);
  const own = slot.call ?? found?.[1].call;
  const lost = { ordinal: output.calls, id: slot.callId, tool: label(slot.type), executor: "provider" as const };
  const call = { ...(own ?? lost), settled: phase === "settled" };
  const next = own === undefined ? { ...output, calls: output.calls + 1 } : output;
  const kept =
    found === undefined ? next : { ...next, slots: new Map(next.slots).set(found[0], { ...found[1], call }) };
  return put(kept, key, { ...slot, call }, Observation.calls([signal(call, phase)]), said);
};

const merge = ([, first, before = nothing]: NonNullable<Change>, change: Change): Change => {
  if (change === undefined) return undefined;
  const [output, second, said = nothing] = change;
  const text = first.shows === "text" || second.shows === "text";
  const ordered = second.shows !== "text" || first.calls.length === 0;
  const calls = [...first.calls, ...second.calls];
  const progress =
    first.progress === "output" ? first.progress : second.progress === "started" ? first.progress : second.progress;
  const merged: Observation.Observation = {
    ...Observation.none,
    progress,
    shows: text ? "text" : second.shows === "nothing" ? first.shows : second.shows,
    characters: first.characters + second.characters,
    calls,
    ...(text && calls.length > 0 && ordered && first.text_before_calls !== false
      ? { text_before_calls: true }
      : text && calls.length > 0
        ? { text_before_calls: false }
        : {}),
  };
  return [output, merged, [...before, ...said]];
};
