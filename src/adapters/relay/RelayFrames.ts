/**
 * Splits a response body into its events, each with its own bytes and what it proves.
 *
 * A decoder reads the same bytes and counts the bytes of each event. The bytes are never rewritten: concatenated in order, the parts of a
 * body equal the body. If the body ends inside its last event, the parts also contain the missing line ends.
 */

import type { Failure } from "../../domain/Failure.ts";
import { none, type Observation, ping } from "../../domain/Observation.ts";
import * as Decoder from "../../provider/stream/Decoder.ts";
import type { Framing } from "../../provider/stream/Framing.ts";
import type { End, Fold, Part } from "../../provider/stream/Protocol.ts";
import type { CursorPart, Verifier } from "../../provider/stream/Resume.ts";
import * as Sse from "../../provider/stream/Sse.ts";
import type { SeamPart } from "./seam/SeamFrames.ts";

/**
 * One event of a body, with its own bytes and what it proves. The bytes may be empty, because an event with several parts has its bytes in
 * the last one.
 */
export interface RelayPart extends SeamPart {
  /** Cursor for resuming the response after this event, as written by its verifier. */
  readonly cursor?: string;
}

/** Follows the events of a response that can be resumed. */
export interface FrameVerification {
  readonly verifier: Verifier<string>;
  /** True if the body continues a response whose beginning was already sent. */
  readonly resumed: boolean;
}

/** Splits the body of one attempt. */
export type BodyFrames = Pick<
  RelayFrames,
  "misfit" | "failure" | "failed" | "behindBytes" | "outputTokens" | "push" | "end"
>;

/** Splits one response body. The next body needs a new instance. */
export class RelayFrames {
  readonly #decoder: Decoder.Decoder;
  /** Bytes that belong to no part yet; at most as many as the decoder may hold, plus one chunk. */
  #pending: Array<Uint8Array<ArrayBuffer>> = [];
  #pendingBytes = 0;
  /** Number of bytes of the first chunk that were taken. */
  #from = 0;
  /** Correction to the decoder's count for the next event: positive for a comment inside it, negative for a line end already taken. */
  #owed = 0;
  #terminal = false;
  /** The event that contains the provider's error, with the bytes of everything after it. */
  #failed: { readonly observation: Observation; readonly chunks: Array<Uint8Array<ArrayBuffer>> } | undefined;

  /** Output tokens that the provider has reported so far, including after a failure; 0 if it reports none. */
  outputTokens = 0;
  readonly #verifier: Verifier<string> | undefined;
  /** True if the next bytes continue the client's stream, so that a BOM before them would become part of their line. */
  #goesOn: boolean;
  #misfit: Failure | undefined;
  /** The last usage that was reported after the failure. */
  #usageBehind: Observation["usage"];
  readonly #keepsDecoded: boolean;
  readonly #framing: Framing;

  /**
   * @param decoder a new decoder
   * @param verification the verification of a response that can be resumed
   * @param keepsDecoded true to keep the decoded event on every part
   * @param framing the form of the body
   */
  constructor(
    decoder: Decoder.Decoder,
    verification?: FrameVerification,
    keepsDecoded = false,
    framing: Framing = Sse.framing,
  ) {
    this.#decoder = decoder;
    this.#framing = framing;
    this.#keepsDecoded = keepsDecoded;
    this.#verifier = verification?.verifier;
    this.#goesOn = verification?.resumed === true;
  }

  /** The reason why the body does not continue at its cursor. Nothing after it is split. */
  get misfit(): Failure | undefined {
    return this.#misfit;
  }

  /** The first failure of the bytes or of an event; undefined after the terminal marker. */
  get failure(): Decoder.Decoder["failure"] {
    return this.#decoder.failure;
  }

  /**
   * The event in which the provider reported a failure, or finished with a call that cannot be read. Neither `push` nor `end`
   * returns it. Bytes after it belong to it, and describe the failure further if the provider reports it twice.
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
    return { bytes: concatBytes(chunks), observation: told };
  }

  /** Number of bytes that have come after the failure. */
  get behindBytes(): number {
    return this.#failed?.chunks.slice(1).reduce((sum, chunk) => sum + chunk.byteLength, 0) ?? 0;
  }

  /**
   * Takes the next bytes and returns the parts that they complete.
   *
   * @param chunk bytes split anywhere; they are kept and must not be changed
   */
  push(chunk: Uint8Array<ArrayBuffer>): ReadonlyArray<RelayPart> {
    if (this.#pendingBytes === 0) this.#pending = [chunk];
    else this.#pending.push(chunk);
    this.#pendingBytes += chunk.byteLength;
    return keepAlivesJoined(this.#cut(this.#decoder.push(chunk)));
  }

  /** Handles a clean end. Returns the last parts (with all remaining bytes if the response is complete) and the kind of end. */
  end(): { readonly parts: ReadonlyArray<RelayPart>; readonly end: End } {
    const { end, parts } = this.#decoder.end();
    const last = [...this.#cut(parts)];
    // `complete` already relies on the clean end; bytes after the terminal marker do not change it.
    this.#failed?.chunks.push(this.#take(this.#pendingBytes));
    if (end.complete && this.#pendingBytes > 0) last.push({ bytes: this.#take(this.#pendingBytes), observation: tail });
    const cut = end.complete ? undefined : last.at(-1);
    // Without the line ends, anything written after this event (a continuation, a resumed response or a keep-alive) would become part of
    // it.
    if (cut !== undefined) {
      const missing = new TextEncoder().encode(this.#framing.missingEnd(cut.bytes));
      last[last.length - 1] = { ...cut, bytes: concatBytes([cut.bytes, missing]) };
    }
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
    // The index is counted by hand, because `entries` allocates a pair for each event.
    for (const came of parts) {
      index += 1;
      const size = carried + came.event.bytes;
      // If one event yields several parts, the last of them carries its bytes.
      const open = parts[index + 1]?.event.bytes === 0;
      const part = this.#verify(came);
      if (this.#misfit !== undefined) break;
      if (part === undefined) {
        if (!open) this.#bytesOf(came, size);
        carried = open ? size : 0;
        continue;
      }
      const { observation } = part;
      if (observation.usage !== undefined) this.#countOutput(observation.usage);
      if (Decoder.isTold(observation.failure)) {
        this.#failed = { observation, chunks: [this.#bytesOf(part, size)] };
        return [...(out ?? nothing), ...this.#behindFailure(this.#failed.chunks, parts.slice(index + 1))];
      }
      carried = open ? size : 0;
      const bytes = open ? empty : this.#withoutBom(this.#bytesOf(part, size));
      // A verifier may replace the event, and the decoder's fold does not describe the replacement.
      const fold = part.event === came.event ? this.#decoder.folds[index] : undefined;
      const relayed = makePart(part, bytes, this.#keepsDecoded, fold);
      if (out === undefined) out = [relayed];
      else out.push(relayed);
      if (!observation.terminal || observation.failure !== undefined) continue;
      this.#terminal = true;
      out.push(...this.#behindMarker(parts.slice(index + 1)));
      break;
    }
    return out ?? nothing;
  }

  /** Returns the verified event; undefined if it repeats an event that was read before. */
  #verify(part: Part): CursorPart | undefined {
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

  /** After the terminal marker nothing is held and nothing can fail, so all bytes pass immediately, even those that no decoder reads. */
  #behindMarker(parts: ReadonlyArray<Part>): ReadonlyArray<RelayPart> {
    if (this.#pendingBytes === 0) return [];
    const usage = parts.findLast((part) => part.observation.usage !== undefined)?.observation.usage;
    const closes = parts.some((part) => part.observation.closes === "now") ? ({ closes: "now" } as const) : {};
    const bytes = this.#take(this.#pendingBytes);
    return [{ bytes, observation: { ...behind, ...closes, ...(usage === undefined ? {} : { usage }) } }];
  }

  /** Adds the events after a failure to the failed event. Adds whole events only, because a client cannot read part of an event. */
  #behindFailure(chunks: Array<Uint8Array<ArrayBuffer>>, parts: ReadonlyArray<Part>): ReadonlyArray<RelayPart> {
    for (const part of parts) {
      chunks.push(this.#bytesOf(part, part.event.bytes));
      const { usage } = part.observation;
      if (usage === undefined) continue;
      this.#countOutput(usage);
      this.#usageBehind = usage;
    }
    return [];
  }

  #countOutput({ output_tokens = 0 }: NonNullable<Observation["usage"]>): void {
    this.outputTokens = Math.max(this.outputTokens, output_tokens);
  }

  #bytesOf(part: Part, counted: number): Uint8Array<ArrayBuffer> {
    const size = counted + this.#owed;
    this.#owed = 0;
    if (part.observation.keep_alive && part.event.event === "comment" && !this.#isCommentNext(size)) {
      // The comment is inside an unfinished event: its bytes remain with the event's.
      this.#owed = size;
      return empty;
    }
    const taken = this.#take(size);
    if (taken[taken.byteLength - 1] !== CR || this.#pending[0]?.[this.#from] !== LF) return taken;
    // The decoder counts the LF of a CRLF for the next event, but the LF ends this event.
    this.#owed = -1;
    return concatBytes([taken, this.#take(1)]);
  }

  /** True if the next bytes are a comment on its own line, after line ends or a BOM. */
  #isCommentNext(size: number): boolean {
    this.#dropTaken();
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

  /** Takes bytes from the front, as a view if one chunk contains them, else as one copy. */
  #take(size: number): Uint8Array<ArrayBuffer> {
    const [first] = this.#pending;
    if (size <= 0 || first === undefined) return empty;
    this.#pendingBytes -= Math.min(size, this.#pendingBytes);
    const from = this.#from;
    const end = from + size;
    if (end < first.byteLength) {
      this.#from = end;
      return first.subarray(from, end);
    }
    if (end > first.byteLength) return concatBytes(this.#takeChunks(size));
    this.#from = 0;
    if (this.#pending.length === 1) this.#pending = [];
    else this.#pending.shift();
    return from === 0 ? first : first.subarray(from);
  }

  /** Drops the taken bytes of the first chunk. */
  #dropTaken(): void {
    const [first] = this.#pending;
    if (first !== undefined && this.#from > 0) this.#pending[0] = first.subarray(this.#from);
    this.#from = 0;
  }

  #takeChunks(size: number): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    this.#dropTaken();
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

/** Creates a part, with its decoded event if that is kept. Written out for each case, because this runs for every event. */
const makePart = (came: CursorPart, bytes: RelayPart["bytes"], keeps: boolean, fold: Fold | undefined): RelayPart => {
  const { cursor, observation } = came;
  if (keeps && cursor === undefined)
    return fold === undefined ? { bytes, observation, decoded: came } : { bytes, observation, decoded: came, fold };
  const relayed = cursor === undefined ? { bytes, observation } : { bytes, observation, cursor };
  if (!keeps) return relayed;
  return fold === undefined ? { ...relayed, decoded: came } : { ...relayed, decoded: came, fold };
};

/**
 * Joins equal keep-alives that arrive together, except the first, because the clocks only need to distinguish one from several. Parts with
 * a cursor remain separate.
 */
const keepAlivesJoined = (parts: ReadonlyArray<RelayPart>): ReadonlyArray<RelayPart> => {
  if (parts.length < 3 || !parts.some(isSurplusKeepAlive)) return parts;
  const out: Array<RelayPart> = [];
  let begin = 0;
  for (let index = 1; index <= parts.length; index++) {
    const part = parts[index];
    if (part !== undefined && isSurplusKeepAlive(part, index, parts)) continue;
    const first = parts[begin];
    const bytes = parts.slice(begin, index).map((one) => one.bytes);
    if (first !== undefined) out.push(bytes.length === 1 ? first : { ...first, bytes: concatBytes(bytes) });
    begin = index;
  }
  return out;
};

/** True from the third of several equal keep-alives. */
const isSurplusKeepAlive = (part: RelayPart, index: number, parts: ReadonlyArray<RelayPart>): boolean =>
  part.observation.keep_alive && isSameKeepAlive(part, parts[index - 1]) && isSameKeepAlive(part, parts[index - 2]);

const isSameKeepAlive = (part: RelayPart, before: RelayPart | undefined): boolean =>
  before?.observation === part.observation && part.cursor === undefined && before.cursor === undefined;

const LF = 10;
const CR = 13;
const COLON = 58;
const bom = [0xef, 0xbb, 0xbf];
const empty = new Uint8Array(0);
const nothing: ReadonlyArray<RelayPart> = [];
const behind: Observation = { ...none, quiet: true };
const tail: Observation = { ...ping, keep_alive: false, terminal_at_end: true };

/**
 * Concatenates byte arrays, as a view if they are adjacent in one buffer, else as one copy.
 *
 * @param chunks arrays in order
 */
export const concatBytes = (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): Uint8Array<ArrayBuffer> => {
  const views = coalesce(chunks);
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

/** Maximum bytes that are copied to send them as one array. For a socket, each further array costs as much as copying that many bytes. */
const copiedBytesMax = 32 * 1024;

/**
 * Merges arrays that are sent together into one array, unless that needs a copy of more than `copiedBytesMax`.
 *
 * @param chunks arrays in order
 */
export const together = (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): ReadonlyArray<Uint8Array<ArrayBuffer>> => {
  if (chunks.length === 1 && chunks[0]?.byteLength !== 0) return chunks;
  const views = coalesce(chunks);
  if (views.length < 2 || views.reduce((sum, chunk) => sum + chunk.byteLength, 0) > copiedBytesMax) return views;
  return [concatBytes(views)];
};

/**
 * Merges arrays that are adjacent in one buffer, without copying, and drops empty ones.
 *
 * @param chunks arrays in order
 */
export const coalesce = (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): ReadonlyArray<Uint8Array<ArrayBuffer>> => {
  const out: Array<Uint8Array<ArrayBuffer>> = [];
  let first: Uint8Array<ArrayBuffer> | undefined;
  let length = 0;
  for (const chunk of chunks) {
    if (chunk.byteLength === 0) continue;
    if (first?.buffer === chunk.buffer && first.byteOffset + length === chunk.byteOffset) {
      length += chunk.byteLength;
      continue;
    }
    if (first !== undefined) out.push(viewFrom(first, length));
    first = chunk;
    length = chunk.byteLength;
  }
  if (first !== undefined) out.push(viewFrom(first, length));
  return out;
};

/** Returns `length` bytes from the start of an array. They may extend beyond its end, into adjacent arrays of the same buffer. */
const viewFrom = (first: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> =>
  length === first.byteLength ? first : new Uint8Array(first.buffer, first.byteOffset, length);
