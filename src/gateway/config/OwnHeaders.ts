/**
 * Names the request headers that speak to the gateway. They end at it: no upstream gets one.
 */

/** The header that carries a gateway's token. */
export const tokenHeader = "x-recovery-token";

/** The header that chooses what is held back from this request's client: `live` or `on_complete`. */
export const revealHeader = "x-recovery-reveal";

/** The header that names the route that a request goes by, and in a response the one that answered. */
export const routeHeader = "x-recovery-route";

/** The header that names the group (an agent and its sub-agents) whose budget a request shares. */
export const groupHeader = "x-recovery-group";

/** The header that keeps a request on its route: `never`. */
export const moveHeader = "x-recovery-move";
