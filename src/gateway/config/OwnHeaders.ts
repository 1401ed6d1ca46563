/**
 * Names the request headers that speak to the gateway. They end at it: no upstream gets one.
 */
import { type RelayHeaders, valuesOf } from "../../adapters/relay/RelayTransport.ts";

/** The header that carries a gateway's token. */
export const tokenHeader = "x-recovery-token";

/** The header that chooses what is held back from this request's client: `live` or `on_complete`. */
export const revealHeader = "x-recovery-reveal";

/** The header that names the route that a request goes by, and in a response the one that answered. */
export const routeHeader = "x-recovery-route";

/** The header that names the group (an agent and its sub-agents) whose budget a request shares. */
export const groupHeader = "x-recovery-group";

/** The header that says whether shown text of this request's response goes on by itself: `auto` or `ask`. */
export const continueTextHeader = "x-recovery-continue-text";

/** The header that keeps a request on its route: `never`. */
export const moveHeader = "x-recovery-move";

/** The header that says how long a run outlives its client, in milliseconds; in a response, that it may be attached to so long. */
export const lingerHeader = "x-recovery-linger";

/** The header by which a request says that it repeats one whose response it wants (`1`), or that it wants one of its own (`0`). */
export const attachHeader = "x-recovery-attach";

/** The header that says at which byte of a run's response an attached one begins. */
export const attachedHeader = "x-recovery-attached";

/** The header of a response that streamed although its request was no run, with the reason. */
export const passedHeader = "x-recovery-passed";

/** The different words of such a header, in their order, without the blanks around them. */
export const wordsOf = (headers: RelayHeaders, name: string): ReadonlySet<string> => {
  const given = valuesOf(headers, name);
  return given.length === 0 ? noWords : new Set(given.map((value) => value.trim()));
};

const noWords: ReadonlySet<string> = new Set();
