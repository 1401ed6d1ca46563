/**
 * Decodes `invoke-with-response-stream` of Amazon Bedrock for Anthropic's models: each message holds an event of Anthropic Messages, as
 * base64 (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_PayloadPart.html).
 */

import * as Json from "../../domain/Json.ts";
import * as Observation from "../../domain/Observation.ts";
import * as Calls from "../anthropic/Calls.ts";
import * as Messages from "../anthropic/Decode.ts";
import { nothing } from "../stream/Content.ts";
import { makeFraming } from "../stream/EventStream.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { Protocol, SseEvent } from "../stream/Protocol.ts";
import { exceptionOf } from "./Exceptions.ts";

/** The protocol's id. */
export const id = "bedrock-invoke";

/** Replaces the payload of a `chunk` by the event inside it. Returns undefined if it holds no base64. */
const unwrap = (event: SseEvent): SseEvent | undefined => {
  if (event.event !== "chunk") return event;
  const bytes = Json.string(Json.record(Json.parse(event.data)?.json)?.bytes);
  const data = bytes === "" ? undefined : decodeBase64(bytes);
  return data === undefined ? undefined : { ...event, data };
};

const decodeBase64 = (text: string): string | undefined => {
  try {
    return utf8.decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
  } catch {
    return undefined; // not base64, which the caller reports as damage
  }
};

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

type Part = Stream.Part<typeof id>;

const step = (state: Messages.State, event: SseEvent): readonly [Messages.State, Part] => {
  const failure = exceptionOf(event);
  if (failure === undefined) {
    const [next, part] = Messages.step(state, event);
    return [next, { ...part, protocol: id }];
  }
  const end = state.end ?? { complete: false, failure };
  const json = Json.parse(event.data)?.json;
  return [
    { ...state, calls: Calls.none, end },
    { protocol: id, event, json, content: nothing, observation: Observation.failed(failure) },
  ];
};

/**
 * Amazon Bedrock's invoke, for Anthropic's models.
 *
 * Complete when: a `stop_reason` has come
 * Tolerated: a missing `message_stop`
 */
export const protocol: Protocol<Messages.State, typeof id> = {
  id,
  framing: makeFraming(unwrap),
  initial: Messages.initial,
  step,
  halt: Messages.halt,
  observe: Messages.observe,
};
