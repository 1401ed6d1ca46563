import { createAnthropic } from "@ai-sdk/anthropic";
import { assert, describe, it } from "@effect/vitest";
import { isStepCount, jsonSchema, readUIMessageStream, streamText, tool, type UIMessage } from "ai";
import { Effect, Layer, Logger } from "effect";
import {
  applyRecovery,
  CallInterrupted,
  discardKind,
  make,
  type Recovery,
  recoveryTransform,
} from "../../../src/adapters/ai-sdk/AiSdk.ts";
import type { Model } from "../../../src/adapters/ai-sdk/Parts.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { FaultProvider } from "../../../src/testing/index.ts";

/** A person is there, and wants the response again. */
const services = StreamProcessor.layer.pipe(
  Layer.provideMerge(Layer.merge(RunRecorder.layerMemory(), UserDecisions.layerHeadless({ otherwise: "retry" }))),
  Layer.merge(Logger.layer([])),
);

const withModel = (
  answers: ReadonlyArray<object>,
  run: (model: Model, recovery: Recovery) => Promise<void>,
): Effect.Effect<void, unknown> =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers } });
      const recovery = yield* make;
      const model = createAnthropic({ apiKey: "a key of a test", baseURL: `${server.url}/v1` })("fault-model");
      yield* Effect.promise(() => run(model, recovery));
    }),
  ).pipe(Effect.provide(services));

const ask = { prompt: "hello", maxOutputTokens: 1_000, onError: () => undefined } as const;

/** Cut in the middle of its text: the block is open. */
const broken = { content: [{ reasoning: 2 }, { text: 3 }], break: { kind: "end", at: "event", n: 9 } } as const;
const whole = { content: [{ reasoning: 2 }, { text: 2 }] } as const;

const lastMessage = async (
  stream: ReadableStream<
    Parameters<typeof readUIMessageStream>[0]["stream"] extends ReadableStream<infer C> ? C : never
  >,
) => {
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream })) last = message;
  return last;
};

describe("a live call", () => {
  it.live("holds nothing withdrawn in its text, its reasoning and its messages", () =>
    withModel([broken, whole], async (model, recovery) => {
      const result = streamText({ ...ask, ...recovery.live(model) });
      const types: Array<string> = [];
      for await (const part of result.fullStream) types.push(part.type === "custom" ? part.kind : part.type);
      assert.strictEqual(await result.text, "r2.2·r2.3·");
      assert.strictEqual(await result.reasoningText, "r2.0·r2.1·");
      const { messages } = await result.response;
      assert.notInclude(JSON.stringify(messages), "r1.");
      assert.notInclude(JSON.stringify(messages), discardKind);
      const at = types.indexOf(discardKind);
      assert.deepEqual(types.slice(at - 1, at + 2), ["text-end", discardKind, "start-step"]);
    }),
  );

  it.live("shows a page only what stands, by reset-step, by data and by messages put right later", () =>
    withModel([broken, whole, broken, whole], async (model, recovery) => {
      const first = streamText({ ...ask, ...recovery.live(model) });
      const [page, wire] = first.toUIMessageStream().pipeThrough(recoveryTransform()).tee();
      const message = await lastMessage(page);
      const shown = (parts: UIMessage["parts"]) =>
        parts.flatMap((part) => (part.type === "text" || part.type === "reasoning" ? [part.text] : []));
      assert.deepEqual(shown(message?.parts ?? []), ["r2.0·r2.1·", "r2.2·r2.3·"]);
      assert.strictEqual(message?.parts.filter((part) => part.type === "step-start").length, 1);
      const chunks: Array<unknown> = [];
      for await (const chunk of wire) if (chunk.type.startsWith("data-")) chunks.push(chunk);
      assert.deepEqual(chunks, [{ type: "data-recovery-discard", data: { attempt: 1 }, transient: true }]);

      const plain = await lastMessage(streamText({ ...ask, ...recovery.live(model) }).toUIMessageStream());
      assert.include(JSON.stringify(plain), "r3.");
      const [put] = applyRecovery(plain === undefined ? [] : [plain]);
      assert.deepEqual(shown(put?.parts ?? []), ["r4.0·r4.1·", "r4.2·r4.3·"]);
    }),
  );

  it.live("withdraws within its own step: the steps before stay, and their tools do not run again", () =>
    withModel([{ content: [{ text: 1 }, { tool: "bash" }] }, broken, whole], async (model, recovery) => {
      let ran = 0;
      const bash = tool({
        inputSchema: jsonSchema({ type: "object" }),
        execute: () => {
          ran += 1;
          return "ran";
        },
      });
      const result = streamText({
        ...ask,
        ...recovery.live(model),
        tools: recovery.guardTools({ bash }),
        stopWhen: isStepCount(3),
      });
      const message = await lastMessage(result.toUIMessageStream().pipeThrough(recoveryTransform()));
      assert.strictEqual(ran, 1);
      assert.strictEqual((await result.steps).length, 2);
      assert.strictEqual(await result.text, "r3.2·r3.3·");
      assert.notInclude(JSON.stringify(message), "r2.");
      assert.include(JSON.stringify(message), "r1.0·");
    }),
  );

  it.live("hands over no call before its end is proven, so that a withdrawn one is never kept or run", () =>
    withModel(
      [
        { content: [{ tool: "bash" }], break: { kind: "end", at: "terminal" } },
        { content: [{ reasoning: 1 }, { tool: "bash" }], break: { kind: "end", at: "terminal" } },
        { content: [{ reasoning: 1 }, { tool: "bash" }] },
      ],
      async (model, recovery) => {
        const ran: Array<unknown> = [];
        const bash = tool({ inputSchema: jsonSchema({ type: "object" }), execute: (input) => ran.push(input) });
        const result = streamText({ ...ask, ...recovery.live(model), tools: recovery.guardTools({ bash }) });
        assert.strictEqual((await result.toolCalls).length, 1);
        assert.strictEqual(ran.length, 1);
        assert.match(JSON.stringify(ran), /r3\.t1/);
        assert.notMatch(JSON.stringify((await result.response).messages), /r[12]\./);
      },
    ),
  );

  it.live("fails rather than show twice where its transform is not in its place", () =>
    withModel([broken, whole], async (model, recovery) => {
      const { model: alone } = recovery.live(model);
      const result = streamText({ ...ask, model: alone });
      const error = await result.text.then(undefined, (thrown: unknown) => thrown);
      assert.instanceOf(error, CallInterrupted);
      assert.match(String(error), /spread `recovery.live/);
    }),
  );
});
