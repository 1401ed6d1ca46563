/**
 * When a client goes away in the middle of a response, for the adapters and for the gateway.
 */
import type { RequestLog } from "../src/testing/index.ts";
import type { Answer } from "../src/testing/script/FaultScript.ts";

type Break = NonNullable<Answer["break"]>;

/** Text and a call, which stall at a place: a client that goes away then has seen what stands before it. */
export const stalled = (at: Break["at"], n = 0): Partial<Answer> => ({
  content: [{ text: 4 }, { tool: "pay" }],
  break: { kind: "stall", at, n },
});

/** When the client goes: what the server has sent until then. */
export const moments: ReadonlyArray<readonly [string, Partial<Answer>]> = [
  ["before the head", stalled("before_head")],
  ["after the head", stalled("after_head")],
  ["in the middle of the text", stalled("event", 4)],
  ["while a call is held", stalled("tool_arguments")],
];

/** The server has sent all that it will. */
export const sent = (row: RequestLog, answer: Partial<Answer>): boolean =>
  row.body_hash !== "" && (answer.break?.at === "before_head" || row.bytes_sent > 0);
