/**
 * Joins continuations to a response of OpenAI Chat Completions.
 *
 * Its chunks say a response in one content, so that reasoning between two texts ends no text. Dropped are the second role, the
 * reasoning in front of the seam, the text that the gate keeps back, and chunks that have nothing left. Rewritten are the names of
 * the response (`id`, `created`, `model`, `system_fingerprint`), the index of the choice and of its calls, the text and what is
 * said of its places, log probabilities (to null: a token may lie across the seam) and token counts. Nothing is added.
 *
 * Life of a finish. One that the decoder is sure of (`terminal`) closes the gate and leaves at once. Some servers send one with
 * every chunk: such a finish waits, with what comes behind it, for `[DONE]` or the clean end; text that goes on takes it off.
 */
import * as Json from "../../domain/Json.ts";
import { AttemptGate } from "../seam/AttemptGate.ts";
import { JoinedUsage, type UsageFields, type UsageSoFar } from "../seam/JoinedUsage.ts";
import { ShownText } from "../seam/ShownText.ts";
import type { Splice, SplicedAttempt, SplicedEvent, TextGate } from "../seam/Splice.ts";
import { isDone, reason } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import * as ChatCalls from "./Calls.ts";
import { isPlain, isPresent, words } from "./Content.ts";
import { callPlaces, executedOf, isRefusal, type Joining, joinWords, wordsOf } from "./SplicedDelta.ts";

/** Makes the splice of one response. */
export const splice = (): Splice => new ChatSplice();

/** The fields that name a response. A client may know its chunks by them. */
const names = ["id", "created", "model", "system_fingerprint"];

const usageFields: UsageFields = {
  input: ["prompt_tokens", "input_tokens"],
  output: ["completion_tokens", "output_tokens"],
  total: "total_tokens",
  ofInput: ["prompt_tokens_details", "input_tokens_details"],
  summed: ["completion_tokens_details", "output_tokens_details"],
};

/** What an attempt reads of the response that it goes on with, as it was when the attempt began. */
interface Before {
  readonly names: Json.JsonRecord;
  readonly object: unknown;
  /** The index of the choice as it left; undefined where the server sends none. */
  readonly index: unknown;
  readonly hasRole: boolean;
  /** Texts stand in `text`, as in the completions that came before the chat. */
  readonly isBare: boolean;
  readonly characters: number;
  readonly calls: number;
  readonly executed: number;
  readonly usage: UsageSoFar;
}

class ChatSplice implements Splice {
  readonly #text = new ShownText();
  readonly #usage = new JoinedUsage(usageFields);
  readonly #names: Record<string, unknown> = {};
  #object: unknown;
  #index: unknown;
  #hasRole = false;
  #isBare = false;
  /** Content came as deltas, so that a whole message repeats it. */
  #streamed = false;
  #calls = 0;
  #executed = 0;

  readonly left = (json: unknown): void => {
    const chunk = chunkOf(json);
    if (chunk === undefined) return;
    for (const name of names) if (chunk[name] || !(name in this.#names)) this.#names[name] = chunk[name];
    if (chunk.object) this.#object ??= chunk.object;
    for (const entry of Json.list(chunk.choices)) this.#choice(Json.record(entry) ?? {});
    for (const usage of usagesOf(chunk)) this.#usage.left(usage);
  };

  readonly shown = () => this.#text.shown();

  readonly continued = (gate: TextGate): SplicedAttempt =>
    new ChatAttempt(new AttemptGate(gate), this.#usage, {
      names: { ...this.#names },
      object: this.#object,
      index: this.#index,
      hasRole: this.#hasRole,
      isBare: this.#isBare,
      characters: this.#text.shown().characters,
      calls: this.#calls,
      executed: this.#executed,
      usage: this.#usage.soFar,
    });

  #choice(entry: Json.JsonRecord): void {
    const index = ChatCalls.indexOf(entry.index) ?? 0;
    this.#index ??= entry.index;
    this.#text.chooses(index);
    const { delta, form } = wordsOf(entry);
    if (form === "message" && this.#streamed) return;
    if (form === "text" && Json.string(entry.text) !== "") this.#isBare = true;
    this.#hasRole ||= Json.string(delta.role) !== "";
    let spoke = false;
    for (const { key, kind, text } of words(delta, index)) {
      spoke = true;
      if (kind === "text") this.#text.say(text);
      else if (kind === "media" && key !== "text") this.#text.refuse("not_text_last");
      this.#usage.said(text.length);
    }
    this.#streamed ||= spoke && form !== "message";
    // Most deltas are text alone: nothing else is gathered of them.
    if (isPlain(delta)) return;
    if (isRefusal(delta)) this.#text.refuse("refusal_shown");
    this.#calling(delta);
  }

  #calling(delta: Json.JsonRecord): void {
    for (const place of callPlaces(delta)) {
      this.#calls = place === undefined ? this.#calls + 1 : Math.max(this.#calls, place + 1);
      this.#text.refuse("not_text_last");
    }
    for (const { call, key, place } of executedOf(delta)) {
      this.#executed = Math.max(this.#executed, place + 1);
      this.#text.hosted(key, ChatCalls.isSettled(call));
    }
  }
}

/** An event that is written once its place is known. */
interface Draft {
  /** It came behind the seam. */
  readonly joined: boolean;
  /** Writes it; undefined where nothing is left of it. */
  readonly write: (finishes: boolean) => SplicedEvent | undefined;
}

/** Most events that may wait behind a finish that is not sure. */
const waitingMax = 256;

const nothing: ReadonlyArray<SplicedEvent> = [];

class ChatAttempt implements SplicedAttempt {
  readonly #gate: AttemptGate;
  readonly #usage: JoinedUsage;
  readonly #before: Before;
  readonly #joining: Joining;
  /** A finish that is not sure, and what came behind it or behind the anchor. None of it says anything of the response. */
  #waiting: Array<Draft> = [];
  #terminal = false;

  constructor(gate: AttemptGate, usage: JoinedUsage, before: Before) {
    this.#gate = gate;
    this.#usage = usage;
    this.#before = before;
    this.#joining = { gate, before, streamed: false, called: false };
  }

  readonly take = ({ event, json, observation }: Part): ReadonlyArray<SplicedEvent> => {
    if (this.#gate.failed) return nothing;
    if (isDone(event.data)) {
      const last = this.end();
      return this.#gate.joined ? [...last, { event: event.event, json: event.data.trim() }] : nothing;
    }
    const chunk = chunkOf(json);
    if (chunk === undefined) return nothing;
    this.#terminal ||= observation.terminal;
    const read = this.#read(chunk);
    return read === undefined || this.#gate.failed ? nothing : this.#placed(event.event, read);
  };

  readonly end = (): ReadonlyArray<SplicedEvent> => {
    // Where the seam is proven by the end alone, what waits for the end stands behind it.
    const held = this.#gate.close();
    if (!this.#gate.joined) return nothing;
    return [...(held === "" ? nothing : [this.#textEvent(held)]), ...this.#flush(true)];
  };

  /** Writes what may leave, and lets a finish wait that is not sure. */
  #placed(event: string, read: Read): ReadonlyArray<SplicedEvent> {
    const before = read.goesOn ? this.#flush(false) : nothing;
    if (this.#terminal) return [...before, ...(read.goesOn ? nothing : this.end()), ...this.#now(event, read, true)];
    const waitsNot = this.#waiting.length === 0 && this.#gate.joined;
    if (!read.finishes && (read.goesOn || waitsNot)) return [...before, ...this.#now(event, read, true)];
    const waits = read.goesOn
      ? { ...read, chunk: unmetered(read.chunk), choices: read.choices.map(wordless), isEmpty: true }
      : read;
    this.#wait((finishes) => this.#event(event, waits, finishes));
    return read.goesOn ? [...before, ...this.#now(event, read, false)] : nothing;
  }

  /** What comes in front of the seam is written only where the seam turns out to have stood in front of it. */
  #wait(write: Draft["write"]): void {
    const { joined } = this.#gate;
    this.#waiting.push({ joined, write });
    if (this.#waiting.length <= waitingMax) return;
    if (joined) this.#gate.fail("unwritable");
    else this.#waiting.shift();
  }

  #now(event: string, read: Read, finishes: boolean): ReadonlyArray<SplicedEvent> {
    const written = this.#gate.joined ? this.#event(event, read, finishes) : undefined;
    return written === undefined ? nothing : [written];
  }

  /** Writes what has waited: at the end all of it, else what came behind the seam, without its finish. */
  #flush(isEnd: boolean): ReadonlyArray<SplicedEvent> {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting.flatMap(({ joined, write }) => {
      const event = isEnd || joined ? write(isEnd) : undefined;
      return event === undefined ? [] : [event];
    });
  }

  /** Asks the gate for everything that a chunk says; undefined where it cannot be joined. */
  #read(chunk: Json.JsonRecord): Read | undefined {
    const choices: Array<Json.JsonRecord> = [];
    const read = { chunk, choices, isEmpty: true, goesOn: false, finishes: false };
    for (const item of Json.list(chunk.choices)) {
      const entry = Json.record(item) ?? {};
      if ((ChatCalls.indexOf(entry.index) ?? 0) !== (ChatCalls.indexOf(this.#before.index) ?? 0)) {
        this.#gate.fail("unwritable");
        return undefined;
      }
      const joined = joinWords(entry, this.#joining);
      if (joined === undefined) return undefined;
      const finishes = reason(entry.finish_reason) !== "";
      const held = finishes && this.#terminal ? this.#gate.close() : "";
      choices.push(this.#entry(entry, joined.write(held)));
      read.isEmpty &&= joined.isEmpty && held === "" && !Object.entries(entry).some(isMore);
      read.goesOn ||= joined.goesOn;
      read.finishes ||= finishes;
    }
    return read;
  }

  #entry(entry: Json.JsonRecord, words: Json.JsonRecord): Json.JsonRecord {
    const { delta: _delta, message: _message, text: _text, logprobs, ...rest } = entry;
    const { index } = this.#before;
    return {
      ...rest,
      ...("index" in rest && index !== undefined ? { index } : {}),
      ...words,
      ...(logprobs === undefined ? {} : { logprobs: null }),
    };
  }

  #event(event: string, { choices, chunk, finishes, isEmpty }: Read, keepsFinish: boolean): SplicedEvent | undefined {
    const isOver = finishes && keepsFinish;
    const hasUsage = usagesOf(chunk).length > 0;
    if (choices.length > 0 && isEmpty && !isOver && !hasUsage) return undefined;
    const next: Record<string, unknown> = { ...chunk };
    for (const name of names)
      if (name in next) {
        if (this.#before.names[name] === undefined) delete next[name];
        else next[name] = this.#before.names[name];
      }
    if (Array.isArray(chunk.choices))
      next.choices = isOver
        ? choices
        : choices.map((choice) => ("finish_reason" in choice ? unfinished(choice) : choice));
    if (Json.record(chunk.usage) !== undefined) next.usage = this.#counted(chunk.usage);
    const groq = Json.record(chunk.x_groq);
    if (groq?.usage !== undefined) next.x_groq = { ...groq, usage: this.#counted(groq.usage) };
    return { event, json: next };
  }

  #counted(usage: unknown): unknown {
    const record = Json.record(usage);
    return record === undefined ? usage : this.#usage.joined(this.#before.usage, record, this.#gate.cut);
  }

  /** A chunk of text alone, for what was held where no chunk comes that could take it along. */
  #textEvent(content: string): SplicedEvent {
    const { index, isBare, object } = this.#before;
    const told = Object.entries(this.#before.names).filter(([, value]) => value !== undefined);
    const choice = {
      ...(index === undefined ? {} : { index }),
      ...(isBare ? { text: content } : { delta: { content } }),
      finish_reason: null,
    };
    return {
      event: "message",
      json: { ...Object.fromEntries(told), ...(object === undefined ? {} : { object }), choices: [choice] },
    };
  }
}

/** What a chunk says, as far as the gate let it pass. */
interface Read {
  readonly chunk: Json.JsonRecord;
  readonly choices: ReadonlyArray<Json.JsonRecord>;
  /** Its choices say nothing but a finish. */
  readonly isEmpty: boolean;
  /** Its choices say something of the response, be it held. */
  readonly goesOn: boolean;
  readonly finishes: boolean;
}

/** Whether a field of a choice says more than its words and its finish: a filter's findings, say. */
const isMore = ([name, value]: readonly [string, unknown]): boolean => !choiceFields.has(name) && isPresent(value);

const choiceFields: ReadonlySet<string> = new Set([
  ...["index", "delta", "message", "text", "logprobs", "finish_reason", "native_finish_reason", "stop_reason"],
]);

const unfinished = (choice: Json.JsonRecord): Json.JsonRecord => ({ ...choice, finish_reason: null });

/** The finish of a choice alone: its words have left. */
const wordless = (choice: Json.JsonRecord): Json.JsonRecord => {
  const { delta: _delta, text, ...rest } = choice;
  return text === undefined ? { ...rest, delta: {} } : { ...rest, text: "" };
};

/** A chunk whose token counts have left. */
const unmetered = (chunk: Json.JsonRecord): Json.JsonRecord => {
  const { usage: _usage, x_groq: _groq, ...rest } = chunk;
  return rest;
};

/** Errors come in a list of one (Google's compatible endpoint). */
const chunkOf = (json: unknown): Json.JsonRecord | undefined => Json.record(json) ?? Json.record(Json.list(json)[0]);

/** Usage stands at the top, and in Groq's streams under `x_groq`. */
const usagesOf = (chunk: Json.JsonRecord): ReadonlyArray<Json.JsonRecord> =>
  Json.record(chunk.usage) === undefined && Json.record(chunk.x_groq) === undefined
    ? noUsages
    : [chunk.usage, Json.record(chunk.x_groq)?.usage].map(Json.record).filter((usage) => usage !== undefined);

const noUsages: ReadonlyArray<Json.JsonRecord> = [];
