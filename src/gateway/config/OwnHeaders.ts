/**
 * Names the headers between clients and the gateway. They are never sent to an upstream.
 */
import { type RelayHeaders, valuesOf } from "../../adapters/relay/RelayTransport.ts";

/** Contains the gateway's token. */
export const tokenHeader = "x-recovery-token";

/** Selects when text is sent to the client: as it arrives (`live`), or once the response is complete (`on_complete`). */
export const revealHeader = "x-recovery-reveal";

/** Names the route of a request. In a response, names the route that answered. */
export const routeHeader = "x-recovery-route";

/** Names the group of runs (for example an agent and its sub-agents) that share a budget. */
export const groupHeader = "x-recovery-group";

/** Selects if a response that broke after text was shown is continued automatically: `auto` or `ask`. */
export const continueTextHeader = "x-recovery-continue-text";

/** With the value `never`, keeps a request on its route. */
export const moveHeader = "x-recovery-move";

/** Sets the time for which a run continues without its client, in milliseconds. In a response, the time in which a client may attach. */
export const lingerHeader = "x-recovery-linger";

/** `1`: the request repeats an earlier one and wants its response. `0`: the request wants a new response. */
export const attachHeader = "x-recovery-attach";

/** Offset in the run's response at which an attached response starts. */
export const attachedHeader = "x-recovery-attached";

/** Reason why a streamed response did not belong to a run. */
export const passedHeader = "x-recovery-passed";

/** Returns the distinct values of one of these headers, trimmed, in order. */
export const wordsOf = (headers: RelayHeaders, name: string): ReadonlySet<string> => {
  const given = valuesOf(headers, name);
  return given.length === 0 ? noWords : new Set(given.map((value) => value.trim()));
};

const noWords: ReadonlySet<string> = new Set();
