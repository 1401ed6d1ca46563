/**
 * A continuation of a chat completion is written field by field as one response with what a client has read.
 */
import { assert, describe, it } from "@effect/vitest";
import type { JsonRecord } from "../../../src/domain/Json.ts";
import { protocols } from "../../../src/provider/Protocols.ts";
import { TextGate } from "../../../src/provider/seam/TextGate.ts";
import { decode, encode } from "../Decoded.ts";
import { played as playedIn, shownOf } from "../seam/Spliced.ts";

const protocol = protocols.get("openai-chat");
const played = (play: Parameters<typeof playedIn>[1]) => playedIn(protocol, play);

const names = { id: "one", created: 1, model: "m-1", system_fingerprint: "fp-1" };
const others = { id: "two", created: 2, model: "m-2", system_fingerprint: "fp-2" };
const choice = (delta: unknown, finish_reason: string | null = null): JsonRecord => ({
  index: 0,
  delta,
  finish_reason,
});
const first = (delta: unknown, finish: string | null = null, more: JsonRecord = {}): JsonRecord => ({
  ...names,
  choices: [choice(delta, finish)],
  ...more,
});
const second = (delta: unknown, finish: string | null = null, more: JsonRecord = {}): JsonRecord => ({
  ...others,
  choices: [choice(delta, finish)],
  ...more,
});
const said = [first({ role: "assistant", content: "" }), first({ content: "Hello wor" })];
const call = { index: 0, id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
const usage = (prompt_tokens: number, completion_tokens: number, more: JsonRecord = {}) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
  ...more,
});

/** What has left of some events. */
const shown = (...events: ReadonlyArray<unknown>) =>
  shownOf(
    protocol,
    decode(protocol, [encode(events.map((data) => `data: ${JSON.stringify(data)}\n\n`).join(""))]).parts,
  ).response();

describe("a continuation of a chat completion", () => {
  it("has the names of the response that was read, in every chunk", () => {
    const { events } = played({ first: said, told: [second({ content: "Hello world" }), second({}, "stop")] });
    assert.deepStrictEqual(events, [first({ content: "ld" }), first({}, "stop")]);
  });

  it("has no name that the response did not have", () => {
    const { events } = played({
      first: [{ choices: [choice({ content: "Hello wor" })] }],
      told: [second({ content: "Hello world" }), "[DONE]"],
    });
    assert.deepStrictEqual(events, [{ choices: [choice({ content: "ld" })] }, "[DONE]"]);
  });

  it("goes on under the last name where the server makes one for every chunk", () => {
    const { events } = played({
      first: [
        { ...said[0], id: "" },
        { ...said[1], id: "one-2" },
      ],
      told: [second({ content: "Hello world" }), "[DONE]"],
    });
    assert.deepStrictEqual(events[0], { ...first({ content: "ld" }), id: "one-2" });
  });

  it("says its role once", () => {
    const told = [second({ role: "assistant", content: "Hello world" }), second({}, "stop")];
    assert.deepStrictEqual(played({ first: said, told }).events[0], first({ content: "ld" }));
    const without = played({ first: said.slice(1), told });
    assert.deepStrictEqual(without.events[0], first({ role: "assistant", content: "ld" }));
  });

  it("drops its reasoning in front of the seam, in every spelling, and keeps it behind", () => {
    const spellings = [
      { reasoning_content: "So" },
      { reasoning: "So", reasoning_details: [{ type: "reasoning.text", text: "So", index: 0 }] },
      { reasoning_text: "So", reasoning_opaque: "c2ln" },
      { thinking: "So", thinking_blocks: [{ type: "thinking", thinking: "So", signature: "c2ln" }] },
      { content: [{ type: "thinking", thinking: [{ type: "text", text: "So" }] }] },
    ];
    const { events } = played({
      first: said,
      told: [
        ...spellings.map((delta) => second(delta)),
        second({ reasoning_content: "So", content: "Hello world" }),
        ...spellings.map((delta) => second(delta)),
        second({ content: "!" }),
        second({}, "stop"),
      ],
    });
    const behind = spellings.map((delta) => first(delta));
    assert.deepStrictEqual(events, [first({ content: "ld" }), ...behind, first({ content: "!" }), first({}, "stop")]);
  });

  it("writes nothing in front of the seam, and no chunk that has nothing left", () => {
    const { characters, events } = played({
      first: said,
      told: [
        second({ content: "Hello" }),
        { ...others, choices: [], prompt_filter_results: [] },
        second({}),
        second({ content: " world" }),
        second({ content: " \n" }),
        second({ content: "!" }),
        second({}, "stop"),
      ],
    });
    assert.deepStrictEqual(events, [first({ content: "ld" }), first({ content: " \n!" }), first({}, "stop")]);
    assert.strictEqual(characters, "ld \n!".length);
  });

  it("ends in the chunk of its last text", () => {
    const { events } = played({
      first: said,
      told: [second({ content: "Hello" }), second({ content: " world\n" }, "stop"), "[DONE]"],
    });
    assert.deepStrictEqual(events, [first({ content: "ld\n" }, "stop"), "[DONE]"]);
  });

  it("releases held text in front of a call, in one chunk with it", () => {
    const { events } = played({
      first: said,
      told: [
        second({ content: "Hello world\n\n" }),
        second({ content: null, tool_calls: [call] }),
        second({}, "tool_calls"),
      ],
    });
    assert.deepStrictEqual(events, [
      first({ content: "ld" }),
      first({ content: "\n\n", tool_calls: [call] }),
      first({}, "tool_calls"),
    ]);
  });

  it("says text and calls of one chunk in their order", () => {
    const { events } = played({
      first: said,
      told: [second({ content: "Hello world \n", tool_calls: [call] }), second({}, "tool_calls"), "[DONE]"],
    });
    assert.deepStrictEqual(events[0], first({ content: "ld \n", tool_calls: [call] }));
  });

  it("may end, or call, exactly where the shown text ends", () => {
    const told = second({ content: "Hello wor" });
    assert.deepStrictEqual(played({ first: said, told: [told, second({}, "stop"), "[DONE]"] }).events, [
      first({}, "stop"),
      "[DONE]",
    ]);
    assert.deepStrictEqual(
      played({ first: said, told: [told, second({ tool_calls: [call] }), second({}, "tool_calls")] }).events,
      [first({ tool_calls: [call] }), first({}, "tool_calls")],
    );
  });

  it("loses no usage where its last bytes alone prove the seam", () => {
    const counts = usage(9, 8);
    const { events } = played({
      first: said.map(({ choices }) => ({ choices })),
      told: [{ choices: [{ index: 0, delta: { content: "Hello wor" } }] }, { choices: [], usage: counts }, "[DONE]"],
    });
    assert.deepStrictEqual(events, [{ choices: [], usage: usage(9, 8) }, "[DONE]"]);
  });

  it("is not joined where something that is no text stands in front of the seam", () => {
    const before: ReadonlyArray<unknown> = [
      { tool_calls: [call] },
      { function_call: { name: "look", arguments: "" } },
      { refusal: "I cannot" },
      { content: [{ type: "refusal", refusal: "I cannot" }] },
      { images: [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0=" } }] },
      { content: [{ type: "image_url", image_url: { url: "x" } }] },
      { executed_tools: [{ index: 0, type: "search", arguments: "{}" }] },
      { audio: { id: "a", transcript: "Hello world" } },
    ];
    for (const delta of before)
      for (const told of [[second(delta)], [second({ content: "Hello" }), second(delta)]]) {
        const { events, fault } = played({ first: said, told });
        assert.deepStrictEqual([events, fault], [[], "not_text"], JSON.stringify(delta));
      }
  });

  it("counts its calls behind those that are out", () => {
    const { events } = played({
      first: [
        ...said,
        first({ tool_calls: [{ ...call, index: 1 }], executed_tools: [{ index: 0, type: "search", output: "x" }] }),
      ],
      anchor: "Hello wor",
      told: [
        second({ content: "Hello wor" }),
        second({ tool_calls: [call, { ...call, index: "1" }] }),
        second({ executed_tools: [{ index: 0, type: "visit", output: "y" }] }),
        second({}, "tool_calls"),
      ],
    });
    assert.deepStrictEqual(events, [
      first({
        tool_calls: [
          { ...call, index: 2 },
          { ...call, index: 3 },
        ],
      }),
      first({ executed_tools: [{ index: 1, type: "visit", output: "y" }] }),
      first({}, "tool_calls"),
    ]);
  });

  it("passes a refusal behind the seam, after which nothing goes on", () => {
    const { events, splice } = played({
      first: said,
      told: [second({ content: "Hello world\n" }), second({ refusal: "No" }), second({}, "stop")],
    });
    assert.deepStrictEqual(events, [
      first({ content: "ld" }),
      first({ refusal: "No", content: "\n" }),
      first({}, "stop"),
    ]);
    assert.strictEqual(splice.response().refusal, "refusal_shown");
  });

  it("is not joined where it has another choice, or says audio", () => {
    const other = { ...others, choices: [{ index: 1, delta: { content: "Hello wor" }, finish_reason: null }] };
    assert.strictEqual(played({ first: said, told: [other] }).fault, "unwritable");
    const audio = played({
      first: said,
      told: [second({ content: "Hello world" }), second({ audio: { data: "UklG" } })],
    });
    assert.strictEqual(audio.fault, "unwritable");
  });

  it("says no log probabilities", () => {
    const logprobs = { content: [{ token: "Hello", logprob: -1 }] };
    const told = [{ ...others, choices: [{ ...choice({ content: "Hello world" }), logprobs }] }, second({}, "stop")];
    const { events } = played({ first: said, told });
    assert.deepStrictEqual(events[0], { ...names, choices: [{ ...choice({ content: "ld" }), logprobs: null }] });
  });

  it("lets a finish wait that comes with every chunk, and takes off the ones that text followed", () => {
    const { events } = played({
      first: [first({ content: "Hello wor" }, "stop")],
      told: [
        second({ content: "Hello" }, "stop"),
        second({ content: " world\n" }, "stop"),
        second({ content: "!" }, "stop"),
        { ...others, choices: [], usage: usage(5, 6) },
        "[DONE]",
      ],
    });
    assert.deepStrictEqual(events, [
      first({ content: "ld" }),
      first({ content: "\n!" }),
      first({}, "stop"),
      { ...names, choices: [], usage: usage(5, 3 + 3) },
      "[DONE]",
    ]);
  });

  it("moves sources to where their text stands, and says none of the repeated text again", () => {
    const source = (start_index: number, end_index: number) => ({
      type: "url_citation",
      url_citation: { url: "https://a.invalid", start_index, end_index },
    });
    const { events } = played({
      first: [first({ content: "Look: Hello wor" })],
      anchor: "Hello wor",
      told: [
        second({ content: "Hello world" }),
        second({ annotations: [source(0, 5), source(9, 11)] }),
        second({}, "stop"),
      ],
    });
    assert.deepStrictEqual(events[1], first({ annotations: [source(15, 17)] }));
  });

  it("goes on in content lists and in bare texts", () => {
    const list = played({
      first: [first({ content: [{ type: "text", text: "Hello wor" }] })],
      told: [
        second({
          content: [
            { type: "text", text: "Hello " },
            { type: "reference", reference_ids: [1] },
          ],
        }),
        second({ content: [{ type: "text", text: "world\n" }, { type: "reference", reference_ids: [1] }, "!"] }),
        second({}, "stop"),
      ],
    });
    assert.deepStrictEqual(list.events, [
      first({ content: [{ type: "text", text: "ld" }, { type: "reference", reference_ids: [1] }, "\n!"] }),
      first({}, "stop"),
    ]);
    const bare = played({
      first: [{ choices: [{ index: 0, text: "Hello wor", finish_reason: null }] }],
      told: [{ choices: [{ index: 0, text: "Hello world\n", finish_reason: null }] }, "[DONE]"],
    });
    assert.deepStrictEqual(bare.events, [
      { choices: [{ index: 0, text: "ld", finish_reason: null }] },
      { choices: [{ index: 0, text: "\n", finish_reason: null }] },
      "[DONE]",
    ]);
  });

  it("says no whole message again, and makes deltas of one that comes alone", () => {
    const message = { role: "assistant", content: "Hello world" };
    const whole = (finish: string | null) => ({ ...others, choices: [{ index: 0, message, finish_reason: finish }] });
    const repeated = played({ first: said, told: [second({ content: "Hello world" }), whole("stop"), "[DONE]"] });
    assert.deepStrictEqual(repeated.events, [first({ content: "ld" }), first({}, "stop"), "[DONE]"]);
    const alone = played({ first: said, told: [whole("stop"), "[DONE]"] });
    assert.deepStrictEqual(alone.events, [first({ content: "ld" }), first({}, "stop"), "[DONE]"]);
  });

  it("leaves no trace of what was written and never left", () => {
    const { parts } = decode(protocol, [encode(said.map((data) => `data: ${JSON.stringify(data)}\n\n`).join(""))]);
    const splice = shownOf(protocol, parts);
    const before = splice.response();
    const told = [second({ content: "Hello world" }), second({ tool_calls: [call] }), second({}, "tool_calls")];
    const once = played({ first: said, told });
    const step = (text = "") => ({ type: "joined", text }) as const;
    const gate = new TextGate({ cut: 0, take: step, close: step, stop: step });
    const attempt = splice.startContinuation(gate);
    for (const part of decode(protocol, [encode(told.map((data) => `data: ${JSON.stringify(data)}\n\n`).join(""))])
      .parts)
      attempt.take(part);
    assert.deepStrictEqual(splice.response(), before);
    assert.deepStrictEqual(played({ first: said, told }).events, once.events);
  });
});

describe("token counts of a continuation", () => {
  const end = (counts: JsonRecord) => [
    second({ content: "Hello world" }),
    second({}, "stop"),
    { ...others, choices: [], usage: counts },
    "[DONE]",
  ];
  const of = (firstTold: ReadonlyArray<unknown>, counts: JsonRecord): unknown =>
    (played({ first: firstTold, told: end(counts) }).events[2] as JsonRecord).usage; // the third event is the usage chunk

  it("are those of one response: the input of the first, both outputs, less what was said twice", () => {
    // "Hello wor" is three tokens by estimate.
    assert.deepStrictEqual(
      of([first({ content: "Hello wor" }, null, { usage: usage(10, 20) })], usage(50, 7)),
      usage(10, 24),
    );
  });

  it("are estimated where the first told none", () => {
    assert.deepStrictEqual(
      of([first({ reasoning_content: "x".repeat(40) }), ...said], usage(50, 7)),
      usage(50, 10 + 3 + 7 - 3),
    );
  });

  it("add up in their details, and keep what was said of the input", () => {
    const told = usage(10, 20, {
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 11 },
    });
    const counts = usage(50, 7, {
      prompt_tokens_details: { cached_tokens: 40, audio_tokens: 1 },
      completion_tokens_details: { reasoning_tokens: 2, audio_tokens: 0 },
    });
    assert.deepStrictEqual(
      of([first({ content: "Hello wor" }, null, { usage: told })], counts),
      usage(10, 24, {
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 13, audio_tokens: 0 },
      }),
    );
  });

  it("are added up under x_groq, too", () => {
    const told = [second({ content: "Hello world" }), second({}, "stop", { x_groq: { id: "r", usage: usage(50, 7) } })];
    const { events } = played({ first: [first({ content: "Hello wor" }, null, { usage: usage(10, 20) })], told });
    assert.deepStrictEqual(events[1], first({}, "stop", { x_groq: { id: "r", usage: usage(10, 24) } }));
  });

  it("are added up where the first told them under x_groq", () => {
    const told = first({ content: "Hello wor" }, null, { usage: null, x_groq: { id: "r", usage: usage(10, 20) } });
    assert.deepStrictEqual(of([told], usage(50, 7)), usage(10, 24));
  });
});

describe("what has left of a chat completion", () => {
  const refusalOf = (...events: ReadonlyArray<unknown>) => shown(...events).refusal;

  it("is its text in all spellings, and no reasoning ends it", () => {
    const all = shown(
      ...said,
      first({ reasoning_content: "Hm" }),
      first({ content: [{ type: "text", text: "ld" }, "!"] }),
      {
        ...names,
        choices: [{ index: 0, message: { role: "assistant", content: "Hello world!" }, finish_reason: null }],
      },
    );
    assert.deepStrictEqual(all, { run: "Hello world!", characters: 12, refusal: undefined });
  });

  it("begins anew behind a tool of the provider's, once that has its result", () => {
    const open = first({ executed_tools: [{ index: 0, type: "search", arguments: "{}" }] });
    const settled = first({ executed_tools: [{ index: 0, type: "search", arguments: "{}", output: "x" }] });
    assert.strictEqual(refusalOf(...said, open), "not_text_last");
    assert.strictEqual(refusalOf(...said, open, first({ content: "So" })), "not_text_last");
    assert.strictEqual(refusalOf(...said, open, settled), "not_text_last");
    assert.deepStrictEqual(shown(...said, open, settled, first({ content: "So" })), {
      run: "So",
      characters: 11,
      refusal: undefined,
    });
  });

  it("says why it cannot go on", () => {
    assert.strictEqual(refusalOf(...said, first({ tool_calls: [call] }), first({ content: "So" })), "not_text_last");
    assert.strictEqual(refusalOf(...said, first({ content: "So", tool_calls: [call] })), "not_text_last");
    assert.strictEqual(refusalOf(...said, first({ function_call: { name: "look" } })), "not_text_last");
    assert.strictEqual(refusalOf(...said, first({ images: [{ type: "image_url" }] })), "not_text_last");
    assert.strictEqual(refusalOf(...said, first({ refusal: "No" })), "refusal_shown");
    const other = { ...names, choices: [{ index: 1, delta: { content: "Hi" }, finish_reason: null }] };
    assert.strictEqual(refusalOf(...said, other), "several_choices");
    assert.strictEqual(refusalOf(...said, first({ content: "x".repeat(64 * 1024) })), "too_long");
    assert.isUndefined(refusalOf(...said, first({ refusal: "", tool_calls: null, function_call: null })));
    assert.isUndefined(refusalOf(...said, first({ tool_calls: [{ index: 0, function: { arguments: "" } }] })));
  });
});
