/**
 * Makes rows of a fault provider's log.
 */
import type { RequestLog } from "../../../src/testing/index.ts";

/** A request that was answered whole: two deltas of text. */
export const row = (number: number, more: Partial<RequestLog> = {}): RequestLog => ({
  number,
  connection: number,
  reused: false,
  script: "",
  method: "POST",
  path: "/v1/messages",
  header_names: [],
  bytes_received: 1,
  body_bytes: 1,
  body_hash: "same",
  bytes_sent: 1,
  sent_hash: "",
  text: [`r${number}.0·`, `r${number}.1·`],
  reasoning: [],
  calls: [],
  terminal: true,
  outcome: "complete",
  started_ms: 0,
  ended_ms: 1,
  ...more,
});
