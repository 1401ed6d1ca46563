/**
 * Marks a response's head while the store accepts no writes. The client then sees output that is not recorded (L8).
 */
import type { RelayHead } from "../../adapters/relay/RelayTransport.ts";
import type { StoreState } from "../api/StoreHealth.ts";

/** Header that marks an unrecorded response, with the recorder's reason as its value. */
export const unrecordedHeader = "x-recovery-unrecorded";

/**
 * Adds the header to a head while the store fails.
 *
 * @param store returns the state of the store's writes
 */
export const withStoreWord = (head: RelayHead, store: () => StoreState): RelayHead => {
  const { reason = "unavailable", writes } = store();
  return writes !== "failing" ? head : { ...head, headers: [...head.headers, [unrecordedHeader, reason]] };
};
