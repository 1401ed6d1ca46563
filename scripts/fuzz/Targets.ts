/**
 * Properties of the readers of foreign bytes, as functions that throw if the property fails. A fuzzer looks for such bytes
 * (`npm run fuzz`), and tests repeat what it found.
 */

import { canonicalValue } from "../../src/adapters/relay/form/CanonicalBody.ts";
import { type JsonObject, membersOf } from "../../src/adapters/relay/form/JsonMembers.ts";
import * as Json from "../../src/domain/Json.ts";
import { type ProtocolId, protocols } from "../../src/provider/Protocols.ts";
import * as Decoder from "../../src/provider/stream/Decoder.ts";
import * as JsonScan from "../../src/provider/stream/JsonScan.ts";
import * as Sse from "../../src/provider/stream/Sse.ts";
import { anchorOf } from "../../src/seam/Anchor.ts";
import * as SeamVerifier from "../../src/seam/SeamVerifier.ts";

/** Checks one property for some bytes, and throws if it fails. */
export type Target = (bytes: Uint8Array) => void;

/** Cuts bytes at places that depend on the bytes themselves, so that an input needs no part that only says where to cut. */
const cut = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  let state = bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte) >>> 0, bytes.length + 1);
  const pieces: Array<Uint8Array> = [];
  for (let at = 0; at < bytes.length; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const size = 1 + ((state >>> 16) % (state % 3 === 0 ? 64 : 5));
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
};

const isSame = (what: string, one: unknown, other: unknown): void => {
  const [a, b] = [JSON.stringify(one), JSON.stringify(other)];
  if (a !== b)
    throw new Error(`${what} depends on how the bytes are cut:\n${a?.slice(0, 2_000)}\n${b?.slice(0, 2_000)}`);
};

const sse: Target = (bytes) => {
  const frames = (pieces: ReadonlyArray<Uint8Array>) => {
    const framer = Sse.makeFramer({ lineBytesMax: 512, eventBytesMax: 1_024 });
    const read = pieces.flatMap((piece) => framer.feed(piece));
    return { read: [...read, ...framer.end()], failure: framer.failure };
  };
  isSame("a frame", frames([bytes]), frames(cut(bytes)));
};

const decoder =
  (id: ProtocolId): Target =>
  (bytes) => {
    const decode = (pieces: ReadonlyArray<Uint8Array>) => {
      const reader = Decoder.make(protocols.get(id), { limits: { lineBytesMax: 4_096, eventBytesMax: 4_096 } });
      const parts = pieces.flatMap((piece) => reader.push(piece));
      const { end, parts: last } = reader.end();
      return {
        parts: [...parts, ...last].map(({ content, observation }) => ({ content, observation })),
        end,
        failure: reader.failure,
      };
    };
    const whole = decode([bytes]);
    isSame(`a part of ${id}`, whole, decode(cut(bytes)));
    // Calls are numbered from 0 without gaps, and none becomes less than it was (L1).
    const phases = ["input_started", "input_complete", "ready", "settled"];
    const seen = new Map<string, number>();
    for (const { observation } of whole.parts)
      for (const { choice, ordinal, phase } of observation.calls) {
        const before = seen.get(`${choice}.${ordinal}`) ?? -1;
        if (ordinal > 0 && !seen.has(`${choice}.${ordinal - 1}`))
          throw new Error(`call ${choice}.${ordinal} leaves a gap`);
        if (phases.indexOf(phase) < before) throw new Error(`call ${choice}.${ordinal} goes back to ${phase}`);
        seen.set(`${choice}.${ordinal}`, phases.indexOf(phase));
      }
    // A complete stream has a terminal marker (L5).
    const isMarked = whole.parts.some(
      ({ observation }) => observation.terminal || observation.terminal_at_end === true,
    );
    if (whole.end.complete && !isMarked) throw new Error(`${id} is complete without a terminal marker`);
  };

const jsonScan: Target = (bytes) => {
  const text = new TextDecoder().decode(bytes);
  const whole = JsonScan.scan(JsonScan.start, text);
  const pieces = cut(new Uint8Array(text.length)).map(({ length }) => length);
  let [state, at] = [JsonScan.start, 0];
  for (const length of pieces) {
    state = JsonScan.scan(state, text.slice(at, at + length));
    at += length;
  }
  isSame("the end of a JSON text", whole.phase, state.phase);
  if (Json.parse(text) !== undefined && /^[\s]*[[{]/.test(text) && whole.phase !== "whole")
    throw new Error(`a JSON text counts as ${whole.phase}`);
};

const canonicalBody: Target = (bytes) => {
  const form = canonicalValue(bytes)?.slice();
  if (form === undefined) return;
  const text = new TextDecoder("utf-8", { ignoreBOM: true });
  const [given, read] = [Json.parse(text.decode(bytes)), Json.parse(text.decode(form))];
  if (given === undefined) throw new Error("text that is not JSON has a canonical form");
  const sorted = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(sorted)
      : typeof value === "object" && value !== null
        ? Object.entries(value)
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .map(([name, member]) => [name, sorted(member)])
        : value;
  if (JSON.stringify(sorted(given.json)) !== JSON.stringify(sorted(read?.json)))
    throw new Error("a canonical form changes its value");
  const again = canonicalValue(form);
  if (again === undefined || Buffer.compare(again, form) !== 0)
    throw new Error("a canonical form has another canonical form");
};

const jsonMembers: Target = (bytes) => {
  const members = membersOf(bytes);
  const given = Json.parse(new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(bytes))?.json;
  const record = Json.record(given);
  if (record !== undefined && members === undefined) throw new Error("a JSON object has no members");
  if (members === undefined) return;
  const check = (object: JsonObject): void => {
    for (const { from, inside, key, name, to } of object.members) {
      if (!(object.open < name && name < from && from < to && to <= object.close))
        throw new Error(`member ${key} lies outside of its object`);
      if (inside !== undefined) check(inside);
    }
  };
  check(members);
};

/** Text that was shown, a zero byte, and the text of the continuation. */
const seam: Target = (bytes) => {
  const [shown = "", said = ""] = new TextDecoder().decode(bytes).split("\0", 2);
  const anchor = anchorOf(shown);
  if (typeof anchor === "string") return;
  const verify = (pieces: ReadonlyArray<string>, proof: "anchor" | "prefill") => {
    const verifier = SeamVerifier.make({ run: shown, anchor, proof });
    let [text, fault] = ["", ""];
    const take = (step: SeamVerifier.SeamStep) => {
      if (step.type === "joined") text += step.text;
      if (step.type === "unproven") fault = step.fault;
    };
    for (const piece of pieces) if (fault === "") take(verifier.take(piece));
    if (fault === "") take(verifier.stop());
    return { text, fault };
  };
  const sizes = cut(new Uint8Array(said.length)).map(({ length }) => length);
  let at = 0;
  const pieces = sizes.map((size) => {
    at += size;
    return said.slice(at - size, at);
  });
  for (const proof of ["anchor", "prefill"] as const) {
    const whole = verify([said], proof);
    isSame(`the text behind a seam (${proof})`, whole.fault, verify(pieces, proof).fault);
    if (whole.fault === "") isSame(`the text behind a seam (${proof})`, whole.text, verify(pieces, proof).text);
    // Delivered text is the end of the new text: nothing is invented, and nothing in its middle is lost.
    if (!said.endsWith(whole.text) && whole.fault === "") throw new Error("text was delivered that was not said");
  }
};

/** All targets by name. */
export const targets: Readonly<Record<string, Target>> = {
  sse,
  ...Object.fromEntries(protocols.ids.map((id) => [id, decoder(id)])),
  "json-scan": jsonScan,
  "canonical-body": canonicalBody,
  "json-members": jsonMembers,
  seam,
};
