import { assert, describe, it } from "@effect/vitest";
import type { Observation } from "../../../src/domain/Observation.ts";
import { bedrockConverse, bedrockInvoke } from "../../../src/provider/bedrock/Protocol.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { writeEvent } from "../../../src/provider/stream/EventStream.ts";
import { Answers } from "../../../src/testing/index.ts";
import { characters, endOf, readyInputs } from "../Decoded.ts";

type Event = readonly [name: string, data: object];

const bytesOf = (events: ReadonlyArray<Event>): Uint8Array =>
  Buffer.concat(events.map(([name, data]) => writeEvent(name, data)));

/** An event of Anthropic Messages, as invoke wraps it. */
const chunk = (data: object): Event => ["chunk", { bytes: Buffer.from(JSON.stringify(data)).toString("base64") }];

const decode = (protocol: typeof bedrockConverse | typeof bedrockInvoke, events: ReadonlyArray<Event>) => {
  const decoder = Decoder.make<unknown, string>(protocol);
  const parts = [...decoder.push(bytesOf(events))];
  const last = decoder.end();
  parts.push(...last.parts);
  return { parts, end: endOf(last.end), failure: decoder.failure };
};

const start: Event = ["messageStart", { role: "assistant" }];
const text = (said: string, index = 0): Event => [
  "contentBlockDelta",
  { contentBlockIndex: index, delta: { text: said }, p: "abcd" },
];
const call: Event = [
  "contentBlockStart",
  { contentBlockIndex: 1, start: { toolUse: { toolUseId: "tooluse_1", name: "bash" } } },
];
const input = (piece: string): Event => [
  "contentBlockDelta",
  { contentBlockIndex: 1, delta: { toolUse: { input: piece } } },
];
const close = (contentBlockIndex: number): Event => ["contentBlockStop", { contentBlockIndex }];
const stop = (stopReason: string): Event => ["messageStop", { stopReason }];
const usage: Event = [
  "metadata",
  { usage: { inputTokens: 5, outputTokens: 7, cacheReadInputTokens: 10, cacheWriteInputTokens: 1 }, metrics: {} },
];

describe("what one event of Converse proves", () => {
  const rows: ReadonlyArray<readonly [string, Event, Partial<Observation>]> = [
    ["messageStart is lifecycle", start, { progress: "started", shows: "nothing" }],
    ["text shows it, without a start", text("Hi"), { progress: "output", shows: "text", characters: 2 }],
    [
      "a thought is reasoning",
      ["contentBlockDelta", { contentBlockIndex: 0, delta: { reasoningContent: { text: "Hm." } } }],
      { progress: "reasoning", shows: "reasoning", characters: 3 },
    ],
    [
      "a signature shows nothing",
      ["contentBlockDelta", { contentBlockIndex: 0, delta: { reasoningContent: { signature: "c2ln" } } }],
      { progress: "reasoning", shows: "nothing" },
    ],
    [
      "a redacted thought is reasoning",
      ["contentBlockDelta", { contentBlockIndex: 0, delta: { reasoningContent: { redactedContent: "eA==" } } }],
      { progress: "reasoning", shows: "reasoning" },
    ],
    [
      "an image is visible",
      ["contentBlockStart", { contentBlockIndex: 0, start: { image: { format: "png" } } }],
      { progress: "output", shows: "text" },
    ],
    [
      "a citation is output",
      ["contentBlockDelta", { contentBlockIndex: 0, delta: { citation: { title: "x" } } }],
      { progress: "output", shows: "nothing" },
    ],
    ["the end of a block is lifecycle", close(0), { progress: "started", shows: "nothing" }],
    ["messageStop is the marker", stop("end_turn"), { terminal: true, finish: "end_turn", closes: "later" }],
    [
      "metadata is the last event",
      usage,
      { closes: "now", quiet: true, usage: { input_tokens: 16, output_tokens: 7 } },
    ],
    [
      "an unknown event shows nothing",
      ["novelty", { a: 1 }],
      { progress: "started", shows: "nothing", terminal: false },
    ],
    ["our own no-op is a keep-alive", ["ping", {}], { keep_alive: true, quiet: true }],
  ];
  for (const [name, event, expected] of rows)
    it(name, () => assert.deepInclude(decode(bedrockConverse, [event]).parts[0]?.observation, expected));

  it("keeps the original event and its JSON", () => {
    const [part] = decode(bedrockConverse, [text("Hi")]).parts;
    assert.deepInclude(part, { protocol: "bedrock-converse", json: text("Hi")[1] });
    assert.strictEqual(part?.event.event, "contentBlockDelta");
    assert.deepInclude(part?.content[0], { kind: "text", text: "Hi" });
  });
});

describe("a response of Converse", () => {
  it("is complete after messageStop, with or without metadata", () => {
    assert.strictEqual(decode(bedrockConverse, [start, text("Hi"), close(0), stop("end_turn"), usage]).end, "complete");
    assert.strictEqual(decode(bedrockConverse, [start, text("Hi"), close(0), stop("end_turn")]).end, "complete");
    assert.strictEqual(decode(bedrockConverse, [start, text("Hi"), close(0)]).end, "truncated");
    assert.strictEqual(decode(bedrockConverse, [start, text("Hi"), usage]).end, "truncated");
    assert.strictEqual(decode(bedrockConverse, []).end, "truncated");
  });

  it("hands over a call whose arguments are whole, and no other", () => {
    const whole = decode(bedrockConverse, [start, call, input('{"cmd":'), input('"ls"}'), close(1), stop("tool_use")]);
    assert.deepStrictEqual([whole.end, readyInputs(whole.parts)], ["complete", [{ cmd: "ls" }]]);
    const cut = decode(bedrockConverse, [start, call, input('{"cmd":'), close(1), stop("tool_use")]);
    assert.deepStrictEqual([cut.end, readyInputs(cut.parts)], ["invalid_tool_input", []]);
    const limited = decode(bedrockConverse, [start, call, input('{"cmd":'), close(1), stop("max_tokens")]);
    assert.deepStrictEqual([limited.end, readyInputs(limited.parts)], ["complete", []]);
  });

  it("counts a call that the provider runs, and its result", () => {
    const hosted = { toolUse: { toolUseId: "t", name: "nova_grounding", type: "server_tool_use" } };
    const { end, parts } = decode(bedrockConverse, [
      start,
      ["contentBlockStart", { contentBlockIndex: 0, start: hosted }],
      close(0),
      ["contentBlockStart", { contentBlockIndex: 1, start: { toolResult: { toolUseId: "t", status: "success" } } }],
      close(1),
      stop("end_turn"),
    ]);
    assert.strictEqual(end, "complete");
    assert.deepStrictEqual(
      parts.flatMap(({ observation }) => observation.calls.map(({ executor, phase, tool }) => [tool, executor, phase])),
      [
        ["nova_grounding", "provider", "input_started"],
        ["nova_grounding", "provider", "input_complete"],
        ["nova_grounding", "provider", "settled"],
      ],
    );
  });

  it("is damaged by a second beginning after text, and by payloads that are no JSON", () => {
    const { end, failure } = decode(bedrockConverse, [start, text("Hi"), start, text("Hi"), stop("end_turn")]);
    assert.deepStrictEqual([end, failure], ["protocol", { kind: "protocol", reason: "damaged_frame" }]);
    assert.strictEqual(decode(bedrockConverse, [start, start, text("Hi"), stop("end_turn")]).end, "complete");
    const decoder = Decoder.make(bedrockConverse);
    decoder.push(writeEvent("contentBlockDelta", { toJSON: () => undefined }));
    assert.isUndefined(decoder.failure, "an empty payload");
  });

  it("fails where the model's output is malformed", () => {
    assert.strictEqual(decode(bedrockConverse, [start, stop("malformed_tool_use")]).end, "invalid_tool_input");
    assert.strictEqual(decode(bedrockConverse, [start, stop("malformed_model_output")]).end, "server_error");
  });
});

describe("a response of invoke", () => {
  const events = [
    chunk({ type: "message_start", message: { usage: { input_tokens: 3 } } }),
    chunk({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    chunk({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } }),
    chunk({ type: "content_block_stop", index: 0 }),
    chunk({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }),
    chunk({ type: "message_stop", "amazon-bedrock-invocationMetrics": { inputTokenCount: 3 } }),
  ];

  it("is the response of Anthropic Messages inside it", () => {
    const { end, parts } = decode(bedrockInvoke, events);
    assert.strictEqual(end, "complete");
    assert.strictEqual(characters(parts, "text"), 2);
    assert.deepInclude(parts[4]?.observation, { terminal: true, finish: "end_turn", closes: "required" });
    assert.deepInclude(parts[5]?.observation, { closes: "now" });
    assert.deepInclude(parts[2], { protocol: "bedrock-invoke" });
    assert.deepInclude(parts[2]?.json, { type: "content_block_delta" });
  });

  it("is cut without its stop reason, and damaged by a payload that is no base64", () => {
    assert.strictEqual(decode(bedrockInvoke, events.slice(0, 4)).end, "truncated");
    for (const bytes of ["", "***", undefined])
      assert.deepStrictEqual(
        decode(bedrockInvoke, [["chunk", { bytes }]]).failure,
        { kind: "protocol", reason: "damaged_frame" },
        bytes,
      );
    const error = chunk({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
    assert.strictEqual(decode(bedrockInvoke, [...events.slice(0, 2), error]).end, "overloaded");
  });
});

describe("an exception in a stream of Bedrock", () => {
  const rows = [
    ["throttlingException", "rate_limited"],
    ["serviceUnavailableException", "overloaded"],
    ["internalServerException", "server_error"],
    ["modelStreamErrorException", "server_error"],
    ["modelTimeoutException", "server_error"],
    ["validationException", "rejected"],
    ["accessDeniedException", "rejected"],
    ["noveltyException", "server_error"],
  ] as const;
  for (const protocol of [bedrockConverse, bedrockInvoke])
    for (const [name, kind] of rows)
      it(`${protocol.id}: ${name} is ${kind}, and nothing after it completes the response`, () => {
        const last =
          protocol === bedrockConverse
            ? stop("end_turn")
            : chunk({ type: "message_delta", delta: { stop_reason: "end_turn" } });
        const { end, failure, parts } = decode(protocol, [[name, { message: "no" }], last]);
        assert.strictEqual(end, kind);
        assert.deepInclude(failure, { in_band: true });
        assert.isFalse(parts.some(({ observation }) => observation.terminal));
      });

  it("classifies a prompt that is too long", () => {
    const { failure } = decode(bedrockConverse, [
      ["validationException", { message: "Input is too long for requested model." }],
    ]);
    assert.deepInclude(failure, { kind: "rejected", reason: "context_overflow" });
  });
});

describe("the fault provider's Bedrock", () => {
  for (const protocol of [bedrockConverse, bedrockInvoke])
    it(`${protocol.id}: decodes as it was scripted`, () => {
      const decoder = Decoder.make<unknown, string>(protocol);
      const frames = Answers.render(protocol.id as "bedrock-converse", 3, {
        content: [{ reasoning: 2 }, { text: 3 }, { ping: 1 }, { tool: "bash", input: { cmd: "ls" } }],
      });
      const parts = frames.flatMap(({ frame }) => decoder.push(Uint8Array.from(Buffer.from(frame))));
      assert.strictEqual(endOf(decoder.end().end), "complete");
      assert.strictEqual(characters(parts, "text"), 3 * "r3.0·".length);
      assert.strictEqual(characters(parts, "reasoning"), 2 * "r3.0·".length);
      assert.deepStrictEqual(readyInputs(parts), [{ serial: "r3.t1", cmd: "ls", end: "r3.t1·" }]);
    });
});
