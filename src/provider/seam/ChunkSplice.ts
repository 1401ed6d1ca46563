/**
 * Joins continuations to a response that consists of chunks. Each chunk lists entries (choices, candidates), and a client concatenates
 * their text, so nothing between two pieces ends the text.
 *
 * The splice withholds text that the gate (`TextGate`) withholds. It replaces the names, the index and the token counts in a chunk by those
 * of the response that the client reads, and drops chunks that are then empty. It adds no content. The protocol reads and writes its
 * entries.
 *
 * A finish that the decoder is sure of (`terminal`) closes the gate and is sent at once. Some servers send a finish with every chunk. Such
 * a finish waits for the end, with everything after it, and is removed if more content follows.
 */
import * as Json from "../../domain/Json.ts";
import type { ShownResponse } from "../../seam/ShownText.ts";
import { ShownText } from "../../seam/ShownText.ts";
import { isDone } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import { JoinedUsage, type UsageFields, type UsageSoFar } from "./JoinedUsage.ts";
import type { Splice, SplicedAttempt, SplicedEvent } from "./Splice.ts";
import type { TextGate } from "./TextGate.ts";

/** A chunk in the data of an event, and the object that wraps it, if any. */
export interface Chunk {
  readonly json: Json.JsonRecord;
  readonly wrapper?: Json.JsonRecord;
}

/** The client's view of the response when a continuation began. `S` is the protocol's own record of it. */
export interface Before<S> {
  readonly names: Json.JsonRecord;
  /** The index of the entries as sent to the client; undefined if the server sends none. */
  readonly index: unknown;
  readonly isWrapped: boolean;
  readonly shown: ShownResponse;
  readonly usage: UsageSoFar;
  readonly own: S;
}

/** A part of a chunk: all of it, or the words that are sent at once, or the finish that waits. */
export type Portion = "whole" | "words" | "finish";

/** An entry of a continuation after its content passed the gate. */
interface JoinedEntry {
  /** True if the entry has any content, even if the gate holds or drops all of it. */
  readonly goesOn: boolean;
  readonly finishes: boolean;
  /**
   * Writes the entry; undefined if nothing of it remains.
   *
   * @param mayFinish true if its finish may be sent
   * @param held text that was held and ends the content
   */
  readonly write: (portion: Portion, mayFinish: boolean, held: string) => Json.JsonRecord | undefined;
}

/**
 * Passes the content of an entry through the gate.
 *
 * @param isTerminal true if the decoder is sure of the finish, so that held text is sent with it
 * @returns undefined if it cannot be joined, after the gate has failed
 */
export type JoinEntry = (
  entry: Json.JsonRecord,
  chunk: Json.JsonRecord,
  isTerminal: boolean,
) => JoinedEntry | undefined;

/** Rewrites token counts. */
export type Count = (usage: Json.JsonRecord) => Json.JsonRecord;

/** The form of a protocol's chunks. */
export interface ChunkForm<S> {
  /** The fields that name a response. A client may identify its chunks by them. */
  readonly names: ReadonlyArray<string>;
  /** The field of a chunk that lists its entries. */
  readonly entries: string;
  readonly usage: UsageFields;
  /** True if the `[DONE]` sentinel ends a response; otherwise the sentinel, like a finish, waits for the clean end. */
  readonly endsWithDone: boolean;
  /** True if a finish that waits can carry held text. */
  readonly finishCarriesText: boolean;
  /** Fields that are sent with the text and removed from the finish, so that they are not sent twice. */
  readonly finishOmits: ReadonlyArray<string>;
  readonly chunkOf: (json: unknown) => Chunk | undefined;
  /** Returns the choice that an entry belongs to, by the entry's index. */
  readonly indexOf: (index: unknown) => number;
  /** Rewrites the fields of a chunk that report token counts. */
  readonly count: (chunk: Json.JsonRecord, count: Count) => Json.JsonRecord;
  /** True if a chunk cannot be joined before the seam, regardless of its entries. */
  readonly isBlocked?: (chunk: Json.JsonRecord) => boolean;
  readonly start: () => S;
  /** Records the fields of a sent chunk other than its entries. */
  readonly recordSentChunk?: (own: S, chunk: Json.JsonRecord) => void;
  /** Records an entry that was sent. Returns the length of its text and reasoning, in UTF-16 code units. */
  readonly recordSentEntry: (own: S, entry: Json.JsonRecord, text: ShownText) => number;
  readonly joiner: (gate: TextGate, before: Before<S>) => JoinEntry;
  /** The data of a chunk with only text, for held text that no other chunk can carry. */
  readonly textOnly: (text: string, before: Before<S>) => Json.JsonRecord;
}

/** Creates the splice of one response. */
export const make = <S extends object>(form: ChunkForm<S>): Splice => new ChunkSplice(form);

class ChunkSplice<S extends object> implements Splice {
  readonly #form: ChunkForm<S>;
  readonly #text = new ShownText();
  readonly #usage: JoinedUsage;
  readonly #own: S;
  readonly #names: Record<string, unknown> = {};
  #index: unknown;
  #isWrapped = false;

  constructor(form: ChunkForm<S>) {
    this.#form = form;
    this.#usage = new JoinedUsage(form.usage);
    this.#own = form.start();
  }

  readonly recordSent = (json: unknown): void => {
    const form = this.#form;
    const found = form.chunkOf(json);
    if (found === undefined) return;
    const { json: chunk, wrapper } = found;
    this.#isWrapped ||= wrapper !== undefined;
    form.recordSentChunk?.(this.#own, chunk);
    for (const name of form.names) if (chunk[name] || !(name in this.#names)) this.#names[name] = chunk[name];
    for (const item of Json.list(chunk[form.entries])) {
      const entry = Json.record(item) ?? {};
      this.#index ??= entry.index;
      this.#text.recordChoice(form.indexOf(entry.index));
      this.#usage.recordCharacters(form.recordSentEntry(this.#own, entry, this.#text));
    }
    form.count(chunk, this.#recordSentUsage);
  };

  readonly #recordSentUsage: Count = (usage) => {
    this.#usage.recordCounts(usage);
    return usage;
  };

  readonly response = () => this.#text.response();

  readonly startContinuation = (gate: TextGate): SplicedAttempt =>
    new ChunkAttempt(this.#form, gate, this.#usage, {
      names: { ...this.#names },
      index: this.#index,
      isWrapped: this.#isWrapped,
      shown: this.#text.response(),
      usage: this.#usage.soFar,
      own: { ...this.#own },
    });
}

/** A chunk of a continuation after its content passed the gate. */
interface JoinedChunk extends Chunk {
  readonly entries: ReadonlyArray<JoinedEntry>;
  readonly goesOn: boolean;
  readonly finishes: boolean;
}

/** An event that is written later, when its place is known. */
interface Draft {
  readonly joined: boolean;
  /** True if the event lists entries, which can carry text. */
  readonly hasEntries: boolean;
  /** Writes the event; undefined if nothing of it remains. */
  readonly write: (mayFinish: boolean, held: string) => SplicedEvent | undefined;
}

/** Maximum events that wait after a finish that is not sure. */
const waitingMax = 256;

const nothing: ReadonlyArray<SplicedEvent> = [];

class ChunkAttempt<S extends object> implements SplicedAttempt {
  readonly #form: ChunkForm<S>;
  readonly #gate: TextGate;
  readonly #usage: JoinedUsage;
  readonly #before: Before<S>;
  readonly #join: JoinEntry;
  /** A finish that is not sure, and events without content that arrived after such a finish or before the seam. */
  #waiting: Array<Draft> = [];
  #terminal = false;

  constructor(form: ChunkForm<S>, gate: TextGate, usage: JoinedUsage, before: Before<S>) {
    this.#form = form;
    this.#gate = gate;
    this.#usage = usage;
    this.#before = before;
    this.#join = form.joiner(gate, before);
  }

  readonly take = ({ event: { data, event }, json, observation }: Part): ReadonlyArray<SplicedEvent> => {
    if (this.#gate.fault !== undefined) return nothing;
    if (isDone(data)) return this.#onDone({ event, json: data.trim() });
    const chunk = this.#form.chunkOf(json);
    if (chunk === undefined) return nothing;
    this.#terminal ||= observation.terminal;
    const joined = this.#joinChunk(chunk);
    return joined === undefined || this.#gate.fault !== undefined ? nothing : this.#place(event, joined);
  };

  readonly end = (): ReadonlyArray<SplicedEvent> => {
    // If only the end proves the seam, everything that waits for the end comes after the seam.
    const held = this.#gate.close();
    if (!this.#gate.isJoined) return nothing;
    const carrier = this.#form.finishCarriesText ? this.#waiting.findIndex(({ hasEntries }) => hasEntries) : -1;
    const isCarried = held === "" || carrier !== -1;
    return isCarried ? this.#flush(true, held, carrier) : [this.#textEvent(held), ...this.#flush(true)];
  };

  #textEvent(text: string): SplicedEvent {
    const json = this.#form.textOnly(text, this.#before);
    return { event: "message", json: this.#before.isWrapped ? { response: json } : json };
  }

  #onDone(sentinel: SplicedEvent): ReadonlyArray<SplicedEvent> {
    if (this.#form.endsWithDone) {
      const last = this.end();
      return this.#gate.isJoined ? [...last, sentinel] : nothing;
    }
    if (this.#waiting.length === 0 && this.#gate.isJoined) return [sentinel];
    this.#wait(false, () => sentinel);
    return nothing;
  }

  /** Writes events that may be sent, and holds a finish that is not sure. */
  #place(event: string, chunk: JoinedChunk): ReadonlyArray<SplicedEvent> {
    const before = chunk.goesOn ? this.#flush(false) : nothing;
    if (this.#terminal)
      return [...before, ...(chunk.goesOn ? nothing : this.end()), ...this.#writeNow(event, chunk, true)];
    const waitsNot = this.#waiting.length === 0 && this.#gate.isJoined;
    if (!chunk.finishes && (chunk.goesOn || waitsNot)) return [...before, ...this.#writeNow(event, chunk, false)];
    const portion = chunk.goesOn ? "finish" : "whole";
    this.#wait(chunk.entries.length > 0, (mayFinish, held) => this.#event(event, chunk, portion, mayFinish, held));
    return chunk.goesOn ? [...before, ...this.#writeNow(event, chunk, false, "words")] : nothing;
  }

  /** Holds an event. If the event came before the seam, it is written only at the end. */
  #wait(hasEntries: boolean, write: Draft["write"]): void {
    const { isJoined: joined } = this.#gate;
    this.#waiting.push({ joined, hasEntries, write });
    if (this.#waiting.length <= waitingMax) return;
    if (joined) this.#gate.fail("unwritable");
    else this.#waiting.shift();
  }

  #writeNow(
    event: string,
    chunk: JoinedChunk,
    mayFinish: boolean,
    portion: Portion = "whole",
  ): ReadonlyArray<SplicedEvent> {
    const written = this.#gate.isJoined ? this.#event(event, chunk, portion, mayFinish, "") : undefined;
    return written === undefined ? nothing : [written];
  }

  /**
   * Writes the waiting events. At the end these are all of them; before that, only those after the seam, without their finish.
   *
   * @param carrier the waiting event that carries the held text
   */
  #flush(isEnd: boolean, held = "", carrier = -1): ReadonlyArray<SplicedEvent> {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting.flatMap(({ joined, write }, index) => {
      const event = isEnd || joined ? write(isEnd, index === carrier ? held : "") : undefined;
      return event === undefined ? [] : [event];
    });
  }

  /** Passes the content of a chunk through the gate; undefined if it cannot be joined. */
  #joinChunk(chunk: Chunk): JoinedChunk | undefined {
    const { indexOf, entries: field, isBlocked } = this.#form;
    const { json } = chunk;
    if (!this.#gate.isJoined && isBlocked?.(json) === true) {
      this.#gate.fail("not_text");
      return undefined;
    }
    const entries: Array<JoinedEntry> = [];
    for (const item of Json.list(json[field])) {
      const entry = Json.record(item) ?? {};
      if (indexOf(entry.index) !== indexOf(this.#before.index)) {
        this.#gate.fail("unwritable");
        return undefined;
      }
      const joined = this.#join(entry, json, this.#terminal);
      if (joined === undefined) return undefined;
      entries.push(joined);
    }
    const goesOn = entries.some((entry) => entry.goesOn);
    return { ...chunk, entries, goesOn, finishes: entries.some((entry) => entry.finishes) };
  }

  #event(
    event: string,
    { entries, json, wrapper }: JoinedChunk,
    portion: Portion,
    mayFinish: boolean,
    held: string,
  ): SplicedEvent | undefined {
    const written = entries.flatMap((entry) => entry.write(portion, mayFinish, held) ?? []);
    if (entries.length > 0 && written.length === 0) return undefined;
    const next: Record<string, unknown> = { ...json, ...this.#form.count(json, this.#joinUsage) };
    for (const name of this.#form.names)
      if (name in next) {
        if (this.#before.names[name] === undefined) delete next[name];
        else next[name] = this.#before.names[name];
      }
    if (written.length > 0) next[this.#form.entries] = written;
    if (portion === "finish") for (const name of this.#form.finishOmits) delete next[name];
    return { event, json: wrapper === undefined ? next : { ...wrapper, response: next } };
  }

  readonly #joinUsage: Count = (usage) => this.#usage.join(this.#before.usage, usage, this.#gate.cut);
}

/** The names of a response that have a value, for a chunk that the splice itself writes. */
export const namesOf = ({ names }: Pick<Before<unknown>, "names">): Json.JsonRecord =>
  Object.fromEntries(Object.entries(names).filter(([, value]) => value !== undefined));
