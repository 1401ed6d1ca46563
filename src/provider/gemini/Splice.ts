/**
 * Joins continuations to a response of Gemini.
 *
 * Each chunk is a content of its own; a client puts the texts of all of them together, so that a thought between two texts ends
 * no text. Dropped are thoughts in front of the seam, the text that the gate keeps back, and chunks that have nothing left.
 * Rewritten are the names of the response (`responseId`, `modelVersion`, `createTime`), the text, token counts, and the places of
 * sources and citations, which are counted in bytes. Signatures stay with their parts.
 *
 * Gemini has no terminal event: a finish is one only together with the clean end, and some servers send one with every chunk. So a
 * finish waits for that end, with what comes behind it, and content that goes on takes it off. It leaves with a part of empty
 * text, as Google sends it: Google's own SDK throws a whole turn away that has one chunk without parts.
 */
import * as Json from "../../domain/Json.ts";
import { AttemptGate, bytesOf } from "../seam/AttemptGate.ts";
import { JoinedUsage, type UsageFields, type UsageSoFar } from "../seam/JoinedUsage.ts";
import { ShownText } from "../seam/ShownText.ts";
import type { Splice, SplicedAttempt, SplicedEvent, TextGate } from "../seam/Splice.ts";
import { isDone, reason } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import { type JoinedParts, joinParts, leftPart } from "./SplicedParts.ts";
import { moved, type Places } from "./SplicedPlaces.ts";

/** Makes the splice of one response. */
export const splice = (): Splice => new GeminiSplice();

/** The fields that name a response. */
const names = ["responseId", "modelVersion", "createTime"];

const usageFields: UsageFields = {
  input: ["promptTokenCount"],
  output: ["candidatesTokenCount"],
  total: "totalTokenCount",
  ofInput: [
    ...["promptTokensDetails", "cachedContentTokenCount", "cacheTokensDetails"],
    ...["toolUsePromptTokenCount", "toolUsePromptTokensDetails"],
  ],
  summed: ["thoughtsTokenCount"],
};

/** What an attempt reads of the response that it goes on with, as it was when the attempt began. */
interface Before {
  readonly names: Json.JsonRecord;
  /** The index of the candidate as it left; undefined where the server sends none. */
  readonly index: unknown;
  /** Code Assist, the endpoint of Gemini CLI, wraps every chunk. */
  readonly isWrapped: boolean;
  readonly run: string;
  /** All visible text, in bytes of UTF-8. */
  readonly bytes: number;
  readonly usage: UsageSoFar;
}

class GeminiSplice implements Splice {
  readonly #text = new ShownText();
  readonly #usage = new JoinedUsage(usageFields);
  readonly #names: Record<string, unknown> = {};
  #index: unknown;
  #isWrapped = false;
  #bytes = 0;

  readonly left = (json: unknown): void => {
    const { chunk, wrapper } = chunkOf(json);
    if (chunk === undefined) return;
    this.#isWrapped ||= wrapper !== undefined;
    for (const name of names) if (chunk[name] || !(name in this.#names)) this.#names[name] = chunk[name];
    for (const entry of Json.list(chunk.candidates)) this.#candidate(Json.record(entry) ?? {});
    const usage = Json.record(chunk.usageMetadata);
    if (usage !== undefined) this.#usage.left(usage);
  };

  readonly shown = () => this.#text.shown();

  readonly continued = (gate: TextGate): SplicedAttempt =>
    new GeminiAttempt(new AttemptGate(gate), this.#usage, {
      names: { ...this.#names },
      index: this.#index,
      isWrapped: this.#isWrapped,
      run: this.#text.shown().run,
      bytes: this.#bytes,
      usage: this.#usage.soFar,
    });

  #candidate(entry: Json.JsonRecord): void {
    this.#index ??= entry.index;
    this.#text.chooses(Json.natural(entry.index) ?? 0);
    for (const item of Json.list(Json.record(entry.content)?.parts)) {
      const { thought, text } = leftPart(Json.record(item) ?? {}, this.#text);
      this.#usage.said(thought.length + text.length);
      this.#bytes += bytesOf(text);
    }
  }
}

/** An event that is written once its place is known. */
interface Draft {
  /** It came behind the seam. */
  readonly joined: boolean;
  /** Writes it; undefined where nothing is left of it. */
  readonly write: (finishes: boolean, held: string) => SplicedEvent | undefined;
}

/** Most events that may wait behind a finish. */
const waitingMax = 256;

const nothing: ReadonlyArray<SplicedEvent> = [];

class GeminiAttempt implements SplicedAttempt {
  readonly #gate: AttemptGate;
  readonly #usage: JoinedUsage;
  readonly #before: Before;
  /** A finish, and what came behind it or behind the anchor. None of it says anything of the response. */
  #waiting: Array<Draft> = [];
  #terminal = false;

  constructor(gate: AttemptGate, usage: JoinedUsage, before: Before) {
    this.#gate = gate;
    this.#usage = usage;
    this.#before = before;
  }

  readonly take = ({ event, json, observation }: Part): ReadonlyArray<SplicedEvent> => {
    if (this.#gate.failed) return nothing;
    if (isDone(event.data)) return this.#placed(event.event, undefined, event.data.trim());
    const { chunk, wrapper } = chunkOf(json);
    if (chunk === undefined) return nothing;
    this.#terminal ||= observation.terminal;
    const read = this.#read(chunk, wrapper);
    return read === undefined || this.#gate.failed ? nothing : this.#placed(event.event, read, "");
  };

  readonly end = (): ReadonlyArray<SplicedEvent> => {
    // Where the seam is proven by the end alone, what waits for the end stands behind it.
    const held = this.#gate.close();
    if (!this.#gate.joined) return nothing;
    const takes = this.#waiting.length > 0;
    return [...(held === "" || takes ? nothing : [this.#textEvent(held)]), ...this.#flush(true, held)];
  };

  /** Writes what may leave, and lets a finish wait. */
  #placed(event: string, read: Read | undefined, sentinel: string): ReadonlyArray<SplicedEvent> {
    if (read === undefined) {
      if (this.#waiting.length === 0 && this.#gate.joined) return [{ event, json: sentinel }];
      this.#wait(() => ({ event, json: sentinel }));
      return nothing;
    }
    const before = read.goesOn ? this.#flush(false, "") : nothing;
    if (this.#terminal) {
      // A call that cannot be read: the marker stands in this chunk, and no end is waited for.
      const held = this.#gate.close();
      return [...before, ...this.#flush(true, ""), ...this.#now(event, read, true, held)];
    }
    const waitsNot = this.#waiting.length === 0 && this.#gate.joined;
    if (!read.finishes && (read.goesOn || waitsNot)) return [...before, ...this.#now(event, read, false, "")];
    const waits = read.goesOn ? { ...read, candidates: read.candidates.map(wordless) } : read;
    this.#wait((finishes, held) => this.#event(event, waits, finishes, held));
    const words = { ...read, candidates: read.candidates.map(wordsAlone) };
    return read.goesOn ? [...before, ...this.#now(event, words, false, "")] : nothing;
  }

  /** What comes in front of the seam is written only where the seam turns out to have stood in front of it. */
  #wait(write: Draft["write"]): void {
    const { joined } = this.#gate;
    this.#waiting.push({ joined, write });
    if (this.#waiting.length <= waitingMax) return;
    if (joined) this.#gate.fail("unwritable");
    else this.#waiting.shift();
  }

  #now(event: string, read: Read, finishes: boolean, held: string): ReadonlyArray<SplicedEvent> {
    const written = this.#gate.joined ? this.#event(event, read, finishes, held) : undefined;
    return written === undefined ? nothing : [written];
  }

  /** Writes what has waited: at the end all of it, else what came behind the seam, without its finish. */
  #flush(isEnd: boolean, held: string): ReadonlyArray<SplicedEvent> {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting.flatMap(({ joined, write }, index) => {
      const event = isEnd || joined ? write(isEnd, index === 0 ? held : "") : undefined;
      return event === undefined ? [] : [event];
    });
  }

  /** Asks the gate for everything that a chunk says; undefined where it cannot be joined. */
  #read(chunk: Json.JsonRecord, wrapper: Json.JsonRecord | undefined): Read | undefined {
    const blocked = reason(Json.record(chunk.promptFeedback)?.blockReason);
    if (blocked !== "" && blocked !== "BLOCK_REASON_UNSPECIFIED" && !this.#gate.joined) {
      this.#gate.fail("not_text");
      return undefined;
    }
    const candidates: Array<Candidate> = [];
    for (const item of Json.list(chunk.candidates)) {
      const entry = Json.record(item) ?? {};
      if ((Json.natural(entry.index) ?? 0) !== (Json.natural(this.#before.index) ?? 0)) {
        this.#gate.fail("unwritable");
        return undefined;
      }
      const parts = joinParts(Json.list(Json.record(entry.content)?.parts), this.#gate);
      if (parts === undefined) return undefined;
      candidates.push({ entry, ...parts });
    }
    return {
      chunk,
      wrapper,
      candidates,
      goesOn: candidates.some(({ goesOn }) => goesOn),
      finishes: candidates.some(({ entry }) => reason(entry.finishReason) !== ""),
    };
  }

  #event(event: string, read: Read, finishes: boolean, held: string): SplicedEvent | undefined {
    const { candidates, chunk, wrapper } = read;
    const written = candidates.flatMap((candidate) => this.#candidate(candidate, finishes, held));
    if (candidates.length > 0 && written.length === 0) return undefined;
    const next: Record<string, unknown> = { ...chunk };
    for (const name of names)
      if (name in next) {
        if (this.#before.names[name] === undefined) delete next[name];
        else next[name] = this.#before.names[name];
      }
    if (candidates.length > 0) next.candidates = written;
    const usage = Json.record(chunk.usageMetadata);
    if (usage !== undefined) next.usageMetadata = this.#counted(usage);
    return { event, json: wrapper === undefined ? next : { ...wrapper, response: next } };
  }

  #counted(usage: Json.JsonRecord): Json.JsonRecord {
    const next = this.#usage.joined(this.#before.usage, usage, this.#gate.cut);
    const grown = (Json.natural(next.candidatesTokenCount) ?? 0) - (Json.natural(usage.candidatesTokenCount) ?? 0);
    const details = Json.list(usage.candidatesTokensDetails);
    if (details.length === 0) return next;
    return { ...next, candidatesTokensDetails: details.map((detail) => grownBy(detail, grown)) };
  }

  /** A candidate as it is written; nothing where it has nothing left to say. */
  #candidate({ entry, isCut, parts }: Candidate, finishes: boolean, held: string): ReadonlyArray<Json.JsonRecord> {
    const { avgLogprobs: _average, content, finishReason, index: _index, logprobsResult: _logprobs, ...rest } = entry;
    const { finishMessage, tokenCount: _count, ...more } = rest;
    const isOver = finishes && reason(finishReason) !== "";
    const all = held === "" ? parts : [...parts, { text: held }];
    const isEmpty = all.length === 0 && !isOver && !Object.keys(more).some((name) => name !== "safetyRatings");
    if (isEmpty && (isCut || reason(finishReason) !== "")) return [];
    const { index } = this.#before;
    const had = Json.record(content) ?? {};
    // Where the server itself sent no part, there is none to be kept.
    const isBare = all.length === 0 && !isCut;
    const said = isBare
      ? content === undefined
        ? {}
        : { content }
      : { content: { ...had, parts: all.length === 0 ? [{ text: "" }] : all, role: had.role ?? "model" } };
    return [
      {
        ...said,
        ...(isOver ? { finishReason } : {}),
        ...(isOver && finishMessage !== undefined ? { finishMessage } : {}),
        ...(index === undefined ? {} : { index }),
        ...moved(more, this.#places()),
      },
    ];
  }

  #places(): Places {
    return { bytes: this.#before.bytes, run: this.#before.run, cut: this.#gate.cutBytes };
  }

  /** A chunk of text alone, for what was held where no chunk comes that could take it along. */
  #textEvent(text: string): SplicedEvent {
    const { index, isWrapped, names } = this.#before;
    const candidate = {
      content: { parts: [{ text }], role: "model" },
      ...(index === undefined ? {} : { index }),
    };
    const told = Object.entries(names).filter(([, value]) => value !== undefined);
    const json = { candidates: [candidate], ...Object.fromEntries(told) };
    return { event: "message", json: isWrapped ? { response: json } : json };
  }
}

/** What a candidate says in one chunk, as far as the gate let it pass. */
interface Candidate extends JoinedParts {
  readonly entry: Json.JsonRecord;
}

/** What a chunk says. */
interface Read {
  readonly chunk: Json.JsonRecord;
  readonly wrapper: Json.JsonRecord | undefined;
  readonly candidates: ReadonlyArray<Candidate>;
  /** Its candidates say something of the response, be it held or dropped. */
  readonly goesOn: boolean;
  readonly finishes: boolean;
}

/** A candidate whose words have left: its finish, and what is said about them. */
const wordless = ({ entry }: Candidate): Candidate => ({ entry, parts: [], isCut: true, goesOn: false });

/** The words of a candidate without what is said about them. */
const wordsAlone = (candidate: Candidate): Candidate => {
  const { content, index } = candidate.entry;
  return { ...candidate, entry: { content, index }, isCut: true };
};

/** Text has grown by so many tokens. */
const grownBy = (detail: unknown, tokens: number): unknown => {
  const record = Json.record(detail);
  const count = Json.natural(record?.tokenCount);
  return record?.modality === "TEXT" && count !== undefined
    ? { ...record, tokenCount: Math.max(0, count + tokens) }
    : detail;
};

interface Unwrapped {
  readonly chunk: Json.JsonRecord | undefined;
  readonly wrapper: Json.JsonRecord | undefined;
}

/** Errors come in a list of one, and Code Assist wraps every chunk. */
const chunkOf = (json: unknown): Unwrapped => {
  const outer = Json.record(json) ?? Json.record(Json.list(json)[0]);
  const inner = outer?.candidates === undefined ? Json.record(outer?.response) : undefined;
  return inner === undefined ? { chunk: outer, wrapper: undefined } : { chunk: inner, wrapper: outer };
};
