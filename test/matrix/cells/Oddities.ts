/**
 * Sends bytes that no protocol writes, and odd but legal answers: damage, and healthy ends of every kind.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { samples } from "../../samples/index.ts";
import {
  type Answer,
  type Answers,
  asked,
  bytes,
  type Cell,
  type Content,
  type Expected,
  event,
  framed,
  type Mode,
  modes,
  none,
  recovered,
  sseProtocols,
  stopped,
  whole,
} from "../Cell.ts";
import { brokenCalls } from "./BrokenCalls.ts";
import { talk } from "./Healthy.ts";
import type { Oddity } from "./Oddity.ts";

export const oddities = (): ReadonlyArray<Cell> =>
  [...damage, ...legal, ...endings, ...brokenCalls].flatMap(({ answers, expect, more, name, only }) =>
    (only ?? sseProtocols).flatMap((protocol) =>
      modes.map((mode) => ({
        name: `${protocol}/${name}/${mode}`,
        group: name,
        protocol,
        mode,
        tools: none,
        answers: () => answers(protocol),
        expect: expect(mode, protocol),
        ...more,
      })),
    ),
  );

/** The outcome of an answer that breaks after the caller has seen its text. */
const afterText = (mode: Mode): Expected =>
  mode === "on_complete" ? recovered("nothing_shown") : asked("text_shown", [1]);
const afterThoughts = (mode: Mode): Expected =>
  mode === "live"
    ? recovered("only_reasoning_shown")
    : mode === "parts"
      ? asked("text_shown", [1])
      : recovered("nothing_shown");
const first = (): Expected => recovered("nothing_shown");

const then = (content: Content, more: Partial<Answer> = {}): Answers => [
  { content, finish: "none", delay_ms: 25, ...more },
  {},
];

const garbage = bytes('data: {"choices":[{"del\n\n');
const binary = bytes(new Uint8Array(512).map((_, index) => (index * 37) % 256));
/** A line of 17 MiB, more than one event may contain. */
const oversize = (): Content[number] =>
  bytes(`data: {"type":"unknown","filler":"${"x".repeat(17 * 1024 * 1024)}"}\n\n`);

const damage: ReadonlyArray<Oddity> = [
  { name: "garbage as the first event", answers: () => then([garbage]), expect: first },
  { name: "garbage after reasoning", answers: () => then([{ reasoning: 2 }, garbage]), expect: afterThoughts },
  { name: "garbage after text", answers: () => then([{ text: 2 }, garbage]), expect: afterText },
  { name: "binary bytes instead of a stream", answers: () => then([binary]), expect: first },
  {
    name: "an HTML page as a stream",
    answers: () => [{ raw: "<html><body>Sign in</body></html>" }, {}],
    expect: first,
  },
  { name: "an empty body", answers: () => [{ raw: "" }, {}], expect: first },
  { name: "only blank lines", answers: () => [{ raw: "\n\n\n\n" }, {}], expect: first },
  {
    name: "an oversized event as the first",
    answers: () => then([oversize()]),
    expect: () => stopped("not_retryable"),
    more: { heavy: true },
  },
  {
    name: "an oversized event after text",
    answers: () => then([{ text: 2 }, oversize()]),
    expect: (mode) => stopped("not_retryable", mode === "on_complete" ? [] : [1]),
    more: { heavy: true },
  },
  {
    name: "a second start after content",
    only: ["openai-responses", "anthropic-messages"],
    answers: (protocol) => then([{ text: 2 }, framed(protocol, samples[protocol].start(9))]),
    expect: afterText,
  },
  { name: "no finish, clean end", answers: () => then(talk), expect: afterText },
  {
    name: "only [DONE]",
    only: ["openai-chat"],
    answers: () => [{ raw: "data: [DONE]\n\n" }, {}],
    expect: first,
  },
  {
    name: "text, then [DONE] without a finish",
    only: ["openai-chat"],
    answers: () => then([{ text: 2 }, bytes("data: [DONE]\n\n")]),
    expect: afterText,
  },
];

const one = (content: Content, more: Partial<Answer> = {}): Answers => [{ content, ...more }];
const isWhole = (): Expected => whole;

const legal: ReadonlyArray<Oddity> = [
  {
    name: "a second start before content",
    answers: (protocol) => one([framed(protocol, samples[protocol].start(9)), ...talk]),
    expect: isWhole,
  },
  {
    name: "an unknown event",
    answers: () => one([event({ type: "novelty" }, "novelty"), ...talk]),
    expect: isWhole,
  },
  {
    name: "comments between the events",
    answers: () => one([{ ping: 2 }, { reasoning: 2 }, { ping: 2 }, { text: 3 }, { ping: 1 }]),
    expect: isWhole,
  },
  { name: "three bytes a write", answers: () => one(talk, { write_bytes: 3 }), expect: isWhole },
  { name: "everything in one write", answers: () => one(talk, { one_write: true }), expect: isWhole },
  { name: "no usage", answers: () => one(talk, { usage: false }), expect: isWhole },
  { name: "a body that ends with its connection", answers: () => one(talk, { framing: "eof" }), expect: isWhole },
  {
    name: "half a character in the text",
    answers: (protocol) => one([halved(protocol), { text: 2 }]),
    expect: isWhole,
  },
];

/** A text delta whose last character the server itself cut in half: a bad byte in a whole frame. */
const halved = (protocol: ProtocolId): Content[number] => {
  const { delta, frame } = samples[protocol];
  const [before = "", after = ""] = frame(delta("half \u0000")).split("\\u0000");
  return bytes(Buffer.concat([Buffer.from(before), Buffer.from([0xc2]), Buffer.from(after)]));
};

const nothingSaid = (): Expected => ({ ...whole, keeps: [] });

const endings: ReadonlyArray<Oddity> = [
  { name: "an empty completion", answers: () => one([]), expect: nothingSaid },
  {
    name: "an empty completion that counts as a failure",
    answers: () => [{ content: [] }, {}],
    // The finish is held until an earlier event is ruled out, so a caller that cannot discard was handed nothing. Text that is to be filled
    // in may be empty, so an empty completion is never a failure.
    expect: (_, protocol) => (protocol === "openai-completions" ? nothingSaid() : recovered("nothing_shown")),
    more: { emptyIsFailure: true },
  },
  { name: "a refusal", answers: () => one([{ refusal: 3 }]), expect: isWhole },
  { name: "a finish by length", answers: () => one(talk, { finish: "length" }), expect: isWhole },
  { name: "a finish by content filter", answers: () => one(talk, { finish: "content_filter" }), expect: isWhole },
  {
    name: "a content filter before any text",
    answers: () => one([], { finish: "content_filter" }),
    expect: nothingSaid,
  },
  {
    name: "pause_turn",
    only: ["anthropic-messages"],
    answers: () =>
      one(
        [
          ...talk,
          event(
            { type: "message_delta", delta: { stop_reason: "pause_turn" }, usage: { output_tokens: 3 } },
            "message_delta",
          ),
          event({ type: "message_stop" }, "message_stop"),
        ],
        { finish: "none" },
      ),
    expect: isWhole,
    more: { rawMarker: true },
  },
  {
    name: "a blocked prompt",
    only: ["google-gemini"],
    answers: () => [{ raw: `data: ${JSON.stringify({ promptFeedback: { blockReason: "SAFETY" } })}\n\n` }],
    expect: nothingSaid,
    more: { rawMarker: true },
  },
  {
    name: "two choices, both finished",
    only: ["openai-chat", "google-gemini"],
    answers: (protocol) => one([second(protocol, "other", false), { text: 2 }, second(protocol, "one", true)]),
    expect: isWhole,
    more: { choices: 2 },
  },
  {
    name: "two choices, one still open at the end",
    only: ["google-gemini"],
    answers: (protocol) => [
      { content: [second(protocol, "other", false), { text: 2 }], delay_ms: 25 },
      { content: [second(protocol, "other", true), { text: 2 }] },
    ],
    expect: afterText,
    more: { choices: 2, rawMarker: false },
  },
  {
    // LiteLLM finishes only the first choice, and [DONE] finishes the other.
    name: "two choices, one finish for both",
    only: ["openai-chat"],
    answers: (protocol) => [{ content: [second(protocol, "other", false), { text: 2 }], delay_ms: 25 }],
    expect: () => whole,
    more: { choices: 2 },
  },
  {
    name: "two choices, one never started",
    only: ["openai-chat", "google-gemini"],
    answers: (protocol) => [
      { content: [{ text: 2 }], delay_ms: 25 },
      { content: [second(protocol, "other", true), { text: 2 }] },
    ],
    // In Chat [DONE] says that no other choice will come.
    expect: (mode, protocol) => (protocol === "openai-chat" ? whole : afterText(mode)),
    more: { choices: 2 },
  },
];

/** A delta of the second choice, with its finish if `finished`. */
const second = (protocol: ProtocolId, text: string, finished: boolean): Content[number] =>
  protocol === "google-gemini"
    ? event({
        candidates: [
          { content: { parts: [{ text }], role: "model" }, index: 1, ...(finished ? { finishReason: "STOP" } : {}) },
        ],
      })
    : event({
        id: "x",
        object: "chat.completion.chunk",
        choices: [{ index: 1, delta: { content: text }, finish_reason: finished ? "stop" : null }],
      });
