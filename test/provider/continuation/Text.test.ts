/**
 * What counts as shown, what a continuation knows and what an adapter hands on is one truth: every spelling of a text is in
 * all of them, at every cut.
 */
import { readdirSync, readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Result } from "effect";
import { PartWriter } from "../../../src/adapters/provider-model/PartWriter.ts";
import * as Json from "../../../src/domain/Json.ts";
import * as Continuation from "../../../src/provider/Continuation.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import type { Part } from "../../../src/provider/stream/Protocol.ts";
import { protocols } from "../../client/Protocols.ts";
import { bytesOf, recordings } from "../../Recordings.ts";
import { seeded } from "../../Seeded.ts";
import { byProtocol, samples, talkIds } from "../../samples/index.ts";
import type { Event } from "../../samples/Sample.ts";
import { characters, decode, encode } from "../Decoded.ts";

/** The text of all items, as a builder would send it back. */
const textIn = ({ items, protocol }: Continuation.Received): string =>
  items.map((item) => textOf(protocol, item)).join("");

const textOf = (protocol: ProtocolId, { json, type }: Continuation.ReceivedItem): string => {
  if (type !== "text" || json.thought === true) return "";
  if (protocol !== "openai-responses") return Json.string(json.text);
  const fields = Object.entries(json).filter(([name]) => /^(?:output_text|refusal) \d+$/.test(name));
  return fields.map(([, text]) => Json.string(text)).join("");
};

const untold = ({ items }: Continuation.Received): number => items.filter(({ json }) => json.untold === true).length;

const checkText = (protocol: ProtocolId, parts: ReadonlyArray<Part>, note: string): void => {
  for (const [index, part] of parts.entries()) {
    const { observation } = part;
    const expected = observation.shows === "text" ? observation.characters : 0;
    assert.strictEqual(Continuation.textOf(part).length, expected, `${note}, part ${index}`);
  }
  for (let end = 0; end <= parts.length; end += 1) {
    const received = Continuation.collect(protocol, parts.slice(0, end));
    const shown = parts.slice(0, end).map(Continuation.textOf).join("");
    assert.strictEqual(shown.length, characters(parts.slice(0, end), "text"), `${note}, cut at ${end}`);
    assert.strictEqual(textIn(received), shown, `${note}, cut at ${end}`);
    const kept = Math.floor(end / 2);
    const discarded = Continuation.collect(protocol, parts.slice(0, end), { keepThrough: kept });
    assert.strictEqual(textIn(discarded), textIn(Continuation.collect(protocol, parts.slice(0, kept))), note);
  }
};

/** The adapter's text deltas, of the first choice alone. */
const checkWritten = (protocol: ProtocolId, parts: ReadonlyArray<Part>): void => {
  const writer = new PartWriter(protocols[protocol], "id");
  const written = parts.flatMap((part) => writer.take(part));
  const text = written.map((part) => (part.type === "text-delta" ? part.delta : "")).join("");
  const said = parts.flatMap((part) => part.content.filter(({ choice, kind }) => kind === "text" && choice === 0));
  assert.strictEqual(text, said.map((content) => content.text).join(""));
};

const cuts = 60;

/** Bytes cut anywhere: what was decoded of them is counted, collected and written alike. */
const checkCuts = (protocol: ProtocolId, bytes: Uint8Array, note: string): void => {
  const random = seeded(bytes.length);
  for (let round = 0; round < cuts; round += 1) {
    const cut = Math.floor(random() * (bytes.length + 1));
    const { parts } = decode(protocols[protocol], [bytes.subarray(0, cut)]);
    const shown = parts.map(Continuation.textOf).join("");
    assert.strictEqual(shown.length, characters(parts, "text"), `${note}, cut at byte ${cut}`);
    assert.strictEqual(textIn(Continuation.collect(protocol, parts)), shown, `${note}, cut at byte ${cut}`);
    checkWritten(protocol, parts);
  }
};

describe("text that was shown is text that a continuation knows", () => {
  for (const protocol of talkIds) {
    const folder = new URL(`../../fixtures/streams/${protocol}/`, import.meta.url);
    for (const file of readdirSync(folder)) {
      it(`${protocol} ${file}, at every cut`, () => {
        const bytes = new Uint8Array(readFileSync(new URL(file, folder)));
        checkText(protocol, decode(protocols[protocol], [bytes]).parts, file);
        checkCuts(protocol, bytes, file);
      });
    }
  }

  if (recordings.length === 0) it.skip("no recordings are here", () => undefined);
  for (const recording of recordings) {
    it(`${recording.file}, cut ${cuts} times`, () => checkCuts(recording.protocol, bytesOf(recording), recording.file));
  }
});

const chat = (delta: object, extra: object = {}) => ({ choices: [{ index: 0, delta, finish_reason: null, ...extra }] });
const item = (content: ReadonlyArray<object>) => ({ type: "message", id: "m", role: "assistant", content });
const response = (output: ReadonlyArray<object>) => ({
  type: "response.completed",
  response: { status: "completed", output },
});
const gemini = (...parts: ReadonlyArray<object>) => ({ candidates: [{ index: 0, content: { parts } }] });

/** [protocol, spelling, frames]; the text is `The answer` in all of them. */
const spellings: ReadonlyArray<readonly [ProtocolId, string, ReadonlyArray<object>]> = [
  ["openai-chat", "content", [chat({ content: "The " }), chat({ content: "answer" })]],
  ["openai-chat", "a list of text", [chat({ content: [{ type: "text", text: "The answer" }] })]],
  ["openai-chat", "a list of output_text", [chat({ content: [{ type: "output_text", text: "The answer" }] })]],
  ["openai-chat", "a list of refusals", [chat({ content: [{ type: "refusal", refusal: "The answer" }] })]],
  ["openai-chat", "a list of bare texts", [chat({ content: ["The ", "answer"] })]],
  [
    "openai-chat",
    "a list with thinking",
    [
      chat({
        content: [
          { type: "thinking", thinking: "hm" },
          { type: "text", text: "The answer" },
        ],
      }),
    ],
  ],
  ["openai-chat", "a refusal", [chat({ refusal: "The answer" })]],
  ["openai-chat", "an audio transcript", [chat({ audio: { id: "a", transcript: "The answer" } })]],
  ["openai-chat", "a message in place of deltas", [{ choices: [{ index: 0, message: { content: "The answer" } }] }]],
  [
    "openai-chat",
    "messages that come piece by piece",
    [{ choices: [{ message: { content: "The " } }] }, { choices: [{ message: { content: "answer" } }] }],
  ],
  [
    "openai-chat",
    "a message that repeats the deltas",
    [chat({ content: "The answer" }), { choices: [{ index: 0, message: { content: "The answer" } }] }],
  ],
  ["openai-chat", "the text of the first API", [{ choices: [{ index: 0, text: "The answer" }] }]],
  ["openai-chat", "with annotations", [chat({ content: "The answer" }), chat({ annotations: [{ type: "url" }] })]],
  [
    "openai-responses",
    "deltas",
    [
      { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "The " },
      { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "answer" },
      { type: "response.output_text.done", output_index: 0, content_index: 0, text: "The answer" },
    ],
  ],
  [
    "openai-responses",
    "done without deltas",
    [{ type: "response.output_text.done", output_index: 0, content_index: 0, text: "The answer" }],
  ],
  ["openai-responses", "a refusal", [{ type: "response.refusal.delta", output_index: 0, delta: "The answer" }]],
  ["openai-responses", "a refusal done", [{ type: "response.refusal.done", output_index: 0, refusal: "The answer" }]],
  [
    "openai-responses",
    "an audio transcript",
    [{ type: "response.output_audio_transcript.delta", output_index: 0, delta: "The answer" }],
  ],
  [
    "openai-responses",
    "a content part that comes with its text",
    [{ type: "response.content_part.added", output_index: 0, part: { type: "output_text", text: "The answer" } }],
  ],
  [
    "openai-responses",
    "a content part that ends with its text",
    [{ type: "response.content_part.done", output_index: 0, part: { type: "output_text", text: "The answer" } }],
  ],
  [
    "openai-responses",
    "an item that comes with its text",
    [
      {
        type: "response.output_item.added",
        output_index: 0,
        item: item([{ type: "output_text", text: "The answer" }]),
      },
    ],
  ],
  [
    "openai-responses",
    "an item that ends with its text",
    [{ type: "response.output_item.done", output_index: 0, item: item([{ type: "output_text", text: "The answer" }]) }],
  ],
  ["openai-responses", "the final response alone", [response([item([{ type: "output_text", text: "The answer" }])])]],
  [
    "anthropic-messages",
    "deltas",
    [
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "The " } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "answer" } },
    ],
  ],
  [
    "anthropic-messages",
    "deltas without their block",
    [{ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "The answer" } }],
  ],
  [
    "anthropic-messages",
    "deltas under the number of a thinking block",
    [
      { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "The answer" } },
    ],
  ],
  ["google-gemini", "parts", [gemini({ text: "The " }), gemini({ text: "answer" })]],
  ["google-gemini", "a signed part", [gemini({ text: "The answer", thoughtSignature: "s" })]],
  ["google-gemini", "behind a thought", [gemini({ text: "hm", thought: true }, { text: "The answer" })]],
  ["google-gemini", "beside an empty tool field", [gemini({ text: "The answer", executableCode: null })]],
  [
    "google-gemini",
    "beside a picture",
    [gemini({ text: "The answer", inlineData: { mimeType: "image/png", data: "A" } })],
  ],
];

const partsOf = (protocol: ProtocolId, frames: ReadonlyArray<Event>): ReadonlyArray<Part> =>
  decode(protocols[protocol], [encode(frames.map(samples[protocol].frame).join(""))]).parts;

const built = (protocol: ProtocolId, parts: ReadonlyArray<Part>, body = samples[protocol].question("2+2?")) =>
  Continuation.build(protocol, { body, received: Continuation.collect(protocol, parts), calls: [], results: [] });

describe("each spelling of a text is in the next request", () => {
  for (const [protocol, name, frames] of spellings) {
    it(`${protocol}: ${name}`, () => {
      const parts = partsOf(protocol, frames);
      checkText(protocol, parts, name);
      assert.strictEqual(parts.map(Continuation.textOf).join(""), "The answer");
      const next = built(protocol, parts);
      const body = Result.isSuccess(next) ? next.success : assert.fail(next.failure.message);
      assert.lengthOf(JSON.stringify(body).split("The answer"), 2, "once");
    });
  }

  const pictures: ReadonlyArray<readonly [ProtocolId, string, object]> = [
    ["openai-chat", "audio without its words", chat({ audio: { id: "a", data: "UklGRg==" } })],
    [
      "openai-chat",
      "a picture",
      chat({ images: [{ type: "image_url", image_url: { url: "data:image/png;base64,A" } }] }),
    ],
    ["openai-chat", "a picture in a list", chat({ content: [{ type: "image_url", image_url: { url: "x" } }] })],
    ["openai-responses", "audio", { type: "response.output_audio.delta", output_index: 0, delta: "UklGRg==" }],
    ["anthropic-messages", "a picture", { type: "content_block_start", index: 0, content_block: { type: "image" } }],
  ];
  for (const [protocol, name, frame] of pictures) {
    it(`${protocol}: what no request can hold is refused, and not shown twice: ${name}`, () => {
      const next = built(protocol, partsOf(protocol, [frame]));
      assert.strictEqual(Result.isFailure(next) ? next.failure.reason : "built", "not_text");
      const collector = Continuation.collector(protocol);
      for (const [at, part] of partsOf(protocol, [frame]).entries()) collector.take(1, at + 1, part);
      assert.strictEqual(untold(collector.received()), 1);
      collector.discard(1, 0);
      assert.strictEqual(untold(collector.received()), 0);
    });
  }
});

/** An answer without its end, and the event that ends it. */
const ends = byProtocol(({ events }) => {
  const all = events([{ text: "All is said." }], { lacksLast: true });
  return [all.slice(0, -1), all.slice(-1)] as const;
});

describe("a whole answer", () => {
  for (const protocol of talkIds) {
    const [frames, last] = ends[protocol];
    it(`${protocol}: nothing is said of a failure, and the user's next words stand behind it alone`, () => {
      const next = built(protocol, partsOf(protocol, [...frames, ...last]));
      const body = Result.isSuccess(next) ? next.success : assert.fail(next.failure.message);
      assert.notMatch(JSON.stringify(body), /cut off|connection|interrupt|lost/i);
      const said = JSON.stringify(Continuation.userTurn(protocol, body, "And then?"));
      assert.include(said, "All is said.");
      assert.include(said, "And then?");
      assert.notInclude(said, Continuation.carryOn);
      const cut = built(protocol, partsOf(protocol, frames));
      const broken = Result.isSuccess(cut) ? cut.success : assert.fail(cut.failure.message);
      assert.include(JSON.stringify(broken), Continuation.goOn);
      assert.notInclude(JSON.stringify(Continuation.userTurn(protocol, broken, "And then?")), Continuation.goOn);
    });

    it(`${protocol}: one that must be a JSON document is taken whole, and never cut`, () => {
      const body = { ...samples[protocol].question("2+2?"), ...samples[protocol].json };
      assert.isTrue(Result.isSuccess(built(protocol, partsOf(protocol, [...frames, ...last]), body)));
      const cut = built(protocol, partsOf(protocol, frames), body);
      assert.strictEqual(Result.isFailure(cut) ? cut.failure.reason : "built", "structured_output");
    });
  }

  it("is no whole one any more where its marker was withdrawn", () => {
    for (const protocol of talkIds) {
      const [frames, last] = ends[protocol];
      const parts = partsOf(protocol, [...frames, ...last]);
      assert.isTrue(Continuation.collect(protocol, parts).whole);
      assert.isUndefined(Continuation.collect(protocol, parts, { keepThrough: parts.length - 1 }).whole);
    }
  });
});

describe("the user's next turn", () => {
  const rolesIn = (protocol: ProtocolId, body: Json.JsonRecord): ReadonlyArray<unknown> =>
    Json.list(body[samples[protocol].history]).map((it) => {
      const { role, type } = Json.record(it) ?? {};
      return role ?? rolesOfTypes.get(Json.string(type));
    });

  /** Messages that have a type in place of a role. */
  const rolesOfTypes = new Map([
    ["user_input", "user"],
    ["model_output", "model"],
  ]);

  for (const protocol of talkIds) {
    it(`${protocol}: opens a conversation, follows an answer, and joins a message of the user's own`, () => {
      const { assistant, history } = samples[protocol];
      const empty = { store: false, [history]: [] };
      const before = JSON.stringify(empty);
      const first = Continuation.userTurn(protocol, empty, "Hi");
      assert.strictEqual(JSON.stringify(empty), before, "the body is not changed");
      assert.deepStrictEqual(rolesIn(protocol, first), ["user"]);
      const twice = Continuation.userTurn(protocol, first, "there");
      assert.deepStrictEqual(rolesIn(protocol, twice), ["user"], "two in a row become one");
      assert.match(JSON.stringify(twice), /Hi.*there/s);
      const [frames, last] = ends[protocol];
      const answered = built(protocol, partsOf(protocol, [...frames, ...last]), first);
      const body = Result.isSuccess(answered) ? answered.success : assert.fail(answered.failure.message);
      const next = Continuation.userTurn(protocol, body, "More");
      assert.deepStrictEqual(rolesIn(protocol, next), ["user", assistant, "user"]);
    });
  }

  it("turns a bare text into a message of the protocol's own form", () => {
    assert.deepStrictEqual(Continuation.userTurn("google-interactions", { input: "Hi" }, "there").input, [
      {
        type: "user_input",
        content: [
          { type: "text", text: "Hi" },
          { type: "text", text: "there" },
        ],
      },
    ]);
    assert.deepStrictEqual(Continuation.userTurn("mistral-conversations", { inputs: "Hi" }, "there").inputs, [
      { type: "message.input", role: "user", content: "Hi\n\nthere" },
    ]);
  });

  it("joins lists of parts in the protocol's own form, and finds a bare text and a wrapped request", () => {
    const list = [{ role: "user", content: [{ type: "text", text: "Hi" }] }];
    assert.deepStrictEqual(Continuation.userTurn("openai-chat", { messages: list }, "there"), {
      messages: [{ role: "user", content: [...(list[0]?.content ?? []), { type: "text", text: "there" }] }],
    });
    assert.deepStrictEqual(Continuation.userTurn("openai-responses", { input: "Hi" }, "there"), {
      input: [{ type: "message", role: "user", content: "Hi\n\nthere" }],
    });
    assert.deepStrictEqual(Continuation.userTurn("google-gemini", { request: { contents: [] } }, "Hi"), {
      request: { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
    });
    const outputs = { input: [{ type: "function_call_output", call_id: "c", output: "x" }] };
    assert.lengthOf(Json.list(Continuation.userTurn("openai-responses", outputs, "Hi").input), 2);
  });
});
