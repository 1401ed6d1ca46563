/**
 * Runs one continuation. It passes the events to the splice of the protocol, and their text to the verifier of the seam.
 *
 * It takes the parts of one attempt in order, and returns what the client reads in place of each: nothing before the seam is proven. Pure
 * and bounded, because it holds no text itself.
 */
import type { SeamFault } from "../../domain/SeamWords.ts";
import type { SeamStep, SeamVerifier } from "../../seam/SeamVerifier.ts";
import { isBlank } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import type { Splice, SplicedAttempt, SplicedEvent, TextGate } from "./Splice.ts";

/** The result for a part, in place of that part. */
export type Spliced =
  /** Replaces the part by these events, in order. */
  | {
      readonly type: "events";
      readonly events: ReadonlyArray<SplicedEvent>;
      /** True if the seam is proven. */
      readonly joined: boolean;
      /** Length of the text that is sent with them, in UTF-16 code units: less than the part's at the seam, more if text was held. */
      readonly characters: number;
    }
  /** Passes the part unchanged. It reports the provider's own failure, which ends the attempt. */
  | { readonly type: "failed" }
  /** Sends nothing for this part and all further parts of the attempt. */
  | { readonly type: "unproven"; readonly fault: SeamFault };

/** Joins one continuation to the text that a client has read. */
export interface SplicedJoin {
  /** Takes a part as it arrived. */
  readonly take: (part: Part) => Spliced;
  /** Called after bytes that ended cleanly after the terminal marker. Returns the events that were still held. */
  readonly end: () => Spliced;
}

/**
 * Starts a continuation.
 *
 * @param splice the splice of the response; the caller reports delivered events to its `recordSent`
 * @param verifier a fresh one, for the anchor of `splice.response().run`
 */
export const make = (splice: Splice, verifier: SeamVerifier): SplicedJoin => new Driver(splice, verifier);

class Driver implements SplicedJoin, TextGate {
  readonly #verifier: SeamVerifier;
  readonly #attempt: SplicedAttempt;
  #joined = false;
  #fault: SeamFault | undefined;
  /** Length of the text that passed the gate with the current part. */
  #characters = 0;
  /** True if the current part ends the response, so that held text need not wait for more. */
  #stops = false;

  constructor(splice: Splice, verifier: SeamVerifier) {
    this.#verifier = verifier;
    this.#attempt = splice.startContinuation(this);
  }

  get isJoined(): boolean {
    return this.#joined && this.#fault === undefined;
  }

  get cut(): number {
    return this.#verifier.cut;
  }

  readonly take = (part: Part): Spliced => {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    const { failure, terminal } = part.observation;
    // A call that cannot be read may come with a terminal marker. The response is then complete, and its end is joined as usual.
    if (failure !== undefined && !terminal) return { type: "failed" };
    if (isKeptAlive(part)) return this.#deliver([]);
    this.#characters = 0;
    this.#stops = terminal;
    const events = this.#attempt.take(part);
    if (terminal) this.#requireNoRest();
    return this.#deliver(events);
  };

  readonly end = (): Spliced => {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    this.#characters = 0;
    this.#stops = true;
    const events = this.#attempt.end();
    this.#requireNoRest();
    return this.#deliver(events);
  };

  #deliver(events: ReadonlyArray<SplicedEvent>): Spliced {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    const characters = this.#characters;
    this.#characters = 0;
    return { type: "events", events, joined: this.#joined, characters };
  }

  /** Fails if text remains after the terminal marker. If a splice never closed its gate, that text would be lost silently. */
  #requireNoRest(): void {
    if (this.#fault !== undefined) return;
    if (!this.#joined) this.#fault = "stopped";
    else if (this.#applyStep(this.#verifier.stop()) !== "") this.#fault = "unwritable";
  }

  readonly text = (piece: string): string => (piece === "" ? "" : this.#ask(() => this.#verifier.take(piece)));

  readonly close = (): string => this.#ask(() => (this.#stops ? this.#verifier.stop() : this.#verifier.close()));

  readonly fail = (fault: SeamFault): void => {
    this.#fault ??= fault;
  };

  #ask(question: () => SeamStep): string {
    return this.#fault === undefined ? this.#applyStep(question()) : "";
  }

  #applyStep(step: SeamStep): string {
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

/** True for bytes that only keep the connection alive and are not an event of the response. */
const isKeptAlive = ({ event, json }: Part): boolean =>
  json === undefined && (event.event === "comment" || isBlank(event.data));
