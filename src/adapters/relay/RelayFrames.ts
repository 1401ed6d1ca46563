/**
 * Cuts a response body into the events that it consists of, each with its own bytes and what it proves.
 *
 * A decoder reads the bytes too and says how many of them each event took; the bytes themselves are never rewritten. The parts
 * of a body, laid end to end in their order, are the body; behind one that ends before its last event's line ends stand those that it lacks.
 */

import type { Failure } from "../../domain/Failure.ts";
import { none, type Observation, ping } from "../../domain/Observation.ts";
import * as Decoder from "../../provider/stream/Decoder.ts";
import type { End, Fold, Part } from "../../provider/stream/Protocol.ts";
import type { CursorPart, Verifier } from "../../provider/stream/Resume.ts";
import type { SeamPart } from "./seam/SeamPart.ts";

/**
 * One event of a body: its own bytes beside what it proves. The bytes may be empty: what an event proves in pieces goes with its
 * last piece's.
 */
export interface RelayPart extends SeamPart {
  /** Where the response can be read on behind this event, as its verifier writes it. */
  readonly cursor?: string;
}

/** Follows the events of a response that can be read on. */
export interface FrameVerification {
  readonly verifier: Verifier<string>;
  /** The body goes on in a response whose beginning has left. */
  readonly resumed: boolean;
}

/** What cuts the body of one attempt. */
export type BodyFrames = Pick<
  RelayFrames,
  "misfit" | "failure" | "failed" | "behindBytes" | "outputTokens" | "push" | "end"
>;

/** Cuts one response body; the next body needs another one. */
export class RelayFrames {
  readonly #decoder: Decoder.Decoder;
  /** Bytes that belong to no part yet; at most as many as the decoder may hold, and one chunk. */
  #pending: Array<Uint8Array<ArrayBuffer>> = [];
  #pendingBytes = 0;
  /** Bytes that the next event takes beyond the decoder's count (a comment inside it) or less (a line end that went before). */
  #owed = 0;
  #terminal = false;
  /** The event that carries the provider's error, with the bytes of everything that has come behind it. */
  #failed: { readonly observation: Observation; readonly chunks: Array<Uint8Array<ArrayBuffer>> } | undefined;

  /** Output tokens that the provider has reported so far, also behind a failure; 0 if it reports none. */
  outputTokens = 0;
  readonly #verifier: Verifier<string> | undefined;
  /** The next bytes stand in the middle of what the client reads: a BOM before them would be a part of their line. */
  #goesOn: boolean;
  #misfit: Failure | undefined;
  /** The last usage that stood behind the failure. */
  #usageBehind: Observation["usage"];
  readonly #keepsDecoded: boolean;

  /**
   * @param decoder a fresh one
   * @param verification for a response that can be read on
   * @param keepsDecoded every part keeps its decoded event
   */
  constructor(decoder: Decoder.Decoder, verification?: FrameVerification, keepsDecoded = false) {
    this.#decoder = decoder;
    this.#keepsDecoded = keepsDecoded;
    this.#verifier = verification?.verifier;
    this.#goesOn = verification?.resumed === true;
  }

  /** Why the body is not what should follow its cursor; nothing is cut behind it. */
  get misfit(): Failure | undefined {
    return this.#misfit;
  }

  /** The first failure of the bytes or of an event; none after the terminal marker. */
  get failure(): Decoder.Decoder["failure"] {
    return this.#decoder.failure;
  }

  /**
   * The event with which the provider said that it failed, or finished with a call that cannot be read. Neither `push` nor `end`
   * gives it: the bytes behind it belong to it, and describe the failure further where the provider reports it twice.
   */
  get failed(): RelayPart | undefined {
    if (this.#failed === undefined) return undefined;
    const { chunks, observation } = this.#failed;
    const failure = this.#decoder.failure ?? observation.failure;
    const usage = this.#usageBehind ?? observation.usage;
    const told = {
      ...observation,
      ...(failure === undefined ? {} : { failure }),
      ...(usage === undefined ? {} : { usage }),
    };
    return { bytes: joined(chunks), observation: told };
  }

  /** Bytes that have come behind it. */
  get behindBytes(): number {
    return this.#failed?.chunks.slice(1).reduce((sum, chunk) => sum + chunk.byteLength, 0) ?? 0;
  }

  /**
   * Takes the next bytes and gives the parts that they complete.
   *
   * @param chunk cut anywhere; it is kept and must not be written to
   */
  push(chunk: Uint8Array<ArrayBuffer>): ReadonlyArray<RelayPart> {
    if (this.#pendingBytes === 0) this.#pending = [chunk];
    else this.#pending.push(chunk);
    this.#pendingBytes += chunk.byteLength;
    return keepAlivesJoined(this.#cut(this.#decoder.push(chunk)));
  }

  /** The bytes have ended cleanly: gives the last parts (with all remaining bytes if the response is whole), and how it ended. */
  end(): { readonly parts: ReadonlyArray<RelayPart>; readonly end: End } {
    const { end, parts } = this.#decoder.end();
    const last = [...this.#cut(parts)];
    // `complete` already rests on the clean end: bytes behind the marker do not change it.
    this.#failed?.chunks.push(this.#take(this.#pendingBytes));
    if (end.complete && this.#pendingBytes > 0) last.push({ bytes: this.#take(this.#pendingBytes), observation: tail });
    const cut = end.complete ? undefined : last.at(-1);
    // What is written behind it, by a seam, a cursor or a keep-alive, would be a part of its event.
    if (cut !== undefined) last[last.length - 1] = { ...cut, bytes: joined([cut.bytes, lineEnds(cut.bytes)]) };
    return { parts: last, end };
  }

  #cut(parts: ReadonlyArray<Part>): ReadonlyArray<RelayPart> {
    if (this.#terminal) return this.#behindMarker(parts);
    if (this.#failed !== undefined) return this.#behindFailure(this.#failed.chunks, parts);
    if (this.#misfit !== undefined) return [];
    if (parts.length === 0) return nothing;
    let out: Array<RelayPart> | undefined;
    let carried = 0;
    let index = -1;
    // Counted by hand: `entries` makes a pair of each event.
    for (const came of parts) {
      index += 1;
      const size = carried + came.event.bytes;
      // One event may give several parts: its bytes leave with the last of them.
      const open = parts[index + 1]?.event.bytes === 0;
      const part = this.#verified(came);
      if (this.#misfit !== undefined) break;
      if (part === undefined) {
        if (!open) this.#bytesOf(came, size);
        carried = open ? size : 0;
        continue;
      }
      const { observation } = part;
      if (observation.usage !== undefined) this.#counts(observation.usage);
      if (Decoder.isTold(observation.failure)) {
        this.#failed = { observation, chunks: [this.#bytesOf(part, size)] };
        return [...(out ?? nothing), ...this.#behindFailure(this.#failed.chunks, parts.slice(index + 1))];
      }
      carried = open ? size : 0;
      const bytes = open ? empty : this.#withoutBom(this.#bytesOf(part, size));
      // A verifier may give another event than came: the decoder's fold says nothing of that one.
      const fold = part.event === came.event ? this.#decoder.folds[index] : undefined;
      const relayed = relayedOf(part, bytes, this.#keepsDecoded, fold);
      if (out === undefined) out = [relayed];
      else out.push(relayed);
      if (!observation.terminal || observation.failure !== undefined) continue;
      this.#terminal = true;
      out.push(...this.#behindMarker(parts.slice(index + 1)));
      break;
    }
    return out ?? nothing;
  }

  /** The event as it counts; undefined for one that was read before. */
  #verified(part: Part): CursorPart | undefined {
    const verdict = this.#verifier?.take(part);
    if (verdict === undefined) return part;
    if (verdict.type === "repeated") return undefined;
    if (verdict.type === "pass") return verdict.part;
    this.#misfit = verdict.failure;
    return part;
  }

  #withoutBom(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    if (!this.#goesOn || bytes.byteLength === 0) return bytes;
    this.#goesOn = false;
    return bom.every((byte, at) => bytes[at] === byte) ? bytes.subarray(bom.length) : bytes;
  }

  /** After the marker nothing is held and nothing can fail: all bytes pass as they come, also those that no decoder reads. */
  #behindMarker(parts: ReadonlyArray<Part>): ReadonlyArray<RelayPart> {
    if (this.#pendingBytes === 0) return [];
    const usage = parts.findLast((part) => part.observation.usage !== undefined)?.observation.usage;
    const closes = parts.some((part) => part.observation.closes === "now") ? ({ closes: "now" } as const) : {};
    const bytes = this.#take(this.#pendingBytes);
    return [{ bytes, observation: { ...behind, ...closes, ...(usage === undefined ? {} : { usage }) } }];
  }

  /** Adds whole events only: a client cannot read a piece of one. */
  #behindFailure(chunks: Array<Uint8Array<ArrayBuffer>>, parts: ReadonlyArray<Part>): ReadonlyArray<RelayPart> {
    for (const part of parts) {
      chunks.push(this.#bytesOf(part, part.event.bytes));
      const { usage } = part.observation;
      if (usage === undefined) continue;
      this.#counts(usage);
      this.#usageBehind = usage;
    }
    return [];
  }

  #counts({ output_tokens = 0 }: NonNullable<Observation["usage"]>): void {
    this.outputTokens = Math.max(this.outputTokens, output_tokens);
  }

  #bytesOf(part: Part, counted: number): Uint8Array<ArrayBuffer> {
    const size = counted + this.#owed;
    this.#owed = 0;
    if (part.observation.keep_alive && part.event.event === "comment" && !this.#opensComment(size)) {
      // The comment stood inside an event that has not ended: its bytes stay with the event's.
      this.#owed = size;
      return empty;
    }
    const taken = this.#take(size);
    if (taken[taken.byteLength - 1] !== CR || this.#pending[0]?.[0] !== LF) return taken;
    // The decoder counts the second half of a CRLF for the next event, but it belongs to this one's end.
    this.#owed = -1;
    return joined([taken, this.#take(1)]);
  }

  /** Whether the next bytes are a comment's own line, behind line ends or a BOM. */
  #opensComment(size: number): boolean {
    let seen = 0;
    for (const chunk of this.#pending) {
      for (const byte of chunk) {
        if (seen >= size) return false;
        seen += 1;
        if (byte === COLON) return true;
        if (byte !== LF && byte !== CR && byte !== 0xef && byte !== 0xbb && byte !== 0xbf) return false;
      }
    }
    return false;
  }

  /** Takes bytes off the front: a view where one chunk holds them, else one copy. */
  #take(size: number): Uint8Array<ArrayBuffer> {
    const [first] = this.#pending;
    if (size <= 0 || first === undefined) return empty;
    this.#pendingBytes -= Math.min(size, this.#pendingBytes);
    if (first.byteLength > size) {
      this.#pending[0] = first.subarray(size);
      return first.subarray(0, size);
    }
    if (first.byteLength === size) {
      if (this.#pending.length === 1) this.#pending = [];
      else this.#pending.shift();
      return first;
    }
    return joined(this.#takeChunks(size));
  }

  #takeChunks(size: number): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    let missing = size;
    let whole = 0;
    while (missing > 0 && whole < this.#pending.length) {
      const chunk = this.#pending[whole];
      if (chunk === undefined || chunk.byteLength > missing) break;
      missing -= chunk.byteLength;
      whole += 1;
    }
    const taken = this.#pending.splice(0, whole);
    const [next] = this.#pending;
    if (missing > 0 && next !== undefined) {
      taken.push(next.subarray(0, missing));
      this.#pending[0] = next.subarray(missing);
    }
    return taken;
  }
}

/** A part, with its event as it was decoded where that is kept. Each is written in one piece: there is one for every event. */
const relayedOf = (came: CursorPart, bytes: RelayPart["bytes"], keeps: boolean, fold: Fold | undefined): RelayPart => {
  const { cursor, observation } = came;
  if (keeps && cursor === undefined)
    return fold === undefined ? { bytes, observation, decoded: came } : { bytes, observation, decoded: came, fold };
  const relayed = cursor === undefined ? { bytes, observation } : { bytes, observation, cursor };
  if (!keeps) return relayed;
  return fold === undefined ? { ...relayed, decoded: came } : { ...relayed, decoded: came, fold };
};

/**
 * Joins keep-alives that came together, except for the first: a clock tells one keep-alive from several, and no more. Parts with a
 * cursor stay apart.
 */
const keepAlivesJoined = (parts: ReadonlyArray<RelayPart>): ReadonlyArray<RelayPart> => {
  if (parts.length < 3 || !parts.some(joinsBefore)) return parts;
  const out: Array<RelayPart> = [];
  let begin = 0;
  for (let index = 1; index <= parts.length; index++) {
    const part = parts[index];
    if (part !== undefined && joinsBefore(part, index, parts)) continue;
    const first = parts[begin];
    const bytes = parts.slice(begin, index).map((one) => one.bytes);
    if (first !== undefined) out.push(bytes.length === 1 ? first : { ...first, bytes: joined(bytes) });
    begin = index;
  }
  return out;
};

/** True from the third of several equal keep-alives on. */
const joinsBefore = (part: RelayPart, index: number, parts: ReadonlyArray<RelayPart>): boolean =>
  part.observation.keep_alive && isSameKeepAlive(part, parts[index - 1]) && isSameKeepAlive(part, parts[index - 2]);

const isSameKeepAlive = (part: RelayPart, before: RelayPart | undefined): boolean =>
  before?.observation === part.observation && part.cursor === undefined && before.cursor === undefined;

/** The line ends that an event lacks, of which the bytes ended too soon. */
const lineEnds = (event: Uint8Array): Uint8Array<ArrayBuffer> => {
  const end = String.fromCharCode(...event.subarray(-4));
  if (/(?:\n\n|\n\r\n)$/.test(end)) return empty;
  return new TextEncoder().encode(/(?:\n|[\r\n]\r)$/.test(end) ? "\n" : "\n\n");
};

const LF = 10;
const CR = 13;
const COLON = 58;
const bom = [0xef, 0xbb, 0xbf];
const empty = new Uint8Array(0);
const nothing: ReadonlyArray<RelayPart> = [];
const behind: Observation = { ...none, quiet: true };
const tail: Observation = { ...ping, keep_alive: false, terminal_at_end: true };

/**
 * Joins byte arrays: those that lie end to end in one buffer by a view, others by one copy.
 *
 * @param chunks in order
 */
export const joined = (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): Uint8Array<ArrayBuffer> => {
  const views = coalesced(chunks);
  const [first] = views;
  if (first === undefined || views.length === 1) return first ?? empty;
  const all = new Uint8Array(views.reduce((sum, chunk) => sum + chunk.byteLength, 0));
  let at = 0;
  for (const chunk of views) {
    all.set(chunk, at);
    at += chunk.byteLength;
  }
  return all;
};

/** Most bytes that are copied so that they leave as one array: a socket takes each array for as much as a copy of so many. */
const copiedBytesMax = 32 * 1024;

/**
 * Puts what leaves in one step together: one array, where that costs no long copy.
 *
 * @param chunks in order
 */
export const together = (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): ReadonlyArray<Uint8Array<ArrayBuffer>> => {
  if (chunks.length === 1 && chunks[0]?.byteLength !== 0) return chunks;
  const views = coalesced(chunks);
  if (views.length < 2 || views.reduce((sum, chunk) => sum + chunk.byteLength, 0) > copiedBytesMax) return views;
  return [joined(views)];
};

/**
 * Joins arrays that lie end to end in one buffer, without a copy, and drops empty ones.
 *
 * @param chunks in order
 */
export const coalesced = (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): ReadonlyArray<Uint8Array<ArrayBuffer>> => {
  const out: Array<Uint8Array<ArrayBuffer>> = [];
  let last: Uint8Array<ArrayBuffer> | undefined;
  for (const chunk of chunks) {
    if (chunk.byteLength === 0) continue;
    if (last !== undefined && last.buffer === chunk.buffer && last.byteOffset + last.byteLength === chunk.byteOffset) {
      last = new Uint8Array(last.buffer, last.byteOffset, last.byteLength + chunk.byteLength);
      out[out.length - 1] = last;
    } else {
      last = chunk;
      out.push(chunk);
    }
  }
  return out;
};
