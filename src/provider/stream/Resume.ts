/**
 * Resumes a broken stream behind the last event that was seen, and holds the server to it: no event twice, none skipped.
 *
 * Two kinds of stream can be resumed: background streams of OpenAI Responses, by `starting_after` and the `sequence_number`
 * of their events, and any server-sent-event stream whose events have ids, by `Last-Event-ID` (WHATWG HTML, 9.2.3).
 *
 * A cursor is an opaque text. A verifier stands in each attempt's stream: it writes the cursor on each part, drops what the
 * server repeats, and fails where something is missing. A server that leaves a gap right behind the cursor has refused it,
 * as one that responds with 400 or 404 has: `rejected`, so that the response is decided again without the cursor. A gap further on
 * is damage (`protocol`): the next attempt resumes right before it.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { nothing } from "./Content.ts";
import type { Part } from "./Protocol.ts";

/** Longest id that a cursor is made of, in UTF-16 code units; a longer one cannot be resumed from. */
export const idCharactersMax = 512;

/** A part that may be resumed behind. */
export type CursorPart<Id extends string = string> = Part<Id> & { readonly cursor?: string };

/** Reads the cursor that a verifier wrote: the `cursor` option of `StreamProcessor.run`. */
export const cursor = (part: CursorPart): string | undefined => part.cursor;

/** What a verifier says of a part: hand it over, drop it because it was seen before, or fail. */
export type Verification<Id extends string> =
  | { readonly type: "pass"; readonly part: CursorPart<Id> }
  | { readonly type: "repeated" }
  | { readonly type: "failed"; readonly failure: Failure };

/** Follows the parts of one attempt. */
export interface Verifier<Id extends string> {
  readonly take: (part: Part<Id>) => Verification<Id>;
  /** The wait that the server asks for before it is reached again (`retry:`), in milliseconds. */
  readonly retryMs: number | undefined;
}

/** Which event of which response was the last. */
export interface ResponsesCursor {
  readonly response: string;
  readonly sequence: number;
}

/** The last event id, and how many events without an id of their own came behind it. */
export interface EventCursor {
  readonly id: string;
  readonly since: number;
}

/** Why a cursor did not work: the `code` of the failure. */
export const codes = {
  gap: "resume_gap",
  unnumbered: "resume_unnumbered",
  other: "resume_other_response",
  unreadable: "resume_cursor_unreadable",
  document: "resume_document",
} as const;

/** A cursor of another kind, or none at all: it is refused before anything is sent. */
export const unreadable: Failure = { kind: "rejected", reason: "invalid_request", code: codes.unreadable };

/** A document where the stream should go on: the server knows the response, and does not stream it any more. */
export const document: Failure = { kind: "rejected", reason: "not_found", code: codes.document };

/** Reads a cursor of a Responses stream; undefined for any other text. */
export const parseResponses = (text: string): ResponsesCursor | undefined => {
  const [, sequence, response] = /^responses:(\d{1,15}):(.+)$/.exec(text) ?? [];
  return sequence === undefined || !isUsableName(response) ? undefined : { response, sequence: Number(sequence) };
};

/** Reads a cursor of a stream with event ids; undefined for any other text. */
export const parseEvent = (text: string): EventCursor | undefined => {
  const [, since, id] = /^event:(\d{1,15}):(.+)$/.exec(text) ?? [];
  return since === undefined || !isUsable(id) ? undefined : { id, since: Number(since) };
};

/**
 * The address of the stream behind a cursor: `GET …/responses/{id}?stream=true&starting_after=N` (OpenAI, "Background mode").
 *
 * @param url the address that the response was asked for at, `…/v1/responses`; its query is kept
 */
export const responsesUrl = (url: string | URL, { response, sequence }: ResponsesCursor): URL => {
  const resumed = new URL(url);
  resumed.pathname = `${resumed.pathname.replace(/\/$/, "")}/${encodeURIComponent(response)}`;
  resumed.searchParams.set("stream", "true");
  resumed.searchParams.set("starting_after", String(sequence));
  return resumed;
};

/** The header of the request that resumes: the id in UTF-8 (WHATWG HTML, 9.2.3), a byte a code unit. */
export const eventHeaders = ({ id }: EventCursor): { readonly "last-event-id": string } => ({
  "last-event-id": [...new TextEncoder().encode(id)].map((byte) => String.fromCharCode(byte)).join(""),
});

/**
 * Verifies a stream of OpenAI Responses.
 *
 * A part has a cursor once the response is known to run in the background; others end with their connection.
 *
 * @param resumed the cursor that the attempt resumes from; left out for one that asks anew
 */
export const responses = <Id extends string = string>(resumed?: ResponsesCursor): Verifier<Id> =>
  new ResponsesVerifier(resumed);

/**
 * Verifies a stream whose events have ids.
 *
 * @param options.resumed the cursor that the attempt resumes from; left out for one that asks anew
 * @param options.sequence the number in an id, where the caller knows that the server counts its events: then also a gap shows
 */
export const events = <Id extends string = "sse">(options: EventOptions = {}): Verifier<Id> =>
  new EventVerifier(options);

/** What a caller knows of a stream with event ids. */
export interface EventOptions {
  readonly resumed?: EventCursor;
  readonly sequence?: (id: string) => number | undefined;
}

const repeated = { type: "repeated" } as const;

const pass = <Id extends string>(part: Part<Id>, cursor?: string): Verification<Id> => ({
  type: "pass",
  part: cursor === undefined ? part : { ...part, cursor },
});

/** Behind something that was verified a gap is damage; directly behind the cursor the server has not honoured it. */
const failed = (verified: boolean, code: string): { readonly type: "failed"; readonly failure: Failure } => ({
  type: "failed",
  failure: verified
    ? { kind: "protocol", reason: "damaged_frame", code }
    : { kind: "rejected", reason: "not_found", code },
});

/** No control characters: an id goes into a header or an address. */
const isUsable = (id: string | undefined): id is string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  id !== undefined && id !== "" && id.length <= idCharactersMax && !/[\u0000-\u001f\u007f]/.test(id);

/** An id that is a part of an address: the two names of folders would lead to another one. */
const isUsableName = (id: string | undefined): id is string => isUsable(id) && id !== "." && id !== "..";

class ResponsesVerifier<Id extends string> implements Verifier<Id> {
  retryMs: number | undefined = undefined;
  readonly #resumes: boolean;
  #response: string | undefined;
  #background: boolean;
  #last: number;
  /** The number of the last keep-alive behind `#last`. OpenAI counts them with the events; a server that does not gives the number twice. */
  #alive = -1;
  #verified = false;
  /** Ordinals of the calls that events of this attempt have told of. */
  readonly #begun = new Set<number>();

  constructor(resumed: ResponsesCursor | undefined) {
    this.#resumes = resumed !== undefined;
    this.#response = resumed?.response;
    this.#background = resumed !== undefined;
    this.#last = resumed?.sequence ?? -1;
  }

  readonly take = (part: Part<Id>): Verification<Id> => {
    this.retryMs = part.event.retry ?? this.retryMs;
    const frame = Json.record(part.json);
    if (frame === undefined) return pass(part);
    const sequence = Json.natural(frame.sequence_number);
    if (part.observation.keep_alive) {
      if (sequence === Math.max(this.#last, this.#alive) + 1) this.#alive = sequence;
      return pass(part);
    }
    const response = Json.record(frame.response);
    if (this.#resumes) {
      const problem = this.#problem(sequence, response?.id, part);
      if (problem !== undefined) return problem;
    } else if (response !== undefined) this.#learn(response);
    if (sequence === undefined) return pass(part);
    // Never back: behind an older cursor the server would tell again what has been handed over.
    this.#last = Math.max(this.#last, sequence);
    this.#verified = true;
    const own = this.#resumes ? this.#own(part) : part;
    return this.#background && this.#response !== undefined
      ? pass(own, `responses:${this.#last}:${this.#response}`)
      : pass(own);
  };

  /**
   * The final response tells all its calls and texts once more, and the decoder of a resumed stream has not seen those from
   * before the cursor: they were handed over then, and are not ready a second time.
   */
  #own(part: Part<Id>): Part<Id> {
    const { observation } = part;
    if (!observation.terminal) {
      for (const call of observation.calls) this.#begun.add(call.ordinal);
      return part;
    }
    const calls = observation.calls.filter((call) => this.#begun.has(call.ordinal));
    return { ...part, content: nothing, observation: { ...observation, calls, shows: "nothing", characters: 0 } };
  }

  #learn(response: Json.JsonRecord): void {
    const id = Json.string(response.id);
    if (isUsableName(id)) this.#response = id;
    if (typeof response.background === "boolean") this.#background = response.background;
  }

  #problem(sequence: number | undefined, response: unknown, part: Part<Id>): Verification<Id> | undefined {
    if (typeof response === "string" && response !== this.#response) return failed(this.#verified, codes.other);
    // An error may stand outside of the count.
    if (sequence === undefined)
      return part.observation.failure === undefined ? failed(this.#verified, codes.unnumbered) : undefined;
    if (sequence <= this.#last) return repeated;
    return sequence > Math.max(this.#last, this.#alive) + 1 ? failed(this.#verified, codes.gap) : undefined;
  }
}

class EventVerifier<Id extends string> implements Verifier<Id> {
  retryMs: number | undefined = undefined;
  readonly #sequence: (id: string) => number | undefined;
  #id: string;
  /** Events behind `#id` that have no id of their own. */
  #since: number;
  /** Of those, how many were seen before this attempt and may come again. */
  #again: number;
  /** The server may begin with the very event of the cursor. */
  #inclusive: boolean;
  #verified: boolean;

  constructor({ resumed, sequence }: EventOptions) {
    this.#sequence = sequence ?? (() => undefined);
    this.#id = resumed?.id ?? "";
    this.#since = resumed?.since ?? 0;
    this.#again = this.#since;
    this.#inclusive = resumed !== undefined;
    this.#verified = resumed === undefined;
  }

  readonly take = (part: Part<Id>): Verification<Id> => {
    this.retryMs = part.event.retry ?? this.retryMs;
    if (part.event.event === "comment" && part.observation.keep_alive) return pass(part);
    // The framer keeps the last id of the stream on every event behind it (WHATWG HTML, 9.2.6).
    const { id } = part.event;
    const verdict = id === undefined || id === this.#id ? this.#unnamed(id) : this.#named(id);
    if (verdict !== undefined) return verdict;
    this.#verified = true;
    return isUsable(this.#id) ? pass(part, `event:${this.#since}:${this.#id}`) : pass(part);
  };

  /** An event without an id of its own, or the very event of the cursor. */
  #unnamed(id: string | undefined): Verification<Id> | undefined {
    if (this.#inclusive && id !== undefined) {
      this.#inclusive = false;
      return repeated;
    }
    if (this.#again > 0) {
      this.#again -= 1;
      return repeated;
    }
    this.#since += 1;
    return undefined;
  }

  #named(id: string): Verification<Id> | undefined {
    const last = this.#id === "" ? undefined : this.#sequence(this.#id);
    const next = this.#sequence(id);
    if (last !== undefined && next !== undefined) {
      if (next <= last) return repeated;
      if (next > last + 1) return failed(this.#verified, codes.gap);
    }
    this.#id = id;
    this.#since = 0;
    this.#again = 0;
    this.#inclusive = false;
    return undefined;
  }
}
