/**
 * Names the request headers that speak to the gateway. They end at it: no upstream gets one.
 */

/** The header that carries a gateway's token. */
export const tokenHeader = "x-recovery-token";

/** The header that chooses what is held back from this request's client: `live` or `on_complete`. */
export const revealHeader = "x-recovery-reveal";
