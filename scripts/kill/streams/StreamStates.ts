/**
 * Says in which states a gateway has its clients' streams when something happens to it: what the provider says in each.
 */
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";

/** How long a silent gateway keeps its runs, in milliseconds. */
export const leaseMs = 3_000;

/** How long a response may be had again, in milliseconds. */
export const lingerMs = 60_000;

export const streamStates = ["waiting", "shown", "asking", "called", "continued"] as const;
export type StreamState = (typeof streamStates)[number];

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

/** Deltas of the response that goes on behind a break, and how many of them come before it. */
const cut = { deltas: 50, before: 8 };

/** The text of so many deltas: each begins with its serial. */
export const deltasIn = (text: string): ReadonlyArray<string> => text.match(/r\d+\.\d+·/g) ?? [];

/** Deltas of the whole response in each state, where nothing else happens. */
export const deltasOf: Readonly<Record<StreamState, number>> = {
  waiting: 8,
  shown: 60,
  asking: 3,
  called: 0,
  continued: cut.deltas,
};

/** What the provider says to every request behind those that a state is about. */
export const quick = { content: [{ text: deltasOf.asking }] };

/** A call that has gone to its client comes before the end of its response by so much, in milliseconds. */
const behindCallMs = 1_300;

export const states: Readonly<Record<StreamState, State>> = {
  /** Nothing visible has come. */
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
      // A repeat may come before the request that goes on: it has nothing to go on with, and gets the content.
      { goes_on: {}, ...quick, delay_ms: 200 },
      quick,
    ],
    isReached: ({ text }) => deltasIn(text).length > cut.before,
    requests: 2,
  },
};

/** What a client asks for. */
export const bodyOf = (name: string, state: StreamState): string =>
  JSON.stringify({
    model: name,
    stream: true,
    messages: [{ role: "user", content: `Say ${name}.` }],
    ...states[state].body,
  });
