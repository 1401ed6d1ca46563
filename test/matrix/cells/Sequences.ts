/**
 * Breaks more than one attempt: budgets, attempts that must not count for each other (law L3), and dead sockets.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { Answers as Rendered } from "../../../src/testing/index.ts";
import {
  type Answer,
  type Answers,
  asked,
  type Cell,
  type Expected,
  type Mode,
  modes,
  none,
  protocols,
  recovered,
  storedIn,
} from "../Cell.ts";
import { talk } from "./Healthy.ts";

interface Sequence {
  readonly name: string;
  readonly answers: (protocol: ProtocolId) => Answers;
  readonly expect: (mode: Mode) => Expected;
  readonly more?: Partial<Pick<Cell, "clocks" | "warmUp">>;
}

export const sequences = (): ReadonlyArray<Cell> => [
  ...protocols.flatMap((protocol) =>
    modes.flatMap((mode) =>
      list.map(({ answers, expect, more, name }) => ({
        name: `${protocol}/${name}/${mode}`,
        group: name,
        protocol,
        mode,
        tools: none,
        answers: () => answers(protocol),
        expect: expect(mode),
        ...more,
      })),
    ),
  ),
  ...protocols.flatMap((protocol) =>
    storedIn(protocol).flatMap((tools) =>
      modes.flatMap((mode) =>
        ofStored.map(({ answers, expect, more, name }) => ({
          name: `${protocol}/${name}, stored/${mode}`,
          group: `${name}, stored`,
          protocol,
          mode,
          tools,
          answers: () => answers(protocol),
          expect: expect(mode),
          ...more,
        })),
      ),
    ),
  ),
];

const cutAfter =
  (role: "reasoning" | "text") =>
  (protocol: ProtocolId): Answer => {
    const last = Rendered.render(protocol, 1, { content: talk }).findLastIndex((it) => it.role === role);
    return { content: talk, break: { kind: "rst", at: "event", n: last + 1 } };
  };
const afterReasoning = cutAfter("reasoning");
const afterText = cutAfter("text");
const afterHead: Answer = { break: { kind: "rst", at: "after_head" } };

const times = (count: number, rule: string): ReadonlyArray<string> => Array.from({ length: count }, () => rule);

/** All retries that a break of this kind is allowed, then the question. */
const spent = (retries: number, rule: string, keeps: ReadonlyArray<number> = []): Expected => ({
  end: "asked",
  rules: [...times(retries, rule), "budget_exhausted"],
  requests: retries + 1,
  keeps,
});

const list: ReadonlyArray<Sequence> = [
  { name: "a reset after the head, every time", answers: () => [afterHead], expect: () => spent(3, "nothing_shown") },
  {
    name: "a reset after reasoning, every time",
    answers: (protocol) => [afterReasoning(protocol)],
    // One replay pays again for shown text; three are allowed if nothing was shown.
    expect: (mode) => {
      if (mode === "parts") return asked("text_shown", [1]);
      return mode === "live" ? spent(1, "only_reasoning_shown", [2]) : spent(3, "nothing_shown");
    },
  },
  {
    name: "silence after the head, every time",
    answers: () => [{ break: { kind: "stall", at: "after_head" } }],
    expect: () => spent(1, "nothing_shown"),
    more: { clocks: { first_progress: 350 } },
  },
  {
    name: "429, every time",
    answers: () => [{ status: 429, headers: { "retry-after-ms": "30" } }],
    expect: () => spent(3, "not_processed"),
  },
  {
    name: "429 three times, then resets, then a healthy response",
    answers: () => [
      ...Array.from({ length: 3 }, (): Answer => ({ status: 429, headers: { "retry-after-ms": "30" } })),
      afterHead,
      afterHead,
      {},
    ],
    expect: () => ({
      end: "completed",
      rules: [...times(3, "not_processed"), ...times(2, "nothing_shown")],
      requests: 6,
      keeps: [6],
    }),
  },
  {
    name: "a break after reasoning, one before any content, then a healthy response",
    answers: (protocol) => [afterReasoning(protocol), afterHead, {}],
    expect: (mode) => {
      if (mode === "parts") return asked("text_shown", [1]);
      const rule = mode === "live" ? "only_reasoning_shown" : "nothing_shown";
      return { end: "completed", rules: [rule, "nothing_shown"], requests: 3, keeps: [3] };
    },
  },
  {
    name: "a break before any content, then one after text",
    answers: (protocol) => [afterHead, afterText(protocol), {}],
    expect: (mode) =>
      mode === "on_complete"
        ? { end: "completed", rules: times(2, "nothing_shown"), requests: 3, keeps: [3] }
        : { end: "asked", rules: ["nothing_shown", "text_shown"], requests: 2, keeps: [2] },
  },
  {
    name: "silence, then a slow answer",
    answers: () => [{ break: { kind: "stall", at: "before_head" } }, { content: talk, head_delay_ms: 700 }],
    // The retry has twice the limit, so the same prefill is never cut at the same deadline twice.
    expect: () => recovered("nothing_shown"),
    more: { clocks: { first_progress: 600 } },
  },
  {
    name: "a FIN at the first byte of the request",
    answers: () => [{ break: { kind: "fin", at: "request", n: 1 } }, {}],
    expect: () => recovered("nothing_shown"),
  },
  {
    name: "a reset inside the request",
    answers: () => [{ break: { kind: "rst", at: "request", n: 20 } }, {}],
    expect: () => recovered("nothing_shown"),
  },
  {
    name: "a kept connection that was reset",
    answers: () => [{ break: { kind: "rst", at: "next_request" } }, {}],
    expect: () => recovered("nothing_shown", { keeps: [3] }),
    more: { warmUp: true },
  },
  {
    name: "a kept connection that was closed",
    answers: () => [{ break: { kind: "fin", at: "next_request" } }, {}],
    expect: () => recovered("nothing_shown", { keeps: [3] }),
    more: { warmUp: true },
  },
];

const unprovable = (): Expected => asked("side_effects_unprovable", []);

/** Requests of a conversation that the provider stores: a refused one is repeated, and one that may have arrived is not. */
const ofStored: ReadonlyArray<Sequence> = [
  {
    name: "429, then a reset after the head",
    answers: () => [{ status: 429, headers: { "retry-after-ms": "30" } }, afterHead, {}],
    expect: () => ({ ...unprovable(), rules: ["not_processed", "side_effects_unprovable"], requests: 2 }),
  },
  {
    name: "429 twice, then a healthy response",
    answers: () => [
      ...Array.from({ length: 2 }, (): Answer => ({ status: 429, headers: { "retry-after-ms": "30" } })),
      {},
    ],
    expect: () => ({ end: "completed", rules: times(2, "not_processed"), requests: 3, keeps: [3] }),
  },
  {
    name: "a reset inside the request",
    answers: () => [{ break: { kind: "rst", at: "request", n: 20 } }, {}],
    expect: unprovable,
  },
  {
    name: "a kept connection that was reset",
    answers: () => [{ break: { kind: "rst", at: "next_request" } }, {}],
    expect: unprovable,
    more: { warmUp: true },
  },
];
