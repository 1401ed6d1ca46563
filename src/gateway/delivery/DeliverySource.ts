/**
 * Describes what the delivery log needs of a run that lingers at its owner.
 */
import type { RelayHead } from "../../adapters/relay/RelayTransport.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";

/** What is kept of such a run. */
interface KeptRun {
  readonly terms: { readonly lingerMs: number };
  readonly log: {
    readonly length: number;
    /** The first byte that is kept. */
    readonly start: number;
    readonly from: (at: number) => Bytes | undefined;
  };
  readonly end: { readonly how: "whole" | "broken" | "cancelled" } | undefined;
  /** Why it is not kept any more. */
  readonly evicted: string | undefined;
}

/** A run that lingers here, as the delivery log sees it. */
export interface DeliverySource {
  readonly entry: KeptRun;
  readonly head: { readonly head: RelayHead; readonly streaming: boolean } | undefined;
  readonly bodyEnd: "end" | "break" | undefined;
  /** Why it was ended before its time was over. */
  readonly stop: string | undefined;
  /** The client of this process that reads. */
  readonly client: ClientResponse | undefined;
  /**
   * Somebody elsewhere has the reader's place.
   *
   * @param lost called when a client of this process takes it
   */
  readonly takenElsewhere: (lost: () => void) => void;
  /** Whoever read elsewhere has gone. */
  readonly leftElsewhere: () => void;
  /** Its user has stopped it, elsewhere. */
  readonly cancelledElsewhere: () => void;
}
