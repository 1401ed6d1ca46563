/**
 * Resumes a broken stream after the last event that was seen, and verifies that the server neither repeats nor skips an event.
 *
 * Two kinds of stream can be resumed: background streams of OpenAI Responses, by `starting_after` and the `sequence_number` of their
 * events, and any server-sent-event stream whose events have ids, by `Last-Event-ID` (WHATWG HTML, 9.2.3).
 *
 * A cursor is an opaque string. Each attempt's stream passes through a verifier, which adds the cursor to each part, drops events that the
 * server repeats, and fails if an event is missing. A gap directly after the cursor means that the server refused the cursor, like a
 * response with 400 or 404. This fails as `rejected`, so that the response is decided again without the cursor. A later gap is damage
 * (`protocol`), and the next attempt resumes right before the gap.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { nothing } from "./Content.ts";
import type { Part } from "./Protocol.ts";

/** Maximum length of an id in a cursor, in UTF-16 code units. A stream cannot be resumed after a longer id. */
export const idCharactersMax = 512;

/** A part after which the stream may be resumed. */
export type CursorPart<Id extends string = string> = Part<Id> & { readonly cursor?: string };

/** Returns the cursor that a verifier added, for the `cursor` option of `StreamProcessor.run`. */
export const cursor = (part: CursorPart): string | undefined => part.cursor;

/** A verifier's decision about a part: deliver it, drop it as a repetition, or fail. */
export type Verification<Id extends string> =
  | { readonly type: "pass"; readonly part: CursorPart<Id> }
  | { readonly type: "repeated" }
  | { readonly type: "failed"; readonly failure: Failure };

/** Verifies the parts of one attempt. */
export interface Verifier<Id extends string> {
  readonly take: (part: Part<Id>) => Verification<Id>;
  /** The delay before reconnecting that the server requested (`retry:`), in milliseconds. */
  readonly retryMs: number | undefined;
}

/** The last event seen of a response. */
export interface ResponsesCursor {
  readonly response: string;
  readonly sequence: number;
}

/** The last event id seen, and the number of events without an id that followed it. */
export interface EventCursor {
  readonly id: string;
  readonly since: number;
}

/** Codes of the failures of a cursor. */
export const codes = {
  gap: "resume_gap",
  unnumbered: "resume_unnumbered",
  other: "resume_other_response",
  unreadable: "resume_cursor_unreadable",
  document: "resume_document",
} as const;

/** Failure of a missing cursor, or of a cursor of another kind. It is refused before anything is sent. */
export const unreadable: Failure = { kind: "rejected", reason: "invalid_request", code: codes.unreadable };

/**
 * Failure of a resumption that returned a document instead of the rest of the stream. The server has the response but no longer streams it.
 */
export const document: Failure = { kind: "rejected", reason: "not_found", code: codes.document };

/** Parses a cursor of a Responses stream; undefined for any other string. */
export const parseResponses = (text: string): ResponsesCursor | undefined => {
  const [, sequence, response] = /^responses:(\d{1,15}):(.+)$/.exec(text) ?? [];
  return sequence === undefined || !isUsableName(response) ? undefined : { response, sequence: Number(sequence) };
};

/** Parses a cursor of a stream with event ids; undefined for any other string. */
export const parseEvent = (text: string): EventCursor | undefined => {
  const [, since, id] = /^event:(\d{1,15}):(.+)$/.exec(text) ?? [];
  return since === undefined || !isUsable(id) ? undefined : { id, since: Number(since) };
};

/**
 * Returns the address of the stream after a cursor: `GET …/responses/{id}?stream=true&starting_after=N` (OpenAI, "Background mode").
 *
 * @param url the address of the original request, `…/v1/responses`; its query is kept
 */
export const responsesUrl = (url: string | URL, { response, sequence }: ResponsesCursor): URL => {
  const resumed = new URL(url);
  resumed.pathname = `${resumed.pathname.replace(/\/$/, "")}/${encodeURIComponent(response)}`;
  resumed.searchParams.set("stream", "true");
  resumed.searchParams.set("starting_after", String(sequence));
  return resumed;
};

/** Returns the header of the resuming request. The header contains the id in UTF-8 (WHATWG HTML, 9.2.3), one byte per code unit. */
export const eventHeaders = ({ id }: EventCursor): { readonly "last-event-id": string } => ({
  "last-event-id": [...new TextEncoder().encode(id)].map((byte) => String.fromCharCode(byte)).join(""),
});

/**
 * Verifies a stream of OpenAI Responses.
 *
 * Parts have a cursor only once the response is known to run in the background, because any other response ends with its connection.
 *
 * @param resumed the cursor that the attempt resumes from; omitted for a new response
 */
export const responses = <Id extends string = string>(resumed?: ResponsesCursor): Verifier<Id> =>
  new ResponsesVerifier(resumed);

/**
 * Verifies a stream whose events have ids.
 *
 * @param options.resumed the cursor that the attempt resumes from; omitted for a new response
 * @param options.sequence the number in an id, if the server is known to count its events. Gaps are then detected too
 */
export const events = <Id extends string = "sse">(options: EventOptions = {}): Verifier<Id> =>
  new EventVerifier(options);

/** Options for a stream with event ids. */
export interface EventOptions {
  readonly resumed?: EventCursor;
  readonly sequence?: (id: string) => number | undefined;
}

const repeated = { type: "repeated" } as const;

const pass = <Id extends string>(part: Part<Id>, cursor?: string): Verification<Id> => ({
  type: "pass",
  part: cursor === undefined ? part : { ...part, cursor },
});

/**
 * Returns a failed verification. A gap after a verified event is damage. A gap directly after the cursor means that the server ignored the
 * cursor.
 */
const fail = (verified: boolean, code: string): { readonly type: "failed"; readonly failure: Failure } => ({
  type: "failed",
  failure: verified
    ? { kind: "protocol", reason: "damaged_frame", code }
    : { kind: "rejected", reason: "not_found", code },
});

/** True if an id has no control characters, because the id is put into a header or an address. */
const isUsable = (id: string | undefined): id is string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  id !== undefined && id !== "" && id.length <= idCharactersMax && !/[\u0000-\u001f\u007f]/.test(id);

/** True if an id can be used in an address. `.` and `..` would change the address. */
const isUsableName = (id: string | undefined): id is string => isUsable(id) && id !== "." && id !== "..";

class ResponsesVerifier<Id extends string> implements Verifier<Id> {
  retryMs: number | undefined = undefined;
  readonly #resumes: boolean;
  #response: string | undefined;
  #background: boolean;
  #last: number;
  /**
   * Number of the last keep-alive after `#last`. OpenAI numbers keep-alives together with the events; other servers use the same number
   * twice.
   */
  #alive = -1;
  #verified = false;
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
      const problem = this.#check(sequence, response?.id, part);
      if (problem !== undefined) return problem;
    } else if (response !== undefined) this.#learn(response);
    if (sequence === undefined) return pass(part);
    // Never moves back, because after an older cursor the server would repeat events that were already delivered.
    this.#last = Math.max(this.#last, sequence);
    this.#verified = true;
    const own = this.#resumes ? this.#withoutRepeated(part) : part;
    return this.#background && this.#response !== undefined
      ? pass(own, `responses:${this.#last}:${this.#response}`)
      : pass(own);
  };

  /**
   * Removes content that was delivered before. The final response repeats all calls and texts of the response. The decoder of a resumed
   * stream has not seen those before the cursor, and must not report them again.
   */
  #withoutRepeated(part: Part<Id>): Part<Id> {
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

  #check(sequence: number | undefined, response: unknown, part: Part<Id>): Verification<Id> | undefined {
    if (typeof response === "string" && response !== this.#response) return fail(this.#verified, codes.other);
    // An error event may have no number.
    if (sequence === undefined)
      return part.observation.failure === undefined ? fail(this.#verified, codes.unnumbered) : undefined;
    if (sequence <= this.#last) return repeated;
    return sequence > Math.max(this.#last, this.#alive) + 1 ? fail(this.#verified, codes.gap) : undefined;
  }
}

class EventVerifier<Id extends string> implements Verifier<Id> {
  retryMs: number | undefined = undefined;
  readonly #sequence: (id: string) => number | undefined;
  #id: string;
  /** Number of events without an id that followed `#id`. */
  #since: number;
  /** Number of these events that were seen before this attempt. The server may repeat them. */
  #again: number;
  /** True if the server may begin with the event of the cursor itself. */
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
    // The framer copies the last id of the stream to every later event (WHATWG HTML, 9.2.6).
    const { id } = part.event;
    const verdict = id === undefined || id === this.#id ? this.#onKnownId(id) : this.#onNewId(id);
    if (verdict !== undefined) return verdict;
    this.#verified = true;
    return isUsable(this.#id) ? pass(part, `event:${this.#since}:${this.#id}`) : pass(part);
  };

  /** Handles an event without a new id, or the event of the cursor itself. */
  #onKnownId(id: string | undefined): Verification<Id> | undefined {
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

  #onNewId(id: string): Verification<Id> | undefined {
    const last = this.#id === "" ? undefined : this.#sequence(this.#id);
    const next = this.#sequence(id);
    if (last !== undefined && next !== undefined) {
      if (next <= last) return repeated;
      if (next > last + 1) return fail(this.#verified, codes.gap);
    }
    this.#id = id;
    this.#since = 0;
    this.#again = 0;
    this.#inclusive = false;
    return undefined;
  }
}
