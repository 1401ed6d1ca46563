/**
 * Runs one continuation. It passes the events to the splice of the protocol, and their text to the verifier of the seam.
 *
 * It takes the parts of one attempt in order, and returns what the client reads in place of each: nothing before the seam is proven. Pure
 * and bounded, because it holds no text itself.
 */
import type { SeamFault } from "../../domain/SeamWords.ts";
import type { SeamVerifier } from "../../seam/SeamVerifier.ts";
import { isBlank } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import type { Splice, SplicedEvent } from "./Splice.ts";
import { TextGate } from "./TextGate.ts";

/** The result for a part, in place of that part. */
export type Spliced =
  /** Replaces the part by these events, in order. */
  | {
      readonly type: "events";
      readonly events: ReadonlyArray<SplicedEvent>;
      /** True if the seam is proven. */
      readonly joined: boolean;
      /**
       * Length of the text in `events`, in UTF-16 code units. It is less than the text of the part at the seam, and more if text was held.
       */
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
 * @param verifier a new verifier, for the anchor of `splice.response().run`
 */
export const make = (splice: Splice, verifier: SeamVerifier): SplicedJoin => {
  const gate = new TextGate(verifier);
  const attempt = splice.startContinuation(gate);
  const deliver = (ends: boolean, next: () => ReadonlyArray<SplicedEvent>): Spliced => {
    const { passed } = gate;
    gate.ends = ends;
    const events = gate.fault === undefined ? next() : [];
    if (ends) gate.requireNoRest();
    if (gate.fault !== undefined) return { type: "unproven", fault: gate.fault };
    return { type: "events", events, joined: gate.isJoined, characters: gate.passed - passed };
  };
  return {
    take: (part) => {
      const { failure, terminal } = part.observation;
      // A call that cannot be read may come with a terminal marker. The response is then complete, and its end is joined as usual.
      if (failure !== undefined && !terminal && gate.fault === undefined) return { type: "failed" };
      if (isKeptAlive(part)) return deliver(false, () => []);
      return deliver(terminal, () => attempt.take(part));
    },
    end: () => deliver(true, attempt.end),
  };
};

/** True for bytes that only keep the connection alive and are not an event of the response. */
export const isKeptAlive = ({ event, json }: Part): boolean =>
  json === undefined && (event.event === "comment" || isBlank(event.data));
