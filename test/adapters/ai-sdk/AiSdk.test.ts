import { createOpenAI } from "@ai-sdk/openai";
import { assert, describe, it } from "@effect/vitest";
import { generateText, isStepCount, jsonSchema, streamText, tool, wrapLanguageModel } from "ai";
import { Effect } from "effect";
import { CallInterrupted, createRecovery, make, type Recovery } from "../../../src/adapters/ai-sdk/AiSdk.ts";
import type { Model } from "../../../src/adapters/ai-sdk/Parts.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { quiet } from "./Turn.ts";

const chat = (url: string): Model =>
  createOpenAI({ apiKey: "a key of a test", baseURL: `${url}/v1` }).chat("fault-model");

/** Runs a test against a fault server, with a recovery of its own. */
const withServer = <A>(
  script: FaultScriptInput,
  run: (server: FaultProvider["Service"], recovery: Recovery) => Promise<A>,
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script });
      const recovery = yield* Effect.acquireRelease(
        Effect.sync(() => createRecovery({ layer: quiet })),
        (owned) => Effect.promise(() => owned.close()),
      );
      return yield* Effect.promise(() => run(server, recovery));
    }),
  );

const requests = (server: FaultProvider["Service"]): Promise<number> =>
  Effect.runPromise(Effect.map(server.log, (rows) => rows.length));

/** What a promise is rejected with. */
const failureOf = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    (value) => assert.fail(`expected a failure, got ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );

const failed = (error: unknown): CallInterrupted => {
  assert.instanceOf(error, CallInterrupted);
  // Narrowed by the line above, which assert does not tell the compiler.
  return error as CallInterrupted;
};

const ask = (model: Model) => ({ model, prompt: "hello", onError: () => undefined });

const textCut = { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } } as const;

const document = (content: string) => ({
  body: {
    id: "c1",
    created: 1,
    model: "fault-model",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
});

/** A whole answer with one call. */
const calling = (id: string) => {
  const call = { id, type: "function", function: { name: "bash", arguments: "{}" } };
  const message = { role: "assistant", content: null, tool_calls: [call] };
  const { body } = document("");
  return { body: { ...body, choices: [{ index: 0, message, finish_reason: "tool_calls" }] } };
};

describe("a call that ends without its answer", () => {
  it.live("fails for every reader of the result, with the provider's own error as the cause", () =>
    withServer({ answers: [textCut] }, async (server, recovery) => {
      const result = streamText(ask(recovery.recover(chat(server.url))));
      const read: Array<string> = [];
      const error = await failureOf(
        (async () => {
          for await (const text of result.textStream) read.push(text);
        })(),
      );
      assert.isAbove(read.length, 0);
      assert.strictEqual(failed(error).rule, "text_shown");
      assert.isFalse(failed(error).isRetryable);
      assert.include(String(failed(error).cause), "Failed to process successful response");
      for (const promise of [result.text, result.finishReason, result.response, result.toolCalls]) {
        assert.strictEqual(await failureOf(promise), error);
      }
    }),
  );

  it.live("is not repeated by the SDK, with the retries that it has by default and with all that it has", () =>
    withServer({ answers: [textCut] }, async (server, recovery) => {
      const model = recovery.recover(chat(server.url));
      await failureOf(streamText(ask(model)).text);
      assert.strictEqual(await requests(server), 1);
      await failureOf(streamText({ ...ask(model), maxRetries: 5, streamRetries: 5 }).text);
      assert.strictEqual(await requests(server), 2);
      await failureOf(streamText({ ...ask(model), streamRetries: 0, onError: () => ({ retry: true }) as never }).text);
      assert.strictEqual(await requests(server), 3);
    }),
  );

  it.live("names a loop that repeats a failed request at once", () =>
    withServer({ answers: [textCut, { content: [{ text: 1 }] }] }, async (server, recovery) => {
      const model = recovery.recover(chat(server.url));
      await failureOf(streamText(ask(model)).text);
      const again = streamText(ask(model));
      const warnings = (await again.warnings) ?? [];
      assert.match(JSON.stringify(warnings), /failed here .* ms ago and was sent again.*set maxRetries to 0/);
      const other = streamText({ ...ask(model), prompt: "something else" });
      assert.deepEqual(await other.warnings, []);
    }),
  );

  it.live("fails before its first part with what the provider said", () =>
    withServer({ answers: [{ status: 400 }] }, async (server, recovery) => {
      const error = failed(await failureOf(streamText(ask(recovery.recover(chat(server.url)))).text));
      assert.strictEqual(error.rule, "not_retryable");
      assert.strictEqual(error.failure.status, 400);
      assert.include(String(error.cause), "APICallError");
    }),
  );
});

describe("whose end it is", () => {
  it.live("an abort is the user's: it is recorded as theirs, and nothing is repeated", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const script = { answers: [{ content: [{ text: 3 }], break: { kind: "stall", at: "event", n: 2 } as const }] };
        const server = yield* FaultProvider.make({ script });
        const recovery = yield* make;
        const abort = aborting();
        const result = streamText({ ...ask(recovery.recover(chat(server.url))), abortSignal: abort.signal });
        const types = yield* Effect.promise(async () => {
          const seen: Array<string> = [];
          for await (const part of result.fullStream) {
            seen.push(part.type);
            if (part.type === "text-delta") abort.abort();
          }
          return seen;
        });
        assert.strictEqual(types.at(-1), "abort");
        const row = yield* server.ended(1);
        assert.strictEqual(row.outcome, "client_closed");
        const ends = yield* endsOf;
        assert.deepEqual(ends, ["user_cancelled"]);
      }),
    ).pipe(Effect.provide(quiet)),
  );

  it.live("a timeout is a limit of the caller and no user's cancel", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const script = { answers: [{ content: [{ text: 3 }], break: { kind: "stall", at: "after_head" } as const }] };
        const server = yield* FaultProvider.make({ script });
        const recovery = yield* make;
        const result = streamText({
          ...ask(recovery.recover(chat(server.url))),
          abortSignal: AbortSignal.timeout(200),
        });
        yield* Effect.promise(() => failureOf(result.text));
        yield* server.ended(1);
        assert.deepEqual(yield* endsOf, ["caller_interrupted"]);
      }),
    ).pipe(Effect.provide(quiet)),
  );

  it.live("closing a recovery ends its live calls", () =>
    withServer(
      { answers: [{ content: [{ text: 3 }], break: { kind: "stall", at: "event", n: 2 } }] },
      async (server) => {
        const owned = createRecovery({ layer: quiet });
        const result = streamText(ask(owned.recover(chat(server.url))));
        const ended = failureOf(result.text);
        for await (const part of result.fullStream) {
          if (part.type === "text-delta") break;
        }
        await owned.close();
        assert.strictEqual(failed(await ended).rule, "lifecycle_closed");
      },
    ),
  );
});

const aborting = () => new AbortController();

const endsOf = Effect.gen(function* () {
  const recorder = yield* RunRecorder;
  const runs = yield* recorder.runs();
  return runs.map((run) => run.end?.reason);
});

describe("what is recovered", () => {
  it.live("a stall before anything came is replayed", () =>
    withServer(
      { answers: [{ content: [{ text: 3 }], break: { kind: "stall", at: "after_head" } }, { content: [{ text: 3 }] }] },
      async (server, recovery) => {
        const model = recovery.recover(chat(server.url), { clocks: { first_progress: 200 } });
        assert.strictEqual(await streamText(ask(model)).text, "r2.0·r2.1·r2.2·");
      },
    ),
  );

  it.live("an answer that is shown only when it is whole is recovered from a break after its text", () =>
    withServer({ answers: [textCut, { content: [{ text: 3 }] }] }, async (server, recovery) => {
      const model = recovery.recover(chat(server.url), { reveal: "on_complete" });
      const result = streamText(ask(model));
      assert.strictEqual(await result.text, "r2.0·r2.1·r2.2·");
      assert.strictEqual((await result.response).id, "chatcmpl-r2");
    }),
  );

  it.live("generateText is recovered before its response, and its refusals are not repeated", () =>
    withServer(
      {
        answers: [
          { status: 503 },
          { status: 200, break: { kind: "rst", at: "before_head" } },
          document("hi"),
          { status: 401 },
        ],
      },
      async (server, recovery) => {
        const model = recovery.recover(chat(server.url));
        assert.strictEqual((await generateText(ask(model))).text, "hi");
        assert.strictEqual(await requests(server), 3);
        const error = failed(await failureOf(generateText(ask(model))));
        assert.strictEqual(error.rule, "not_retryable");
        assert.strictEqual(await requests(server), 4);
      },
    ),
  );

  it.live("generateText runs its guarded tools once, over the steps of its loop", () =>
    withServer(
      { answers: [calling("c1"), { status: 503 }, calling("c1"), document("done")] },
      async (server, recovery) => {
        let ran = 0;
        const bash = tool({
          inputSchema: jsonSchema({ type: "object" }),
          execute: () => {
            ran += 1;
            return "ran";
          },
        });
        const result = await generateText({
          ...ask(recovery.recover(chat(server.url))),
          tools: recovery.guardTools({ bash }, { effects: { bash: "mutating" } }),
          stopWhen: isStepCount(5),
        });
        assert.strictEqual(result.text, "done");
        assert.strictEqual(result.steps.length, 3);
        assert.strictEqual(ran, 2);
      },
    ),
  );

  it.live("a middleware does what a recovered model does", () =>
    withServer({ answers: [{ status: 503 }, { content: [{ text: 1 }] }] }, async (server, recovery) => {
      const model = wrapLanguageModel({ model: chat(server.url), middleware: recovery.middleware() });
      assert.strictEqual(await streamText(ask(model)).text, "r2.0·");
    }),
  );

  it.live("a break in a later step asks for that step alone again", () =>
    withServer(
      {
        answers: [
          { content: [{ text: 1 }, { tool: "bash" }] },
          { content: [{ text: 1 }], break: { kind: "rst", at: "after_head" } },
          { content: [{ text: 2 }] },
        ],
      },
      async (server, recovery) => {
        let ran = 0;
        const bash = tool({
          inputSchema: jsonSchema({ type: "object" }),
          execute: () => {
            ran += 1;
            return "ran";
          },
        });
        const result = streamText({
          ...ask(recovery.recover(chat(server.url))),
          tools: recovery.guardTools({ bash }),
          stopWhen: isStepCount(3),
        });
        assert.strictEqual(await result.text, "r3.0·r3.1·");
        assert.strictEqual(ran, 1);
        const log = await Effect.runPromise(server.log);
        assert.notStrictEqual(log[0]?.body_hash, log[1]?.body_hash);
        assert.strictEqual(log[1]?.body_hash, log[2]?.body_hash);
      },
    ),
  );
});

describe("the services of an Effect program", () => {
  it.live("make runs on them", () =>
    Effect.gen(function* () {
      const recovery = yield* make;
      assert.isFunction(recovery.recover);
      yield* StreamProcessor;
    }).pipe(Effect.provide(quiet)),
  );
});
