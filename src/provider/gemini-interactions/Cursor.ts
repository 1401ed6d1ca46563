/**
 * Resumes an interaction after the last event that was seen: `GET …/interactions/ID?stream=true&last_event_id=EVENT`, which continues "from
 * the next chunk after the event marked by the event id" (ai.google.dev/api/interactions-api).
 *
 * Not every event has an id. A cursor therefore is the last event with one, its anchor, and the number of events that followed it. The
 * server sends those again, and the verifier drops them. Before the first id, the whole stream is read again in the same way. The anchor never moves while a call is open, so that the decoder of a resumed
 * stream reads all arguments of the call again.
 */
import * as Json from "../../domain/Json.ts";
import type { Part } from "../stream/Protocol.ts";
import { codes, type Verification, type Verifier } from "../stream/Resume.ts";

/** Maximum length of an id in a cursor, in UTF-16 code units. A stream cannot be resumed after a longer id. */
export const idCharactersMax = 2_048;

/** A position in an interaction. */
export interface InteractionCursor {
  readonly interaction: string;
  /** The id of the anchor; empty before the first event with an id. */
  readonly event: string;
  /** The highest index of a step that had begun at the anchor; -1 if none had. */
  readonly index: number;
  /** Number of events that followed the anchor. */
  readonly since: number;
}

/** Writes a cursor. */
export const write = ({ event, index, interaction, since }: InteractionCursor): string =>
  `interaction:${index}:${since}:${encodeURIComponent(event)}:${encodeURIComponent(interaction)}`;

/** Parses a cursor; undefined for any other string. */
export const parse = (text: string): InteractionCursor | undefined => {
  const [, index, since, event, interaction] =
    /^interaction:(-1|\d{1,15}):(\d{1,15}):([^:]*):([^:]+)$/.exec(text) ?? [];
  const [anchor, name] = [decoded(event), decoded(interaction)];
  if (!isUsable(name) || !(anchor === "" || isUsable(anchor))) return undefined;
  return { event: anchor, interaction: name, index: Number(index), since: Number(since) };
};

const decoded = (text: string | undefined): string | undefined => {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    // Another program wrote the string.
    return undefined;
  }
};

/** True if an id can be used in an address. `.` and `..` would change the address. */
const isUsable = (id: string | undefined): id is string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  id !== undefined && id !== "" && id.length <= idCharactersMax && !/^\.{1,2}$|[\u0000-\u001f\u007f]/.test(id);

/**
 * Returns the address of the stream after a cursor.
 *
 * @param url the address of the original request, `…/interactions`; its query is kept
 */
export const addressOf = (url: string, { event, interaction }: InteractionCursor): string => {
  const resumed = new URL(url);
  resumed.pathname = `${resumed.pathname.replace(/\/+$/, "")}/${encodeURIComponent(interaction)}`;
  resumed.searchParams.set("stream", "true");
  if (event !== "") resumed.searchParams.set("last_event_id", event);
  return resumed.href;
};

/**
 * Verifies the stream of an interaction, and adds a cursor to its parts.
 *
 * @param resumed the cursor that the attempt resumes from; omitted for a new response
 */
export const verifier = (resumed?: InteractionCursor): Verifier<string> => new InteractionVerifier(resumed);

class InteractionVerifier implements Verifier<string> {
  retryMs: number | undefined = undefined;
  readonly #resumed: InteractionCursor | undefined;
  #interaction: string | undefined;
  #event: string;
  /** The highest index of a step that had begun at the anchor. */
  #anchored: number;
  /** The highest index of a step that has begun. */
  #index: number;
  #since = 0;
  /** Number of events that the server still repeats. */
  #again: number;
  #verified = false;
  /** The index of the open call; undefined if none is open. */
  #call: number | undefined;

  constructor(resumed: InteractionCursor | undefined) {
    this.#resumed = resumed;
    this.#interaction = resumed?.interaction;
    this.#event = resumed?.event ?? "";
    this.#anchored = resumed?.index ?? -1;
    this.#index = this.#anchored;
    this.#again = resumed?.since ?? 0;
  }

  readonly take = (part: Part): Verification<string> => {
    this.retryMs = part.event.retry ?? this.retryMs;
    const frame = Json.record(part.json);
    if (part.observation.keep_alive || frame === undefined) return { type: "pass", part };
    const id = Json.string(Json.record(frame.interaction)?.id) || Json.string(frame.interaction_id);
    const event = Json.string(frame.event_id);
    if (this.#resumed === undefined) {
      if (isUsable(id)) this.#interaction = id;
    } else {
      if (id !== "" && id !== this.#interaction) return this.#fail(codes.other);
      // Before the events behind the anchor, the server may announce the interaction again, or send the anchor itself.
      const isAnnounced = /^interaction\.(?:created|start)$/.test(Json.string(frame.event_type));
      if (this.#resumed.event !== "" && (isAnnounced || (!this.#verified && event === this.#resumed.event)))
        return { type: "repeated" };
    }
    const index = beginningOf(frame);
    if (index !== undefined && this.#resumed !== undefined && index <= this.#resumed.index)
      return this.#fail(codes.gap);
    this.#onCall(frame, index);
    this.#verified = true;
    this.#since += 1;
    if (index !== undefined) this.#index = Math.max(this.#index, index);
    if (this.#again > 0) {
      this.#again -= 1;
      return { type: "repeated" };
    }
    if (isUsable(event) && this.#call === undefined) {
      this.#event = event;
      this.#since = 0;
      this.#anchored = this.#index;
    }
    return { type: "pass", part: { ...part, ...this.#cursor } };
  };

  get #cursor(): { readonly cursor?: string } {
    if (this.#interaction === undefined) return {};
    const at = { interaction: this.#interaction, event: this.#event, index: this.#anchored, since: this.#since };
    return { cursor: write(at) };
  }

  #onCall({ event_type, index, step }: Json.JsonRecord, begun: number | undefined): void {
    if (begun !== undefined && Json.record(step)?.type === "function_call") this.#call = begun;
    else if (event_type === "step.stop" && Json.natural(index) === this.#call) this.#call = undefined;
  }

  /** Returns a failed verification. Before any verified event, the server has ignored the cursor. Later, the stream is damaged. */
  #fail(code: string): Verification<string> {
    return {
      type: "failed",
      failure: this.#verified
        ? { kind: "protocol", reason: "damaged_frame", code }
        : { kind: "rejected", reason: "not_found", code },
    };
  }
}

/** Returns the index of the step that an event begins. */
const beginningOf = ({ event_type, index }: Json.JsonRecord): number | undefined =>
  event_type === "step.start" || event_type === "content.start" ? Json.natural(index) : undefined;
