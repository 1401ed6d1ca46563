/**
 * Cuts a recorded stream behind some text, joins an honest continuation to it, and gives the bytes that a client reads.
 *
 * The continuation is made from the recording's own whole response: the anchor first, then the rest as it was recorded, under other
 * names, with other positions, and with what a server says in front of a text.
 */
import { readdirSync, readFileSync } from "node:fs";
import { assert } from "@effect/vitest";
import type { WireProtocol } from "../../../src/provider/Protocols.ts";
import type { Splice, SplicedEvent } from "../../../src/provider/seam/Splice.ts";
import * as SplicedJoin from "../../../src/provider/seam/SplicedJoin.ts";
import { textOf } from "../../../src/provider/stream/Content.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import type { Part } from "../../../src/provider/stream/Protocol.ts";
import { anchorOf } from "../../../src/seam/Anchor.ts";
import type { SeamVerifier } from "../../../src/seam/SeamVerifier.ts";
import * as SeamVerifiers from "../../../src/seam/SeamVerifier.ts";
import type { ShownResponse } from "../../../src/seam/ShownText.ts";
import { bytesOf, recordings } from "../../Recordings.ts";
import { concat, decode, encode } from "../Decoded.ts";
import { plainVerifier } from "./PlainVerifier.ts";

/** A recorded stream. */
export interface Stream {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly parts: ReadonlyArray<Part>;
}

/** An event of a continuation. */
export interface Told {
  readonly event?: string;
  readonly data: unknown;
}

/** What a continuation is made of. */
export interface Honest {
  /** The parts of the recording behind the cut. */
  readonly rest: ReadonlyArray<Part>;
  /** The parts in front of it. */
  readonly first: ReadonlyArray<Part>;
  /** What the new text begins with. */
  readonly anchor: string;
  /** Counts the continuations of one response, from 2. */
  readonly attempt: number;
}

/** Writes the events of a continuation in a protocol. */
export type Continuer = (honest: Honest) => ReadonlyArray<Told>;

/** Chooses what a continuation of a text run begins with, and verifies it; or why it cannot be gone on with. */
export type Prover = (run: string) => { readonly anchor: string; readonly verifier: SeamVerifier } | string;

/** The package's own anchor and verifier. */
export const prover: Prover = (run) => {
  const anchor = anchorOf(run);
  if (typeof anchor === "string") return anchor;
  return { anchor: anchor.text, verifier: SeamVerifiers.make({ run, anchor, proof: "anchor" }) };
};

/**
 * The plain one of the tests, for which every text can be gone on with: its last sixty characters, of a shorter one all.
 *
 * @param holds how many characters it holds behind the seam
 */
export const plainProver =
  (holds = 0): Prover =>
  (run) => {
    const anchor = run.slice(-60).trimStart();
    return { anchor, verifier: plainVerifier(anchor, holds) };
  };

/** Whole responses of one choice, that say some text: those of the repository and those that are beside it. */
export const wholeStreams = (protocol: WireProtocol): ReadonlyArray<Stream> => {
  const folder = new URL(`../../fixtures/streams/${protocol.id}/`, import.meta.url);
  const own = readdirSync(folder).map((file) => ({ name: file, bytes: readFileSync(new URL(file, folder)) }));
  const found = recordings
    .filter((recording) => recording.protocol === protocol.id)
    .map((recording) => ({ name: recording.file, bytes: bytesOf(recording) }));
  return [...own, ...found].flatMap(({ bytes, name }) => {
    const { end, failure, parts } = decode(protocol, [bytes]);
    const says = parts.some((part) => textOf(part.content) !== "");
    const choices = new Set(parts.flatMap(({ content }) => content.map(({ choice }) => choice)));
    const fails = failure !== undefined || parts.some(({ observation }) => observation.failure !== undefined);
    // A stream may end without its last blank line, behind which the clients see a whole event.
    const whole = concat([new Uint8Array(bytes), encode("\n\n")]);
    return says && end.complete && !fails && choices.size === 1 ? [{ name, bytes: whole, parts }] : [];
  });
};

/** Where a stream may be cut: behind parts that say text. */
export const cutsOf = ({ parts }: Stream): ReadonlyArray<number> =>
  parts.flatMap((part, index) => (textOf(part.content) !== "" && index < parts.length - 1 ? [index + 1] : []));

/** An event as bytes. */
export const written = ({ data, event }: Told): string =>
  `${event === undefined || event === "message" ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

/** What a client reads of a continuation. */
export interface Joined {
  readonly events: ReadonlyArray<SplicedEvent>;
  readonly fault: string | undefined;
  readonly characters: number;
}

/** Joins a continuation to what has left of a splice; `leaves` says how many of its events leave for the client. */
export const joinTo = (
  protocol: WireProtocol,
  splice: Splice,
  told: ReadonlyArray<Told>,
  verifier: SeamVerifier,
  leaves = Number.POSITIVE_INFINITY,
): Joined => {
  const join = SplicedJoin.make(splice, verifier);
  const decoder = Decoder.make(protocol);
  const parts = told.flatMap((event) => decoder.push(encode(written(event))));
  const last = decoder.end();
  const events: Array<SplicedEvent> = [];
  let characters = 0;
  const all = [...parts, ...last.parts].map((part) => () => join.take(part));
  for (const step of last.end.complete ? [...all, join.end] : all) {
    const spliced = step();
    if (spliced.type === "unproven") return { events, fault: spliced.fault, characters };
    if (spliced.type === "failed") return { events, fault: "failed", characters };
    for (const event of spliced.events) {
      if (events.length >= leaves) continue;
      events.push(event);
      splice.recordSent(event.json);
    }
    characters += spliced.characters;
  }
  return { events, fault: undefined, characters };
};

/** Tells a splice what has left of a recording. */
export const shownOf = (protocol: WireProtocol, parts: ReadonlyArray<Part>): Splice => {
  const splice = protocol.splice?.();
  if (splice === undefined) assert.fail(`${protocol.id} has no splice`);
  for (const { event, json } of parts)
    if (json !== undefined || event.event !== "comment") splice.recordSent(json ?? event.data);
  return splice;
};

/** A stream that was cut and gone on with. */
export interface Whole {
  readonly bytes: Uint8Array;
  /** The text in front of the seam. */
  readonly run: string;
  readonly events: ReadonlyArray<SplicedEvent>;
}

/**
 * Cuts a stream and joins its continuation.
 *
 * @param cuts behind how many parts; a second number cuts the continuation, behind so many of its written events
 * @returns why not, where what was shown cannot be gone on with
 */
export const spliced = (
  protocol: WireProtocol,
  stream: Stream,
  continuer: Continuer,
  [cut, further]: readonly [number, number?],
  proves: Prover,
): Whole | string => {
  const first = stream.parts.slice(0, cut);
  const rest = stream.parts.slice(cut);
  const splice = shownOf(protocol, first);
  const shown = splice.response();
  if (shown.refusal !== undefined) return shown.refusal;
  const { characters, run } = shown;
  const size = first.reduce((sum, { event }) => sum + event.bytes, 0);
  // A frame ends with the line end that makes its line blank, and of CRLF that is the CR.
  const crlf = stream.bytes[size - 1] === 13 && stream.bytes[size] === 10 ? 1 : 0;
  const pieces: Array<Uint8Array> = [stream.bytes.subarray(0, size + crlf)];
  const goOn = (attempt: number, { run: said, characters: all }: ShownResponse, leaves?: number): Joined | string => {
    const proof = proves(said);
    if (typeof proof === "string") return proof;
    const { anchor, verifier } = proof;
    const told = continuer({ rest: restBehind(rest, all - characters), first, anchor, attempt });
    const joined = joinTo(protocol, splice, told, verifier, leaves);
    assert.isUndefined(joined.fault, `${stream.name} cut behind ${cut}, attempt ${attempt}: ${JSON.stringify(told)}`);
    return joined;
  };
  const joined = goOn(2, shown, further);
  if (typeof joined === "string") return joined;
  const all = [...joined.events];
  if (further !== undefined) {
    const again = splice.response();
    if (again.refusal !== undefined) return again.refusal;
    const last = goOn(3, again);
    if (typeof last === "string") return last;
    all.push(...last.events);
  }
  pieces.push(...all.map(({ event, json }) => encode(written({ event, data: json }))));
  return { bytes: concat(pieces), run, events: all };
};

/** The parts of a recording behind so much text of it. */
const restBehind = (rest: ReadonlyArray<Part>, characters: number): ReadonlyArray<Part> => {
  let gone = characters;
  return rest.flatMap((part) => {
    if (gone === 0) return [part];
    const text = textOf(part.content);
    const taken = Math.min(gone, text.length);
    gone -= taken;
    return taken === 0 ? [] : [withText(part, text.slice(taken))];
  });
};

/** A part that says another text: its JSON as it is, but for the one place of the text. */
const withText = (part: Part, text: string): Part => {
  const old = textOf(part.content);
  const json: unknown = JSON.parse(JSON.stringify(part.json), (_key, value) => (value === old ? text : value));
  return { ...part, json };
};

/** What a client read first, and what a continuation says. */
export interface Played {
  readonly first: ReadonlyArray<unknown>;
  readonly told: ReadonlyArray<unknown>;
  /** What the continuation begins with; default the whole text run. */
  readonly anchor?: string;
  readonly holds?: number;
}

/** Joins single events, with the plain verifier: what is written, and what the client has read then. */
export const played = (protocol: WireProtocol, { anchor, first, holds, told }: Played) => {
  const { parts } = decode(protocol, [encode(first.map((data) => written({ data })).join(""))]);
  const splice = shownOf(protocol, parts);
  const verifier = plainVerifier(anchor ?? splice.response().run, holds);
  const { characters, events, fault } = joinTo(
    protocol,
    splice,
    told.map((data) => ({ data })),
    verifier,
  );
  return { events: events.map(({ json }) => json), fault, characters, splice };
};
