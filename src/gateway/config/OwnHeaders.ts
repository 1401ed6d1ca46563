/**
 * Names the request headers that speak to the gateway. They end at it: no upstream gets one.
 */

/** The header that carries a gateway's token. */
export const tokenHeader = "x-recovery-token";
