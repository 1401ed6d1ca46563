/** Splits the body of a continuation into its events. Their bytes are not sent. The seam writes the client's bytes instead. */

import type { Failure } from "../../../domain/Failure.ts";
import type { Observation } from "../../../domain/Observation.ts";
import * as Decoder from "../../../provider/stream/Decoder.ts";
import type { End, Fold, Part, SseEvent } from "../../../provider/stream/Protocol.ts";

/** One event: the bytes that its client reads, its observation, and the decoded event if its response may be continued. */
export interface SeamPart {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly observation: Observation;
  readonly decoded?: Part;
  /** The step of its decoder over this event, if the decoder has read the response from its beginning. */
  readonly fold?: Fold;
}

/** Splits one body; each body needs its own instance. */
export class SeamFrames {
  readonly misfit = undefined;
  readonly behindBytes = 0;
  /** Not counted, because a continuation has its own limit. */
  readonly outputTokens = 0;
  readonly #decoder: Decoder.Decoder;
  #failed: Part | undefined;

  /** @param decoder a fresh decoder */
  constructor(decoder: Decoder.Decoder) {
    this.#decoder = decoder;
  }

  get failure(): Failure | undefined {
    return this.#decoder.failure;
  }

  /** The event that reported the provider's failure; later events may add to the failure. */
  get failed(): SeamPart | undefined {
    if (this.#failed === undefined) return undefined;
    const { observation } = this.#failed;
    const failure = this.#decoder.failure ?? observation.failure;
    const told = failure === undefined ? observation : { ...observation, failure };
    return { ...seamPartOf(this.#failed, told), bytes: bytesOf(this.#failed.event) };
  }

  push(chunk: Uint8Array<ArrayBuffer>): ReadonlyArray<SeamPart> {
    return this.#read(this.#decoder.push(chunk));
  }

  end(): { readonly parts: ReadonlyArray<SeamPart>; readonly end: End } {
    const { end, parts } = this.#decoder.end();
    return { parts: this.#read(parts), end };
  }

  #read(parts: ReadonlyArray<Part>): ReadonlyArray<SeamPart> {
    const out: Array<SeamPart> = [];
    for (const part of parts) {
      if (this.#failed !== undefined) break;
      const { failure, terminal } = part.observation;
      // A call that cannot be read may come with a terminal marker, and its event belongs to the response.
      if (Decoder.isTold(failure) && !terminal) this.#failed = part;
      else out.push(seamPartOf(part, part.observation));
    }
    return out;
  }
}

const nothing = new Uint8Array(0);

const seamPartOf = (decoded: Part, observation: SeamPart["observation"]): SeamPart => ({
  bytes: nothing,
  observation,
  decoded,
});

const encoder = new TextEncoder();

/**
 * Encodes an event: its name, if it has one, its data, and a blank line.
 *
 * @param event the event as a decoder reads it
 * @param owed true to start with a line feed, because the bytes sent so far end with the first half of a line end
 */
export const bytesOf = ({ data, event }: Pick<SseEvent, "event" | "data">, owed = false): Uint8Array<ArrayBuffer> => {
  const name = event === unnamed ? "" : `event: ${event}\n`;
  const lines = data.split("\n").map((line) => `data: ${line}\n`);
  return encoder.encode(`${owed ? "\n" : ""}${name}${lines.join("")}\n`);
};

/** The name that a decoder gives to an event without one (WHATWG HTML, 9.2.6). */
const unnamed = "message";
