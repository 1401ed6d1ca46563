import { assert, describe, it } from "@effect/vitest";
import { Config, ConfigProvider, Effect, Layer, Redacted, Schema, Stream } from "effect";
import { AiError, LanguageModel, type Response, Tool, Toolkit } from "effect/ai";
import { ProviderModel } from "../../../src/adapters/provider-model/index.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { samples, textAnswer } from "../../samples/index.ts";
import { type Written, writtenIds } from "../effect-ai/Cells.ts";

const Bash = Tool.make("bash", { parameters: Schema.Struct({ serial: Schema.String }), success: Schema.String });
const toolkit = Toolkit.make(Bash);

const modelOf = (protocol: Written, url: string, more: Partial<ProviderModel.Options> = {}) =>
  ProviderModel.layer({ protocol, model: "m", url, apiKey: Redacted.make("not-a-key"), ...more });

/** Streams one answer and keeps its parts and its error. */
const streamed = (protocol: Written, script: FaultScriptInput) =>
  Effect.gen(function* () {
    const server = yield* FaultProvider.make({ script });
    const parts: Array<Response.AnyPart> = [];
    const tools = yield* toolkit;
    const result = yield* LanguageModel.streamText({
      prompt: "go",
      toolkit: tools,
      disableToolCallResolution: true,
    }).pipe(
      Stream.runForEach((part) => Effect.sync(() => parts.push(part))),
      Effect.result,
      Effect.provide(modelOf(protocol, server.endpoint(protocol))),
    );
    const text = parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("");
    const thought = parts.map((part) => (part.type === "reasoning-delta" ? part.delta : "")).join("");
    return {
      parts,
      text,
      thought,
      row: yield* server.ended(1),
      rows: yield* server.log,
      error: result._tag === "Failure" ? result.failure : undefined,
    };
  }).pipe(Effect.provide(toolkit.toLayer({ bash: () => Effect.succeed("") })), Effect.scoped);

describe("ProviderModel", () => {
  for (const id of writtenIds) {
    it.live(`${id}: streams text, reasoning, a call, usage and the finish`, () =>
      Effect.gen(function* () {
        const content = [{ reasoning: 2 }, { text: 3 }, { tool: "bash", input: { cmd: "ü" } }];
        const it = yield* streamed(id, { answers: [{ content }] });
        assert.isUndefined(it.error);
        assert.strictEqual(it.text, it.row.text.join(""));
        assert.strictEqual(it.thought, it.row.reasoning.join(""));
        const call = it.parts.find((part) => part.type === "tool-call");
        assert.strictEqual(
          JSON.stringify(call?.params),
          JSON.stringify({ serial: "r1.t1" }).slice(0, -1) + JSON.stringify(call?.params).slice(17),
        );
        const finish = it.parts.at(-1);
        assert.isTrue(finish?.type === "finish");
        if (finish?.type !== "finish") return;
        assert.strictEqual(finish.reason, "tool-calls");
        assert.isAbove(finish.usage.inputTokens.total ?? 0, 0);
        assert.isAbove(finish.usage.outputTokens.total ?? 0, 0);
        // Converse sends neither an id nor a model.
        const isNamed = it.parts.some((part) => part.type === "response-metadata" && part.id !== undefined);
        assert.strictEqual(isNamed, id !== "bedrock-converse");
      }),
    );

    it.live(`${id}: an answer is whole once its marker has come, whatever happens to the connection`, () =>
      Effect.gen(function* () {
        const healthy = yield* streamed(id, { answers: [{ content: [{ text: 2 }] }] });
        const it = yield* streamed(id, {
          answers: [{ content: [{ text: 2 }], break: { kind: "fin", at: "next_request" } }],
        });
        assert.strictEqual(it.text, healthy.text);
        assert.strictEqual(it.parts.at(-1)?.type, "finish");
      }),
    );

    for (const kind of ["rst", "fin", "end"] as const) {
      it.live(`${id}: ${kind} before the marker is an error and never a finish`, () =>
        Effect.gen(function* () {
          const it = yield* streamed(id, { answers: [{ content: [{ text: 2 }], break: { kind, at: "terminal" } }] });
          assert.isFalse(it.parts.some((part) => part.type === "finish"));
          const reason = it.error instanceof AiError.AiError ? it.error.reason._tag : undefined;
          assert.strictEqual(reason, kind === "end" ? "InvalidResponseError" : "NetworkError");
        }),
      );
    }

    for (const [status, tag] of [
      [401, "AuthenticationError"],
      [429, "RateLimitError"],
      [400, "InvalidRequestError"],
      [500, "InternalProviderError"],
    ] as const) {
      it.live(`${id}: status ${status} is ${tag}`, () =>
        Effect.gen(function* () {
          const it = yield* streamed(id, {
            answers: [{ status, headers: status === 429 ? { "retry-after": "2" } : {} }],
          });
          assert.strictEqual(it.error instanceof AiError.AiError ? it.error.reason._tag : undefined, tag);
          assert.strictEqual(it.rows.length, 1);
          if (status === 429) assert.isDefined(it.error instanceof AiError.AiError ? it.error.retryAfter : undefined);
        }),
      );
    }

    it.live(`${id}: generateText collects the same answer`, () =>
      Effect.gen(function* () {
        const server = yield* FaultProvider.make({
          script: { answers: [{ content: [{ reasoning: 2 }, { text: 3 }] }] },
        });
        const response = yield* LanguageModel.generateText({ prompt: "go" }).pipe(
          Effect.provide(modelOf(id, server.endpoint(id))),
        );
        const row = yield* server.ended(1);
        assert.strictEqual(response.text, row.text.join(""));
        assert.strictEqual(response.reasoningText, row.reasoning.join(""));
        assert.strictEqual(response.finishReason, "stop");
      }),
    );

    it.live(`${id}: generateObject decodes what the model wrote`, () =>
      Effect.gen(function* () {
        const answer = Buffer.from(textAnswer(id, JSON.stringify({ name: "Ada" })), samples[id].encoding);
        const content = [{ bytes: answer.toString("base64") }];
        const server = yield* FaultProvider.make({ script: { answers: [{ content, finish: "none" }] } });
        const schema = Schema.Struct({ name: Schema.String });
        const response = yield* LanguageModel.generateObject({ prompt: "who", schema }).pipe(
          Effect.provide(modelOf(id, server.endpoint(id))),
        );
        assert.deepStrictEqual(response.value, { name: "Ada" });
      }),
    );
  }

  for (const [id, n] of [
    ["openai-chat", 4],
    ["anthropic-messages", 7],
  ] as const) {
    it.live(`${id}: what breaks behind the marker breaks nothing`, () =>
      Effect.gen(function* () {
        const content = [{ text: 2 }];
        const it = yield* streamed(id, { answers: [{ content, break: { kind: "fin", at: "event", n } }] });
        assert.isTrue(it.row.terminal || it.row.outcome === "broken");
        assert.isUndefined(it.error);
        assert.strictEqual(it.text, it.row.text.join(""));
        assert.strictEqual(it.parts.at(-1)?.type, "finish");
      }),
    );
  }

  it.live("reads its key from the configuration, and fails to start without one", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 1 }] }] } });
      const model = modelOf("openai-chat", server.endpoint("openai-chat"), { apiKey: Config.Redacted("MODEL_KEY") });
      const ask = (env: Record<string, string>) =>
        LanguageModel.generateText({ prompt: "go" }).pipe(
          Effect.provide(Layer.provide(model, ConfigProvider.layer(ConfigProvider.fromEnv({ env })))),
          Effect.result,
        );
      assert.strictEqual((yield* ask({ MODEL_KEY: "k" }))._tag, "Success");
      assert.include((yield* server.ended(1)).header_names, "authorization");
      assert.strictEqual((yield* ask({}))._tag, "Failure");
    }),
  );
});
