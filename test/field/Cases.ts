/**
 * Lists the dialects and faults that users reported, each in every protocol that has it. The tests play this table, and the docs
 * print it.
 */

import { code, table } from "../../scripts/tables/Markdown.ts";
import type { RelayOptions } from "../../src/adapters/relay/RelayBeginning.ts";
import type { RelayHead } from "../../src/adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import { reset, type Step } from "../adapters/relay/RelayCases.ts";
import { ids, type Said, talkIds } from "../samples/index.ts";
import { good, written } from "./Wires.ts";

/** One response and the end of its connection. Without a head it answers with 200 and an event stream. */
export type Attempt = ReadonlyArray<Step>;

/** The bytes that leave the gateway, by their use to the client. */
export type Outcome = "whole" | "as_sent" | "withheld" | "kept" | "refused";

/** A reported fault, and what one client request must come to. */
export interface Case {
  /** A sentence about the provider. */
  readonly name: string;
  /** The reports that describe it, `repository #number`. */
  readonly reports: string;
  /** The client may see parts before the response is complete (`live`), or only a complete response. */
  readonly reveal: "live" | "on_complete";
  /** The responses to the first, second, … request; the last one repeats. */
  readonly attempts: (protocol: ProtocolId) => ReadonlyArray<Attempt>;
  /** The protocols that have the fault. */
  readonly protocols: ReadonlyArray<ProtocolId>;
  /** Provider requests, paid or refused. */
  readonly requests: number;
  /**
   * `whole`: the last response, byte for byte. `as_sent`: the same, although nothing better came. `withheld`: an error, and nothing of
   * the response. `kept`: the text that the client already has, then an error. `refused`: the provider's refusal.
   */
  readonly outcome: Outcome;
  /** `end`, or the rule that ended the run. */
  readonly end: string;
  readonly options?: Partial<RelayOptions> & { readonly limit?: number; readonly seconds?: number };
}

const end = "end" as const;
const cut = (cmd: string): Said => ({ call: "run", pieces: ['{"cmd":"rm', cmd], open: true });
const half = cut(" -rf");

/** A response whose text arrives two seconds before the rest. */
const textFirst = (stream: string): Attempt => {
  const rest = stream.indexOf("\n\n", stream.indexOf("So.")) + 2;
  return [stream.slice(0, rest), 2000, stream.slice(rest), end];
};

const only = (...ids: ReadonlyArray<ProtocolId>): { readonly protocols: ReadonlyArray<ProtocolId> } => ({
  protocols: ids,
});
const all = { protocols: ids };
/** The protocols of conversations: a completion of a text may be empty by right. */
const talks = { protocols: talkIds };
/** The protocols that can send a part of a call: Ollama sends a call whole or not at all. */
const partial = { protocols: talkIds.filter((id) => id !== "ollama") };
const hidden = { reveal: "on_complete" } as const;
const shown = { reveal: "live" } as const;
const whole = { outcome: "whole", end } as const;
const asSent = { outcome: "as_sent", end } as const;

const calls: ReadonlyArray<Case> = [
  {
    name: "The request's output limit cuts a call's arguments, and the provider reports the call as finished",
    reports: "vllm #53270, #46303",
    ...partial,
    ...hidden,
    attempts: (it) => [[written(it, [half], { tokens: 16 }), end]],
    options: { limit: 16 },
    requests: 1,
    outcome: "withheld",
    end: "not_retryable",
  },
  {
    name: "The request's output limit cuts a call's arguments after text",
    reports: "vllm #53270, #46303",
    ...partial,
    ...shown,
    attempts: (it) => [textFirst(written(it, [{ text: "So." }, half], { tokens: 16 }))],
    options: { limit: 16 },
    requests: 1,
    outcome: "kept",
    end: "not_retryable",
  },
  {
    name: "Arguments are cut at the same place each time",
    reports: "pi #9897, agenc-core #1714",
    ...partial,
    ...hidden,
    attempts: (it) => [[written(it, [half]), end]],
    requests: 2,
    outcome: "withheld",
    end: "budget_exhausted",
  },
  {
    name: "Arguments are cut at a different place each time",
    reports: "pi #9897",
    ...partial,
    ...shown,
    attempts: (it) => [" -rf", " -r x", " -r y", " -r z"].map((cmd) => [written(it, [cut(cmd)]), end]),
    requests: 4,
    outcome: "withheld",
    end: "budget_exhausted",
  },
  {
    name: "Arguments are cut once",
    reports: "vllm #53270",
    ...partial,
    ...shown,
    attempts: (it) => [
      [written(it, [half]), end],
      [good(it), end],
    ],
    requests: 2,
    ...whole,
  },
  {
    name: "Arguments are cut after text",
    reports: "vllm #53270",
    ...partial,
    ...shown,
    attempts: (it) => [textFirst(written(it, [{ text: "So." }, half]))],
    requests: 1,
    outcome: "kept",
    end: "text_shown",
  },
  {
    name: "Arguments are cut after text, with `on_break: as_provider`",
    reports: "vllm #53270",
    ...partial,
    ...shown,
    attempts: (it) => [textFirst(written(it, [{ text: "So." }, half]))],
    options: { ending: "as_provider" },
    requests: 1,
    outcome: "kept",
    end: "text_shown",
  },
];

const chunk = (tool_calls: ReadonlyArray<object>, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { role: "assistant", tool_calls }, finish_reason }] })}\n\n`;
const start = (index: number, id: string, name: string, args = "") => ({
  index,
  id,
  type: "function",
  function: { name, arguments: args },
});
const piece = (index: number, args: string, id?: string) => ({
  index,
  ...(id === undefined ? {} : { id }),
  function: { arguments: args },
});

const drift = (name: string, reports: string, ...deltas: ReadonlyArray<object>): Case => ({
  name,
  reports,
  ...only("openai-chat"),
  ...shown,
  attempts: () => [[`${deltas.map((it) => chunk([it])).join("")}${chunk([], "tool_calls")}data: [DONE]\n\n`, end]],
  requests: 1,
  ...whole,
});

/** A call whose second fragment names an index at which nothing started. */
const lostIndex: Partial<Record<ProtocolId, readonly [from: string, to: string]>> = {
  "anthropic-messages": [
    '"index":0,"delta":{"type":"input_json_delta","partial_json":"\\"ls\\"}"}',
    '"index":7,"delta":{"type":"input_json_delta","partial_json":"\\"ls\\"}"}',
  ],
  "openai-responses": [
    '"output_index":0,"item_id":"fc_1","delta":"\\"ls\\"}"',
    '"output_index":7,"item_id":"fc_1","delta":"\\"ls\\"}"',
  ],
};

const drifts: ReadonlyArray<Case> = [
  drift(
    "The rest of the arguments comes under the next index",
    "dirac #215, pipecat #4688",
    start(0, "a", "run"),
    piece(0, '{"cm'),
    piece(1, 'd":"ls"}'),
  ),
  drift(
    "Every fragment has a new index",
    "dirac #215",
    start(0, "a", "run", "{"),
    piece(1, '"cmd":'),
    piece(2, '"ls"'),
    piece(3, "}"),
  ),
  drift(
    "The fragments of the second call come under the index of the first",
    "pi #9897",
    start(0, "a", "run", '{"cmd":"ls"}'),
    start(1, "b", "read"),
    piece(0, '{"path":'),
    piece(0, '"x"}'),
  ),
  drift(
    "Two calls share an index, and fragments carry ids",
    "agno #8880",
    start(0, "a", "run"),
    start(0, "b", "read"),
    piece(0, '{"cmd":"ls"}', "a"),
    piece(0, '{"path":"x"}', "b"),
  ),
  drift(
    "A fragment repeats its call's id under another index",
    "agno #8880",
    start(0, "a", "run"),
    start(1, "b", "read"),
    piece(4, '{"cmd":"ls"}', "a"),
    piece(5, '{"path":"x"}', "b"),
  ),
  drift(
    "The first call starts at index 1",
    "pipecat #5342",
    start(1, "a", "run"),
    piece(1, '{"cmd":'),
    piece(1, '"ls"}'),
  ),
  {
    name: "A fragment names an index at which nothing started",
    reports: "pipecat #4688",
    ...only("openai-responses", "anthropic-messages"),
    ...shown,
    attempts: (it) => {
      const [from, to] = lostIndex[it] ?? ["", ""];
      const stream = written(it, [{ call: "run", pieces: ['{"cmd":', '"ls"}'] }]);
      if (from === "" || !stream.includes(from)) throw new Error(`${it} has no fragment to move`);
      return [[stream.replace(from, to), end]];
    },
    requests: 1,
    ...whole,
  },
];

/** Empty responses: a name, its reports, the content, and the reported output tokens. */
const emptyTurns: ReadonlyArray<readonly [name: string, reports: string, said: ReadonlyArray<Said>, tokens: number]> = [
  ["only reasoning", "goose #11975, oh-my-pi #8176, cline #13165, pi #6963", [{ thought: "Let me see." }], 60],
  ["only white space", "hermes #58148", [{ text: " \n\n" }], 20],
  ["only reasoning and white space", "litellm #24462", [{ thought: "Hm." }, { text: "\n" }], 60],
  ["no text and three reported output tokens", "hermes #58148, litellm #24462", [], 3],
];

const empties: ReadonlyArray<Case> = emptyTurns.flatMap(([name, reports, said, tokens]) => {
  const empty = (it: ProtocolId): Attempt => [written(it, said, { tokens }), end];
  const of = { reports, ...talks };
  return [
    {
      name: `A response with ${name}, once`,
      ...of,
      ...hidden,
      attempts: (it) => [empty(it), [good(it), end]],
      requests: 2,
      ...whole,
    },
    {
      name: `A response with ${name}, each time`,
      ...of,
      ...hidden,
      attempts: (it) => [empty(it)],
      requests: 2,
      ...asSent,
    },
    ...(said.length === 0
      ? []
      : [
          {
            name: `A response with ${name} that the client sees`,
            ...of,
            ...shown,
            attempts: (it: ProtocolId) => [empty(it), [good(it), end] as const],
            requests: 1,
            ...asSent,
          },
        ]),
  ] satisfies ReadonlyArray<Case>;
});

const broken = (it: ProtocolId, text: string): string => written(it, [{ text }], { cut: true });

const repeats: ReadonlyArray<Case> = [
  {
    name: "Two partial responses with the same words",
    reports: "agenc-core #1714",
    ...all,
    ...hidden,
    attempts: (it) => [[broken(it, "Once upon"), end]],
    requests: 2,
    outcome: "withheld",
    end: "budget_exhausted",
  },
  {
    name: "Partial responses with different words",
    reports: "agenc-core #1714",
    ...all,
    ...hidden,
    attempts: (it) => [
      ...["Once upon", "Once a", "On"].map((text) => [broken(it, text), end] as const),
      [good(it), end],
    ],
    requests: 4,
    ...whole,
  },
  {
    name: "The same words before a clean end and before a reset",
    reports: "agenc-core #1714",
    ...all,
    ...hidden,
    attempts: (it) => [
      [broken(it, "Once upon"), end],
      [broken(it, "Once upon"), reset()],
      [good(it), end],
    ],
    requests: 3,
    ...whole,
  },
  {
    name: "Partial responses with the same first word",
    reports: "agenc-core #1714",
    ...all,
    ...hidden,
    attempts: (it) => [
      [broken(it, "I"), end],
      [broken(it, "I"), end],
      [good(it), end],
    ],
    requests: 3,
    ...whole,
  },
  {
    name: "Responses that end before their first word",
    reports: "agenc-core #1714",
    ...all,
    ...hidden,
    attempts: (it) => {
      const none: Attempt = [written(it, [], { cut: true }), end];
      return [none, none, none, [good(it), end]];
    },
    requests: 4,
    ...whole,
  },
];

const lacksLast = (it: ProtocolId): string => written(it, [{ text: "GOOD" }], { lacksLast: true, tokens: 40 });
const ping = 'event: ping\ndata: {"type":"ping"}\n\n';
const geminiChunk = (part: object, finishReason?: string): string =>
  `data: ${JSON.stringify({ candidates: [{ index: 0, content: { parts: [part] }, finishReason }] })}\n\n`;
const stop = (text: string): string => geminiChunk({ text }, "STOP");

const ends: ReadonlyArray<Case> = [
  {
    name: "A stop_reason and a clean end, without message_stop",
    reports: "better-ccflare #307",
    ...only("anthropic-messages"),
    ...hidden,
    attempts: (it) => [
      [lacksLast(it), end],
      [good(it), end],
    ],
    requests: 2,
    ...whole,
  },
  {
    name: "A stop_reason and only pings after it",
    reports: "better-ccflare #307",
    ...only("anthropic-messages"),
    ...hidden,
    attempts: (it) => [
      [lacksLast(it), ...Array.from({ length: 20 }).flatMap(() => [1000, ping]), "silence"],
      [good(it), end],
    ],
    requests: 2,
    ...whole,
  },
  {
    name: "A server that never sends message_stop",
    reports: "better-ccflare #307",
    ...only("anthropic-messages"),
    ...hidden,
    attempts: (it) => [[lacksLast(it), end]],
    requests: 2,
    ...asSent,
  },
  {
    name: "A stop_reason and a clean end after text that the client sees",
    reports: "better-ccflare #307",
    ...only("anthropic-messages"),
    ...shown,
    attempts: (it) => [[lacksLast(it), end]],
    requests: 1,
    ...whole,
  },
  {
    name: "A finish and a clean end, without [DONE]",
    reports: "litellm #24462",
    ...only("openai-chat"),
    ...hidden,
    attempts: (it) => [[lacksLast(it), end]],
    requests: 1,
    ...whole,
  },
  ...(["live", "on_complete"] as const).map(
    (reveal): Case => ({
      name: "A whole response on a connection that stays open",
      reports: "sub2api #6473",
      ...all,
      reveal,
      attempts: (it) => [[good(it), "silence"]],
      options: { seconds: 15 },
      requests: 1,
      ...whole,
    }),
  ),
  {
    name: "A call with its STOP on a connection that stays open",
    reports: "agentscope #2073",
    ...only("google-gemini"),
    ...shown,
    attempts: () => [[geminiChunk({ functionCall: { name: "run", args: {} } }, "STOP"), "silence"]],
    options: { seconds: 15 },
    requests: 1,
    ...whole,
  },
  {
    name: "A STOP in every chunk, and a pause of a minute before the last",
    reports: "agentscope #2073",
    ...only("google-gemini"),
    ...hidden,
    attempts: () => [[stop("One, "), stop("two, "), 60_000, stop("three."), end]],
    options: { seconds: 90 },
    requests: 1,
    ...whole,
  },
  {
    name: "A STOP in every chunk, and a pause of a minute after the first",
    reports: "agentscope #2073",
    ...only("google-gemini"),
    ...hidden,
    attempts: () => [[stop("One, "), 60_000, stop("two, "), stop("three."), end]],
    options: { seconds: 90 },
    requests: 1,
    ...whole,
  },
  {
    name: "A STOP in every chunk but the first, and a pause of a minute before the last",
    reports: "agentscope #2073",
    ...only("google-gemini"),
    ...hidden,
    attempts: () => [[geminiChunk({ text: "One, " }), stop("two, "), stop("three, "), 60_000, stop("four."), end]],
    options: { seconds: 90 },
    requests: 1,
    ...whole,
  },
  {
    name: "A STOP after a long pause, and usage five seconds later",
    reports: "agentscope #2073",
    ...only("google-gemini"),
    ...hidden,
    attempts: (it) => {
      const [text = "", last = ""] = written(it, [{ text: "GOOD" }], { tokens: 40 }).split(/(?<=\n\n)/);
      const usage = 'data: {"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":40}}\n\n';
      return [[text, 40_000, last, 5000, usage, end]];
    },
    requests: 1,
    ...whole,
  },
  {
    name: "A response that starts with reasoning and white space",
    reports: "litellm #24462",
    ...all,
    ...hidden,
    attempts: (it) => [[written(it, [{ thought: "Hm." }, { text: "\n" }, { text: "Yes." }], { tokens: 60 }), end]],
    requests: 1,
    ...whole,
  },
];

const refuse = (status: number, body: object): Attempt => [
  { status, statusText: "", headers: [["Content-Type", "application/json"]] } satisfies RelayHead,
  JSON.stringify(body),
  end,
];

const refused = { outcome: "refused", end: "not_retryable" } as const;

const refusals: ReadonlyArray<Case> = [
  {
    name: "An account without credit, reported only in the message of a 500",
    reports: "hermes #16680, MiniMax-M2 #62",
    ...all,
    ...shown,
    attempts: () => [refuse(500, { error: { type: "api_error", message: "insufficient balance (1008)" } })],
    requests: 1,
    ...refused,
  },
  {
    name: "An account without credit, reported only in the message of a 429",
    reports: "hermes #16680, OmniRoute #858",
    ...all,
    ...shown,
    attempts: () => [
      refuse(429, {
        error: { type: "rate_limit_error", message: "Your account balance is insufficient, please recharge" },
      }),
    ],
    requests: 1,
    ...refused,
  },
  {
    name: "A plan's limit that resets in five hours",
    reports: "hive-mind #1936, tend #831",
    ...all,
    ...shown,
    attempts: () => [
      refuse(429, {
        error: { type: "usage_limit_reached", message: "You have hit your usage limit.", resets_in_seconds: 18_000 },
      }),
    ],
    requests: 1,
    ...refused,
  },
  {
    name: "A wait that is announced only in the error message",
    reports: "OmniRoute #858",
    ...all,
    ...shown,
    attempts: (it) => [
      refuse(429, { error: { type: "rate_limit_error", message: "Please try again in 20s." } }),
      [good(it), end],
    ],
    requests: 2,
    ...whole,
  },
];

/** All cases, in the order of the printed table. */
export const cases: ReadonlyArray<Case> = [...calls, ...drifts, ...empties, ...repeats, ...ends, ...refusals];

const outcomes: Readonly<Record<Outcome, string>> = {
  whole: "whole",
  as_sent: "as the provider sent it",
  withheld: "an error, and nothing of the response",
  kept: "the text, then an error",
  refused: "the provider's refusal",
};

/** Names the protocols that have a fault, or those that cannot have it if these are fewer. */
const describeProtocols = (protocols: ReadonlyArray<ProtocolId>): string => {
  const rest = ids.filter((id) => !protocols.includes(id));
  const list = (some: ReadonlyArray<ProtocolId>): string => some.map(code).join(", ");
  if (rest.length === 0) return "all";
  return rest.length < protocols.length ? `all but ${list(rest)}` : list(protocols);
};

/** Prints the cases as a Markdown table, with their counts above it. */
export const printCases = (): string =>
  [
    `${cases.length} cases: ${cases.filter((it) => it.outcome === "whole").length} end in a whole response.`,
    table(
      ["fault", "mode", "protocols", "requests", "the client gets", "reports"],
      cases.map((it) => [
        it.name,
        code(it.reveal),
        describeProtocols(it.protocols),
        String(it.requests),
        outcomes[it.outcome],
        it.reports,
      ]),
    ),
  ].join("\n\n");
