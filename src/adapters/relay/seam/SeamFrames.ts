/** Splits the body of a continuation into its events. Their bytes are not sent. The seam writes the client's bytes instead. */
import type { Failure } from "../../../domain/Failure.ts";
import * as Decoder from "../../../provider/stream/Decoder.ts";
import type { End, Part } from "../../../provider/stream/Protocol.ts";
import { bytesOf } from "./SeamBytes.ts";
import type { SeamPart } from "./SeamPart.ts";

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
