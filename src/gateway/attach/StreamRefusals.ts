/**
 * Defines the refusals of requests for a run's response.
 */
import type { Refused } from "../routing/Admission.ts";

/** The run does not exist for these credentials. */
export const unknown: Refused = {
  status: 404,
  reason: "stream",
  message:
    "No such stream exists for the credentials of this request: it never existed, it has expired, or the gateway has restarted.",
};

/** The response is no longer kept. */
export const evicted: Refused = {
  status: 410,
  reason: "evicted",
  message:
    "The gateway no longer keeps this response, because it or all kept responses together exceeded the limit. You cannot attach to it.",
};

/** The response broke at the client's offset. */
export const broken: Refused = {
  status: 410,
  reason: "broken",
  message: "This response broke after the last byte that the client has. There is no more of it.",
};

/** The offset is invalid or beyond the response. */
export const noSuchByte: Refused = {
  status: 400,
  reason: "offset",
  message:
    "Last-Event-ID: expected the number of bytes of the decoded body that the client has, at most as many as were sent.",
};

/** The method is not supported for streams. */
export const noMethod: Refused = {
  status: 405,
  reason: "method",
  message: "A stream is read with GET and ended with DELETE.",
  headers: [["allow", "GET, HEAD, DELETE"]],
};

/** A live worker does not reply. */
export const unreachable: Refused = {
  status: 503,
  reason: "unreachable",
  message: "A process of this gateway did not reply whether it has this stream; try again.",
  headers: [["retry-after", "1"]],
};
