/**
 * Defines the refusals of requests for a run's response.
 */
import type { Refused } from "../routing/Admission.ts";

/** The run does not exist for these credentials. */
export const unknown: Refused = {
  status: 404,
  reason: "stream",
  message:
    "There is no such stream for the credentials of this request: there never was, its time is over, or the gateway has been started anew since.",
};

/** The response is no longer kept. */
export const evicted: Refused = {
  status: 410,
  reason: "evicted",
  message: "This response has become too long to be kept, or too many others are: it cannot be attached to any more.",
};

/** The response broke at the client's offset. */
export const broken: Refused = {
  status: 410,
  reason: "broken",
  message: "This response broke behind the byte that the client has: there is no more of it.",
};

/** The offset is invalid or beyond the response. */
export const noSuchByte: Refused = {
  status: 400,
  reason: "offset",
  message:
    "Last-Event-ID says how many bytes of the decoded body the client has: a whole number, at most those that were sent.",
};

/** The method is not supported for streams. */
export const noMethod: Refused = {
  status: 405,
  reason: "method",
  message: "A stream is read by GET and ended by DELETE.",
  headers: [["allow", "GET, HEAD, DELETE"]],
};

/** A live worker does not reply. */
export const unreachable: Refused = {
  status: 503,
  reason: "unreachable",
  message: "A process of this gateway does not say now whether it has this stream; try again.",
  headers: [["retry-after", "1"]],
};
