/**
 * Decodes every recorded stream of a real provider, whole and in pieces.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../src/domain/Json.ts";
import { protocols } from "../../src/provider/Protocols.ts";
import type { Part, Protocol } from "../../src/provider/stream/Protocol.ts";
import { bytesOf, type Recording, recordings } from "../Recordings.ts";
import { begun, characters, checkGrowth, decode, endOf, ranges } from "./Decoded.ts";
import { checkCuts, checkPieces } from "./ProtocolSuite.ts";

/** A stream of this many bytes and more has its cuts sampled, so that all recordings together take seconds. */
const cutsMax = 12_000;

const check = <S>(protocol: Protocol<S>, recording: Recording): void => {
  const bytes = bytesOf(recording);
  const streams = split(protocol, bytes);
  // A recording whose error came without a finish before it is a stream that failed.
  const failed =
    Json.list(recording.row.features).includes("error-event") && ["", "failed"].includes(finishOf(recording));
  const parts = streams.flatMap((stream) => {
    const whole = decode(protocol, [stream]);
    assert.strictEqual(endOf(whole.end) !== "complete", failed, JSON.stringify(whole.end));
    checkGrowth(whole.parts);
    checkPieces(protocol, stream, { end: endOf(whole.end) });
    checkCuts(protocol, stream, { end: endOf(whole.end) }, cutsMax);
    return whole.parts;
  });
  checkContent(recording, parts);
};

/** The finish of each choice, as the manifest has it: a list, or one word. */
const finishOf = ({ row }: Recording): string =>
  Json.list(row.finish).length > 0 ? Json.list(row.finish).join() : Json.string(row.finish);

const checkContent = (recording: Recording, parts: ReadonlyArray<Part>): void => {
  const runtime = parts.map((part) => ({
    ...part,
    observation: {
      ...part.observation,
      calls: part.observation.calls.filter((call) => call.executor === "runtime"),
    },
  }));
  assert.includeMembers([...begun(runtime)], Json.list(recording.row.tool_names).map(Json.string), "tool names");
  const text = characters(parts, "text");
  // The manifest counts Gemini's thoughts as text, and text in content lists not at all.
  const all = recording.protocol === "google-gemini" ? text + characters(parts, "reasoning") : text;
  assert.isAtLeast(all, Json.natural(recording.row.text_chars) ?? 0, "text");
};

/** Recordings that hold several responses one after the other are cut where a response begins after a marker. */
const split = <S>(protocol: Protocol<S>, bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const { parts } = decode(protocol, [bytes]);
  const marker = parts.findIndex((part) => part.observation.terminal);
  const id = Json.record(parts[marker]?.json)?.id;
  const next = parts.findIndex((part, index) => index > marker && marker !== -1 && isStart(part, id));
  const at = ranges(parts)[next]?.[0];
  return at === undefined ? [bytes] : [bytes.subarray(0, at), ...split(protocol, bytes.subarray(at))];
};

const isStart = (part: Part, id: unknown): boolean => {
  const json = Json.record(part.json);
  if (part.protocol === "anthropic-messages") return json?.type === "message_start";
  if (part.protocol === "openai-responses") return json?.type === "response.created";
  return part.protocol === "openai-chat" && Json.list(json?.choices).length > 0 && json?.id !== id;
};

describe("every recorded stream", () => {
  if (recordings.length === 0) it.skip("no recordings are here", () => undefined);
  for (const recording of recordings) {
    it(`${recording.file} is decoded whole, in pieces and at every cut`, () => {
      check(protocols.get(recording.protocol), recording);
    });
  }
});
