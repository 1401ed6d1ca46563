/**
 * Says in which states a gateway has its clients' streams when something happens to it, and what may happen.
 */
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";

/** How long a silent gateway keeps its runs, in milliseconds. */
export const leaseMs = 3_000;

/** How long a response may be had again, in milliseconds. */
export const lingerMs = 60_000;

/** What happens to the gateway that has the streams, or to its way to the store. */
export const gatewayFaults = [
  "kill -9",
  "stopped",
  "cut off",
  "reset",
  "clock ahead",
  "clock ahead, kill -9",
  "restarted",
] as const;
export type GatewayFault = (typeof gatewayFaults)[number];

export const gatewayStates = ["waiting", "shown", "asking", "called", "continued"] as const;
export type GatewayState = (typeof gatewayStates)[number];

/** What is known of a stream in the middle of things. */
interface Seen {
  /** How often the provider was asked. */
  readonly asked: number;
  readonly text: string;
  readonly calls: number;
  readonly record: RunRecord | undefined;
}

/** A state: what the provider says in it, when it is reached, and how often the provider is asked where nothing else happens. */
interface State {
  readonly answers: NonNullable<FaultScriptInput["answers"]>;
  readonly body?: object;
  readonly isReached: (seen: Seen) => boolean;
  readonly requests: number;
}

const quick = { content: [{ text: 3 }] };

/** Deltas of the response that goes on behind a break, and how many of them come before it. */
const cut = { deltas: 50, before: 8 };

/** The text of so many deltas: each begins with its serial. */
export const deltasIn = (text: string): ReadonlyArray<string> => text.match(/r\d+\.\d+·/g) ?? [];

/** A call that has gone to its client comes before the end of its response by so much, in milliseconds. */
const behindCallMs = 1_300;

export const states: Readonly<Record<GatewayState, State>> = {
  /** Nothing visible has come. */
  waiting: {
    answers: [{ content: [{ text: 8 }], first_delay_ms: 9_000 }, quick],
    isReached: ({ asked }) => asked > 0,
    requests: 1,
  },
  shown: {
    answers: [{ content: [{ text: 60 }], delay_ms: 150 }, quick],
    isReached: ({ text }) => text !== "",
    requests: 1,
  },
  /** A tool that its provider runs may have run: a person is asked, and the client waits. */
  asking: {
    answers: [{ break: { kind: "rst", at: "after_head" } }, quick],
    body: { tools: [{ type: "mcp", server_label: "shop" }] },
    isReached: ({ record }) => record?.state === "asking",
    requests: 2,
  },
  /** Its call has gone to its client, which waits for the end. */
  called: {
    answers: [
      { content: [{ tool: "pay", input: {}, unmarked: true }], delay_ms: behindCallMs },
      { content: [{ tool: "pay", input: {}, unmarked: true }] },
    ],
    isReached: ({ calls }) => calls > 0,
    requests: 1,
  },
  /** Text that was shown goes on, behind a seam. */
  continued: {
    answers: [
      { content: [{ text: cut.deltas }], break: { kind: "rst", at: "event", n: cut.before + 1 } },
      { goes_on: {}, delay_ms: 200 },
      quick,
    ],
    isReached: ({ text }) => deltasIn(text).length > cut.before,
    requests: 2,
  },
};

/** The name of one stream: by it the provider, the client and the record know it. */
export const nameOf = (fault: GatewayFault, state: GatewayState): string => `${fault.replace(/\W+/g, "-")}_${state}`;

/** What a client asks for. */
export const bodyOf = (name: string, state: GatewayState): string =>
  JSON.stringify({
    model: name,
    stream: true,
    messages: [{ role: "user", content: `Say ${name}.` }],
    ...states[state].body,
  });

/** What the provider says. */
export const script: FaultScriptInput = {
  answers: [quick],
  scripts: Object.fromEntries(
    gatewayFaults.flatMap((fault) =>
      gatewayStates.map((state) => [nameOf(fault, state), states[state].answers] as const),
    ),
  ),
};
