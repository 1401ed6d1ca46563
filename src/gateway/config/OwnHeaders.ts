/**
 * Names the request headers that address the gateway. They are never sent to an upstream.
 */
import { type RelayHeaders, valuesOf } from "../../adapters/relay/RelayTransport.ts";

/** Carries the gateway's token. */
export const tokenHeader = "x-recovery-token";

/** Selects when text is sent to this client: `live` or `on_complete`. */
export const revealHeader = "x-recovery-reveal";

/** Names the route of a request; in a response, the route that answered. */
export const routeHeader = "x-recovery-route";

/** Names the group (an agent and its sub-agents) that shares a budget. */
export const groupHeader = "x-recovery-group";

/** Selects whether shown text of this response is continued automatically: `auto` or `ask`. */
export const continueTextHeader = "x-recovery-continue-text";

/** Keeps a request on its route: `never`. */
export const moveHeader = "x-recovery-move";

/** Sets how long a run outlives its client, in milliseconds; in a response, the time in which a client may attach to it. */
export const lingerHeader = "x-recovery-linger";

/** Says that a request repeats an earlier one and wants its response (`1`), or wants a new response (`0`). */
export const attachHeader = "x-recovery-attach";

/** The byte of the run's response at which an attached response starts. */
export const attachedHeader = "x-recovery-attached";

/** Explains why a streamed response did not belong to a run. */
export const passedHeader = "x-recovery-passed";

/** Returns the distinct values of such a header, trimmed and in order. */
export const wordsOf = (headers: RelayHeaders, name: string): ReadonlySet<string> => {
  const given = valuesOf(headers, name);
  return given.length === 0 ? noWords : new Set(given.map((value) => value.trim()));
};

const noWords: ReadonlySet<string> = new Set();
