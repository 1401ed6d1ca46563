/**
 * An empty response is requested again by the gateway, as a stream and as a document, in every protocol.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { serverOf } from "../../Servers.ts";
import { framesOf, type Said, samples, textAnswer } from "../../samples/index.ts";
import { bodies, front, post, protocols } from "../GatewayCases.ts";

/** A response: its content, the provider's finish, and its reported output tokens. */
interface Answer {
  readonly said?: ReadonlyArray<Said>;
  readonly finish?: string;
  readonly tokens?: number;
}

/** A response as a stream or as a document. */
const writtenAs = (protocol: ProtocolId, streams: boolean, { said = [], finish, tokens }: Answer): string => {
  const ended = {
    ...(finish === undefined ? {} : { finish }),
    ...(tokens === undefined ? {} : { usage: [9, tokens] as const }),
  };
  return streams ? framesOf(protocol, said, ended).join("") : JSON.stringify(samples[protocol].document(said, ended));
};

const call: Said = { call: "f", pieces: ["{}"] };

/** Refusals in the protocols that have an own content for them. */
const refusals: Partial<Record<ProtocolId, ReadonlyArray<Said>>> = {
  "openai-chat": [{ native: { refusal: "No." } }],
  "openai-responses": [{ native: { type: "message", content: [{ type: "refusal", refusal: "No." }] } }],
};

const program: GatewayProgram = { keepAliveMs: 60_000 };

/** Gives the first answer once and then good ones; returns the number of requests and the client's result. */
const played = (protocol: ProtocolId, streams: boolean, first: Answer, more: GatewayProgram = {}) =>
  Effect.gen(function* () {
    let asked = 0;
    const upstream = yield* serverOf((request, response) => {
      asked += 1;
      const answer = asked === 1 ? first : { said: [{ text: "GOOD" }], tokens: 5 };
      request.resume().on("end", () => {
        response.setHeader("content-type", streams ? "text/event-stream" : "application/json");
        response.end(writtenAs(protocol, streams, answer));
      });
    });
    const { url } = yield* front(upstream, { ...program, ...more });
    const sample = samples[protocol];
    const got = yield* post(url, protocol, {
      path: streams ? sample.path : sample.documentPath,
      body: JSON.stringify({ ...sample.bare, ...sample.streams(streams) }),
    });
    return { asked, good: got.text.includes("GOOD"), status: got.status, broken: got.broken };
  }).pipe(Effect.scoped);

const goodAfter = (asked: number) => ({ asked, good: true, status: 200, broken: false });
const once = { asked: 1, good: false, status: 200, broken: false };

for (const protocol of protocols)
  for (const streams of [true, false])
    describe.concurrent(`${protocol}, ${streams ? "a stream" : "a document"}`, () => {
      it.live(
        "with nothing in it and at most a few output tokens is requested again unless it is a completion, and its client sees only the second one",
        () =>
          Effect.gen(function* () {
            for (const tokens of [0, 1, 8])
              assert.deepStrictEqual(
                yield* played(protocol, streams, { tokens }),
                // A completion may be empty by right.
                protocol === "openai-completions" ? once : goodAfter(2),
              );
          }),
      );

      it.live("with more output tokens has worked unseen, and is passed on", () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* played(protocol, streams, { tokens: 9 }), once);
        }),
      );

      it.live("ended by a limit, a filter or a refusal is passed on", () =>
        Effect.gen(function* () {
          for (const finish of samples[protocol].finishes.others)
            assert.deepStrictEqual(yield* played(protocol, streams, { finish, tokens: 0 }), once, finish);
        }),
      );

      it.live("with a call or a refusal in it is passed on", () =>
        Effect.gen(function* () {
          const { natural } = samples[protocol].finishes;
          for (const said of [call, ...(refusals[protocol] ?? [])]) {
            const answer = { said: [said], finish: natural, tokens: 1 };
            assert.deepStrictEqual(yield* played(protocol, streams, answer), once);
          }
        }),
      );

      it.live("is passed on if so configured", () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* played(protocol, streams, { tokens: 0 }, { retryEmpty: false }), once);
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
          assert.deepStrictEqual(yield* played(protocol, streams, { said: [{ native: says }], tokens: 0 }), once);
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
          const answer = { said: [{ native: says }], tokens: 60 };
          assert.deepStrictEqual(yield* played(protocol, streams, answer, { reveal: "on_complete" }), goodAfter(2));
        }),
      );
});

describe.concurrent("A response that remains empty", () => {
  it.live("reaches its client after one retry, because a model with nothing to say ends no turn with an error", () =>
    Effect.gen(function* () {
      let asked = 0;
      const empty = writtenAs("anthropic-messages", true, {});
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
      const good = textAnswer("openai-chat", "GOOD");
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
