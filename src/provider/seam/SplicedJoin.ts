/**
 * Drives one continuation: hands its events to the splice of its protocol, and the text of them to the verifier of the seam.
 *
 * Pure and bounded: it holds nothing itself. The parts of one attempt go in, in their order, and what the client reads in the
 * place of each comes out. Before the seam is proven that is nothing.
 */
import type { SeamFault } from "../../domain/SeamWords.ts";
import type { SeamStep, SeamVerifier } from "../../seam/SeamVerifier.ts";
import { isBlank } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import type { Splice, SplicedAttempt, SplicedEvent, TextGate } from "./Splice.ts";

/** What the client reads in the place of a part. */
export type Spliced =
  /** These events, in order. */
  | {
      readonly type: "events";
      readonly events: ReadonlyArray<SplicedEvent>;
      /** The seam is proven. */
      readonly joined: boolean;
      /** How much text leaves with them, in UTF-16 code units: less than the part has at the seam, more where some was held. */
      readonly characters: number;
    }
  /** The part as it came: it says the provider's own failure, which ends the attempt. */
  | { readonly type: "failed" }
  /** Nothing, and nothing further of this attempt. */
  | { readonly type: "unproven"; readonly fault: SeamFault };

/** Joins one continuation to what a client has read. */
export interface SplicedJoin {
  /** Takes a part as it came. */
  readonly take: (part: Part) => Spliced;
  /** The bytes have ended cleanly, behind the terminal marker: gives what was still held. */
  readonly end: () => Spliced;
}

/**
 * Begins a continuation.
 *
 * @param splice what has left of the response; whoever hands on the events says so to its `left`
 * @param verifier a fresh one, for the anchor of `splice.shown().run`
 */
export const make = (splice: Splice, verifier: SeamVerifier): SplicedJoin => new Driver(splice, verifier);

class Driver implements SplicedJoin {
  readonly #verifier: SeamVerifier;
  readonly #attempt: SplicedAttempt;
  #joined = false;
  #fault: SeamFault | undefined;
  /** The text that has passed the gate with the part under way. */
  #characters = 0;
  /** The part under way ends the response: what is held has nothing to wait for. */
  #stops = false;

  constructor(splice: Splice, verifier: SeamVerifier) {
    this.#verifier = verifier;
    this.#attempt = splice.continued(this.#gate());
  }

  readonly take = (part: Part): Spliced => {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    const { failure, terminal } = part.observation;
    // A call that cannot be read stands beside a marker: the response is whole, and its end is joined as any other.
    if (failure !== undefined && !terminal) return { type: "failed" };
    if (isKeptAlive(part)) return this.#given([]);
    this.#characters = 0;
    this.#stops = terminal;
    const events = this.#attempt.take(part);
    if (terminal) this.#demandsAll();
    return this.#given(events);
  };

  readonly end = (): Spliced => {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    this.#characters = 0;
    this.#stops = true;
    const events = this.#attempt.end();
    this.#demandsAll();
    return this.#given(events);
  };

  #given(events: ReadonlyArray<SplicedEvent>): Spliced {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    const characters = this.#characters;
    this.#characters = 0;
    return { type: "events", events, joined: this.#joined, characters };
  }

  /** Behind the marker no text may be left behind: a splice that never closed its gate would lose it in silence. */
  #demandsAll(): void {
    if (this.#fault !== undefined) return;
    if (!this.#joined) this.#fault = "stopped";
    else if (this.#passed(this.#verifier.stop()) !== "") this.#fault = "unwritable";
  }

  #gate(): TextGate {
    const isJoined = () => this.#joined && this.#fault === undefined;
    const verifier = this.#verifier;
    return {
      get joined() {
        return isJoined();
      },
      get cut() {
        return verifier.cut;
      },
      text: (piece) => (piece === "" ? "" : this.#ask(() => this.#verifier.take(piece))),
      close: () => this.#ask(() => (this.#stops ? this.#verifier.stop() : this.#verifier.close())),
      fail: (fault) => {
        this.#fault ??= fault;
      },
    };
  }

  #ask(question: () => SeamStep): string {
    return this.#fault === undefined ? this.#passed(question()) : "";
  }

  #passed(step: SeamStep): string {
    switch (step.type) {
      case "wait":
        return "";
      case "joined":
        this.#joined = true;
        this.#characters += step.text.length;
        return step.text;
      case "unproven":
        this.#fault = step.fault;
        return "";
    }
  }
}

/** Bytes that only prove that the connection lives: they are no event of the response. */
const isKeptAlive = ({ event, json }: Part): boolean =>
  json === undefined && (event.event === "comment" || isBlank(event.data));
