/**
 * Says on a response's head that the store takes no writes: what its client is shown is not on record until the store is back (L8).
 */
import type { RelayHead } from "../../adapters/relay/RelayTransport.ts";
import type { StoreState } from "../api/StoreHealth.ts";

/** The header that says it, with the reason in the recorder's words. */
export const unrecordedHeader = "x-recovery-unrecorded";

/**
 * A head with that word, where there is something to say.
 *
 * @param store how its writes go
 */
export const withStoreWord = (head: RelayHead, store: () => StoreState): RelayHead => {
  const { reason = "unavailable", writes } = store();
  return writes === "ok" ? head : { ...head, headers: [...head.headers, [unrecordedHeader, reason]] };
};
