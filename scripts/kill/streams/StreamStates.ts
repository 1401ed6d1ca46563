/**
 * The states of the clients' streams at the moment of a fault, and the provider's script for each.
 */
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";

/** Lease of a gateway, in milliseconds. */
export const leaseMs = 3_000;

/** Time for which a response can be fetched again, in milliseconds. */
export const lingerMs = 60_000;

export const streamStates = ["waiting", "shown", "asking", "called", "continued"] as const;
export type StreamState = (typeof streamStates)[number];

/** The observable state of a stream in progress. */
interface Seen {
  /** Number of requests to the provider. */
  readonly asked: number;
  readonly text: string;
  readonly calls: number;
  readonly record: RunRecord | undefined;
}

/** A state: the provider's answers, the test for having reached it, and the number of requests if nothing else happens. */
interface State {
  readonly answers: NonNullable<FaultScriptInput["answers"]>;
  readonly body?: object;
  readonly isReached: (seen: Seen) => boolean;
  readonly requests: number;
}

/** Number of deltas of the continued response, and of those before the break. */
const cut = { deltas: 50, before: 8 };

/** Finds the deltas in text. Each starts with the number of its response and its own index. */
export const deltasIn = (text: string): ReadonlyArray<string> => text.match(/r\d+\.\d+·/g) ?? [];

/** Number of deltas of the whole response in each state, if nothing else happens. */
export const deltasOf: Readonly<Record<StreamState, number>> = {
  waiting: 8,
  shown: 60,
  asking: 3,
  called: 0,
  continued: cut.deltas,
};

/** The provider's answer to every request beyond those of a state. */
export const quick = { content: [{ text: deltasOf.asking }] };

/** Delay between a call and the end of its response, in milliseconds. */
const behindCallMs = 1_300;

export const states: Readonly<Record<StreamState, State>> = {
  /** Nothing visible has arrived. */
  waiting: {
    answers: [{ content: [{ text: deltasOf.waiting }], first_delay_ms: 9_000 }, quick],
    isReached: ({ asked, text }) => asked > 0 && text === "",
    requests: 1,
  },
  shown: {
    answers: [{ content: [{ text: deltasOf.shown }], delay_ms: 150 }, quick],
    isReached: ({ text }) => text !== "",
    requests: 1,
  },
  /** A tool that the provider runs may have run. A person is asked, and the client waits. */
  asking: {
    answers: [{ break: { kind: "rst", at: "after_head" } }, quick],
    body: { tools: [{ type: "mcp", server_label: "shop" }] },
    isReached: ({ record }) => record?.state === "asking",
    requests: 2,
  },
  /** The client has received a call and waits for the end. */
  called: {
    answers: [
      { content: [{ tool: "pay", input: {}, unmarked: true }], delay_ms: behindCallMs },
      { content: [{ tool: "pay", input: {}, unmarked: true }] },
    ],
    isReached: ({ calls }) => calls > 0,
    requests: 1,
  },
  /** Shown text is being continued after a seam. */
  continued: {
    answers: [
      { content: [{ text: cut.deltas }], break: { kind: "rst", at: "event", n: cut.before + 1 } },
      // A repeat may arrive before the continuation. It has nothing to continue, so it gets `content`.
      { goes_on: {}, ...quick, delay_ms: 200 },
      quick,
    ],
    isReached: ({ text }) => deltasIn(text).length > cut.before,
    requests: 2,
  },
};

/** The body of a client's request. */
export const bodyOf = (name: string, state: StreamState): string =>
  JSON.stringify({
    model: name,
    stream: true,
    messages: [{ role: "user", content: `Say ${name}.` }],
    ...states[state].body,
  });
