/**
 * Parses the routing options of a request: a pinned route, and the permission to move.
 */
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { moveHeader, routeHeader, wordsOf } from "../config/OwnHeaders.ts";
import { namePattern } from "../config/UpstreamNames.ts";
import type { Refused } from "../routing/Admission.ts";

/** The routing options of a request. */
export interface RouteWish {
  /** Id of the only route that the request may use. */
  readonly pinned: string | undefined;
  /** False if the request must stay on its route. */
  readonly moves: boolean;
}

/** Parses the options. An invalid value is refused, because the client relies on it. */
export const wishOf = (headers: RelayHeaders): RouteWish | Refused => {
  const [pins, moves] = [wordsOf(headers, routeHeader), wordsOf(headers, moveHeader)];
  const [pinned] = pins;
  if (pins.size > 1 || (pinned !== undefined && !namePattern.test(pinned))) return notRead;
  if (moves.size > 1 || (moves.size === 1 && !moves.has("never"))) return neverOnly;
  return { pinned, moves: moves.size === 0 && pinned === undefined };
};

const notRead: Refused = {
  status: 400,
  reason: "route",
  message: `${routeHeader}: expected one route name of 1 to 32 of a-z, 0-9 and -.`,
};

const neverOnly: Refused = { status: 400, reason: "route", message: `${moveHeader}: expected never, or no header.` };

/**
 * Creates the refusal of a route that the request cannot use. Without a reason, the message does not reveal whether the route exists for other
 * clients.
 *
 * @param pinned the route's name, as the client wrote it
 * @param reason the reason why a permitted route cannot serve this request
 */
export const routeRefusal = (pinned: string, reason?: string): Refused => ({
  status: 400,
  reason: "route",
  message:
    reason === undefined
      ? `This request has no route ${pinned} (${routeHeader}).`
      : `The route ${pinned} cannot serve this request (${routeHeader}): ${reason}.`,
});
