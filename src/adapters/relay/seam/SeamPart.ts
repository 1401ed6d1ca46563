/**
 * Describes a part of a relayed response as a seam needs it.
 */
import type { Observation } from "../../../domain/Observation.ts";
import type { Fold, Part } from "../../../provider/stream/Protocol.ts";

/** One event: the bytes that its client reads, its observation, and the decoded event if its response may be continued. */
export interface SeamPart {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly observation: Observation;
  readonly decoded?: Part;
  /** The transition of its decoder at this event, if the decoder has read the response from its beginning. */
  readonly fold?: Fold;
}
