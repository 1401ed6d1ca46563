/**
 * Describes a part of a relayed response as a seam needs it.
 */
import type { Observation } from "../../../domain/Observation.ts";
import type { Fold, Part } from "../../../provider/stream/Protocol.ts";

/** One event: what its client reads, what it proves, and the event as it was decoded where its response may be gone on with. */
export interface SeamPart {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly observation: Observation;
  readonly decoded?: Part;
  /** How its decoder went on with it, where that has read the response from its beginning. */
  readonly fold?: Fold;
}
