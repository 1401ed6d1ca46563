/**
 * Cases in which a client disconnects in the middle of a response, for the adapters and the gateway.
 */
import type { RequestLog } from "../src/testing/index.ts";
import type { Answer } from "../src/testing/script/FaultScript.ts";

type Break = NonNullable<Answer["break"]>;

/** Text and a tool call that stall at `at`, so a client that leaves then has seen everything sent earlier. */
export const stalled = (at: Break["at"], n = 0): Partial<Answer> => ({
  content: [{ text: 4 }, { tool: "pay" }],
  break: { kind: "stall", at, n },
});

/** Moments at which the client disconnects, each with an answer that stalls there. */
export const moments: ReadonlyArray<readonly [string, Partial<Answer>]> = [
  ["before the head", stalled("before_head")],
  ["after the head", stalled("after_head")],
  ["in the middle of the text", stalled("event", 4)],
  ["while a call is held", stalled("tool_arguments")],
];

/** Returns true once the server has sent everything it will send. */
export const sent = (row: RequestLog, answer: Partial<Answer>): boolean =>
  row.body_hash !== "" && (answer.break?.at === "before_head" || row.bytes_sent > 0);
