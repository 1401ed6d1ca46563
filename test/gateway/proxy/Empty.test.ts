/**
 * An empty response is requested again by the gateway, as a stream and as a document, in all four protocols.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { bodies, front, paths, post, protocols, serverOf } from "../GatewayCases.ts";

/** An end of a response: the provider's finish, its content, and its reported output tokens. */
interface Ended {
  readonly finish: string;
  readonly says?: object | undefined;
  readonly tokens?: number;
}

interface Form {
  readonly stream: (it: Ended) => string;
  readonly document: (it: Ended) => object;
  /** The finish of a response that ends by itself. */
  readonly natural: string;
  /** The finishes after which a retry changes nothing. */
  readonly others: ReadonlyArray<string>;
  readonly text: object;
  readonly call: object;
  readonly refusal?: object;
}

const events = (...frames: ReadonlyArray<object | string>): string =>
  frames.map((it) => `data: ${typeof it === "string" ? it : JSON.stringify(it)}\n\n`).join("");

const list = <A>(it: A | undefined): ReadonlyArray<A> => (it === undefined ? [] : [it]);

const chat = ({ finish, tokens }: Ended, key: "delta" | "message", delta: object) => ({
  id: "c",
  choices: [{ index: 0, [key]: delta, finish_reason: finish }],
  ...(tokens === undefined ? {} : { usage: { prompt_tokens: 9, completion_tokens: tokens } }),
});

const forms: Record<ProtocolId, Form> = {
  "openai-chat": {
    stream: (it) =>
      events(
        { id: "c", choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] },
        ...list(it.says).map((delta) => ({ id: "c", choices: [{ index: 0, delta, finish_reason: null }] })),
        chat(it, "delta", {}),
        "[DONE]",
      ),
    document: (it) => chat(it, "message", { role: "assistant", content: null, ...it.says }),
    natural: "stop",
    others: ["length", "content_filter"],
    text: { content: "GOOD" },
    call: { tool_calls: [{ index: 0, id: "t", type: "function", function: { name: "f", arguments: "{}" } }] },
    refusal: { refusal: "No." },
  },
  "anthropic-messages": {
    stream: (it) =>
      events(
        { type: "message_start", message: { id: "m", content: [], usage: { input_tokens: 9, output_tokens: 1 } } },
        ...list(it.says).flatMap((content_block) => [
          { type: "content_block_start", index: 0, content_block },
          { type: "content_block_stop", index: 0 },
        ]),
        { type: "message_delta", delta: { stop_reason: it.finish }, usage: { output_tokens: it.tokens ?? 1 } },
        { type: "message_stop" },
      ),
    document: (it) => ({
      type: "message",
      id: "m",
      content: list(it.says),
      stop_reason: it.finish,
      usage: { input_tokens: 9, output_tokens: it.tokens ?? 1 },
    }),
    natural: "end_turn",
    others: ["max_tokens", "refusal", "pause_turn", "stop_sequence"],
    text: { type: "text", text: "GOOD" },
    call: { type: "tool_use", id: "t", name: "f", input: {} },
  },
  "openai-responses": {
    stream: (it) => {
      const response = forms["openai-responses"].document(it);
      return events(
        { type: "response.created", sequence_number: 0, response: { id: "r", status: "in_progress" } },
        { type: `response.${it.finish}`, sequence_number: 1, response },
      );
    },
    document: ({ finish, says, tokens = 0 }) => ({
      id: "r",
      object: "response",
      status: finish,
      output: list(says),
      usage: { input_tokens: 9, output_tokens: tokens },
      ...(finish === "incomplete" ? { incomplete_details: { reason: "max_output_tokens" } } : {}),
    }),
    natural: "completed",
    others: ["incomplete"],
    text: { type: "message", content: [{ type: "output_text", text: "GOOD" }] },
    call: { type: "function_call", call_id: "t", name: "f", arguments: "{}", status: "completed" },
    refusal: { type: "message", content: [{ type: "refusal", refusal: "No." }] },
  },
  "google-gemini": {
    stream: (it) => events(forms["google-gemini"].document(it)),
    document: ({ finish, says, tokens = 0 }) => ({
      candidates: [{ index: 0, content: { role: "model", parts: list(says) }, finishReason: finish }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: tokens },
    }),
    natural: "STOP",
    others: ["MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"],
    text: { text: "GOOD" },
    call: { functionCall: { name: "f", args: {} } },
  },
};

const program: GatewayProgram = { keepAliveMs: 60_000 };

/** Gives the first answer once and then good ones; returns the number of requests and the client's result. */
const played = (protocol: ProtocolId, streams: boolean, first: Ended, more: GatewayProgram = {}) =>
  Effect.gen(function* () {
    const form = forms[protocol];
    const good: Ended = { finish: form.natural, says: form.text, tokens: 5 };
    let asked = 0;
    const upstream = yield* serverOf((request, response) => {
      asked += 1;
      const it = asked === 1 ? first : good;
      request.resume().on("end", () => {
        response.setHeader("content-type", streams ? "text/event-stream" : "application/json");
        response.end(streams ? form.stream(it) : JSON.stringify(form.document(it)));
      });
    });
    const { url } = yield* front(upstream, { ...program, ...more });
    const path = streams
      ? paths[protocol]
      : paths[protocol].replace("streamGenerateContent?alt=sse", "generateContent");
    const got = yield* post(url, protocol, {
      path,
      body: JSON.stringify({ ...bodies[protocol], ...(protocol === "google-gemini" ? {} : { stream: streams }) }),
    });
    return { asked, good: got.text.includes("GOOD"), status: got.status, broken: got.broken };
  }).pipe(Effect.scoped);

const goodAfter = (asked: number) => ({ asked, good: true, status: 200, broken: false });
const once = { asked: 1, good: false, status: 200, broken: false };

for (const protocol of protocols)
  for (const streams of [true, false])
    describe.concurrent(`${protocol}, ${streams ? "a stream" : "a document"}`, () => {
      const form = forms[protocol];

      it.live(
        "with nothing in it and at most a few output tokens is requested again, and its client sees only the second one",
        () =>
          Effect.gen(function* () {
            for (const tokens of [0, 1, 8])
              assert.deepStrictEqual(yield* played(protocol, streams, { finish: form.natural, tokens }), goodAfter(2));
          }),
      );

      it.live("with more output tokens has worked unseen, and is passed on", () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* played(protocol, streams, { finish: form.natural, tokens: 9 }), once);
        }),
      );

      it.live("ended by a limit, a filter or a refusal is passed on", () =>
        Effect.gen(function* () {
          for (const finish of form.others)
            assert.deepStrictEqual(yield* played(protocol, streams, { finish, tokens: 0 }), once, finish);
        }),
      );

      it.live("with a call or a refusal in it is passed on", () =>
        Effect.gen(function* () {
          for (const says of [form.call, ...list(form.refusal)])
            assert.deepStrictEqual(yield* played(protocol, streams, { finish: form.natural, says, tokens: 1 }), once);
        }),
      );

      it.live("is passed on if so configured", () =>
        Effect.gen(function* () {
          const empty = { finish: form.natural, tokens: 0 };
          assert.deepStrictEqual(yield* played(protocol, streams, empty, { retryEmpty: false }), once);
        }),
      );
    });

/** Content without text that is not empty. */
const wordless: ReadonlyArray<readonly [words: string, ProtocolId, object]> = [
  ["a sound", "openai-responses", { type: "message", content: [{ type: "output_audio", data: "AAAA" }] }],
  ["a message part of a new kind", "openai-responses", { type: "message", content: [{ type: "new", data: "x" }] }],
  ["an item of a new kind", "openai-responses", { type: "new", data: "x" }],
  ["a sound", "openai-chat", { audio: { id: "a", data: "AAAA" } }],
  ["a picture", "openai-chat", { images: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] }],
  ["a block of a new kind", "anthropic-messages", { type: "new", data: "x" }],
  ["a part of a new kind", "google-gemini", { new: { data: "x" } }],
  ["a picture", "google-gemini", { inlineData: { mimeType: "image/png", data: "AAAA" } }],
];

describe.concurrent("A response without words is not empty, even if its provider reports no tokens", () => {
  for (const [words, protocol, says] of wordless)
    for (const streams of [true, false])
      it.live(`${words} of ${protocol}, ${streams ? "in a stream" : "in a document"}, is passed on`, () =>
        Effect.gen(function* () {
          const ended: Ended = { finish: forms[protocol].natural, says, tokens: 0 };
          assert.deepStrictEqual(yield* played(protocol, streams, ended), once);
        }),
      );

  for (const status of ["queued", "in_progress"])
    it.live(`a document of Responses that is ${status} is a running job, and is not posted again`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* played("openai-responses", false, { finish: status }), once);
      }),
    );

  it.live("reasoning that is counted beside the completion, as by xAI, was unseen work", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 9, completion_tokens: 1, completion_tokens_details: { reasoning_tokens: 200 } };
      const choice = { index: 0, message: { role: "assistant", content: "" }, finish_reason: "stop" };
      let asked = 0;
      const upstream = yield* serverOf((request, response) => {
        asked += 1;
        request.resume().on("end", () => {
          response.setHeader("content-type", "application/json").end(JSON.stringify({ choices: [choice], usage }));
        });
      });
      const { url } = yield* front(upstream, program);
      const body = JSON.stringify({ ...bodies["openai-chat"], stream: false });
      yield* post(url, "openai-chat", { body });
      assert.strictEqual(asked, 1);
    }).pipe(Effect.scoped),
  );
});

/** Thoughts alone, which `live` would show as they arrive. */
const thoughts: ReadonlyArray<readonly [words: string, ProtocolId, object]> = [
  ["reasoning", "openai-chat", { reasoning_content: "Hm." }],
  ["reasoning that is hidden", "anthropic-messages", { type: "redacted_thinking", data: "x" }],
  ["a thought without its words", "google-gemini", { text: "", thought: true }],
];

describe.concurrent("Thoughts alone are not an answer", () => {
  for (const [words, protocol, says] of thoughts)
    for (const streams of [true, false])
      it.live(`${words} of ${protocol}, ${streams ? "in a stream" : "in a document"}, is requested once more`, () =>
        Effect.gen(function* () {
          const ended: Ended = { finish: forms[protocol].natural, says, tokens: 60 };
          assert.deepStrictEqual(yield* played(protocol, streams, ended, { reveal: "on_complete" }), goodAfter(2));
        }),
      );
});

describe.concurrent("A response that remains empty", () => {
  it.live("reaches its client after one retry, because a model with nothing to say ends no turn with an error", () =>
    Effect.gen(function* () {
      let asked = 0;
      const empty = forms["anthropic-messages"].stream({ finish: "end_turn" });
      const upstream = yield* serverOf((request, response) => {
        asked += 1;
        request.resume().on("end", () => response.setHeader("content-type", "text/event-stream").end(empty));
      });
      const { url } = yield* front(upstream, program);
      const got = yield* post(url, "anthropic-messages");
      assert.deepStrictEqual([got.status, got.text, got.broken, asked], [200, empty, false, 2]);
    }).pipe(Effect.scoped),
  );

  it.live("is not requested again if the connection breaks after its content", () =>
    Effect.gen(function* () {
      const good = forms["openai-chat"].stream({ finish: "stop", says: { content: "GOOD" } });
      const upstream = yield* serverOf((request, response) => {
        request.resume().on("end", () => {
          response.setHeader("content-type", "text/event-stream");
          response.write(good, () => response.destroy());
        });
      });
      const { runs, url } = yield* front(upstream, program);
      const got = yield* post(url, "openai-chat");
      assert.include(got.text, "GOOD");
      assert.strictEqual((yield* runs)[0]?.attempts.length, 1);
    }).pipe(Effect.scoped),
  );
});
