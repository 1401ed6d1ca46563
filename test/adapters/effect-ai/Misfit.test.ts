/**
 * An answer that came whole and does not fit what the caller asked for costs one request, and is told by what misfits.
 */
import { assert, describe, it } from "@effect/vitest";
import { Cause, Effect, Exit, Option, Schema, Stream } from "effect";
import { AiError, LanguageModel } from "effect/ai";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import { RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import { type Answer, type Asked, aiError, call, finish, layers, text, tools } from "./Scripted.ts";
import { soon } from "./Soon.ts";

/** What an effect fails with, and how many requests it cost. */
const failing = <A, E, R>(ask: Effect.Effect<A, E, R>, answer: Answer, options?: EffectAi.Options) => {
  const asked: Asked = { prompts: [] };
  const ran: Array<string> = [];
  return ask.pipe(
    soon,
    Effect.exit,
    Effect.provide(layers([answer], ran, asked, options)),
    Effect.map((exit) => {
      const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined;
      return { error, ran, requests: asked.prompts.length };
    }),
  );
};

const reasonOf = (error: unknown): string | undefined => (AiError.isAiError(error) ? error.reason._tag : undefined);

/** Whole parts, of which generateText consists. */
const wholly = (...parts: ReadonlyArray<object>): Answer => ({ parts: parts as never });

const title = Schema.Struct({ title: Schema.String });

describe("An answer that does not fit its schema", () => {
  for (const [what, answer] of [
    ["another type", '{"title":1}'],
    ["no JSON", "I would rather not"],
    ["JSON that a limit has cut", '{"title":"A'],
    ["nothing", ""],
  ] as const)
    it.effect(`costs one request: ${what}`, () =>
      Effect.gen(function* () {
        const asking = LanguageModel.generateObject({ prompt: "x", schema: title });
        const it = yield* failing(asking, wholly({ type: "text", text: answer }, finish("stop")));
        assert.strictEqual(it.requests, 1);
        assert.strictEqual(reasonOf(it.error), "StructuredOutputError");
        assert.isTrue(AiError.isAiError(it.error) && EffectAi.interruptionOf(it.error)?.rule === "not_retryable");
      }),
    );

  it.effect("names the field that misfits", () =>
    Effect.gen(function* () {
      const asking = LanguageModel.generateObject({ prompt: "x", schema: title });
      const it = yield* failing(asking, wholly({ type: "text", text: '{"title":1}' }, finish("stop")));
      assert.match(String(it.error), /Expected string.*\["title"\]/s);
    }),
  );

  it.effect("is no damaged stream either where a part of a stream has another shape than its type", () =>
    Effect.gen(function* () {
      const misshapen = { type: "text-delta", id: "t", delta: 1 };
      const asking = Stream.runDrain(LanguageModel.streamText({ prompt: "x" }));
      const it = yield* failing(asking, wholly(...text(), misshapen, finish("stop")));
      assert.strictEqual(it.requests, 1);
      assert.strictEqual(reasonOf(it.error), "InvalidOutputError");
    }),
  );

  it.effect("is a damaged stream where a provider says that a frame cannot be read", () =>
    Effect.gen(function* () {
      const unread = aiError(new AiError.InvalidOutputError({ description: "Unexpected end of JSON input" }));
      const asking = Stream.runDrain(LanguageModel.streamText({ prompt: "x" }));
      const it = yield* failing(asking, { parts: [], error: unread }, { budget: { max_auto_retries: 2 } });
      assert.strictEqual(it.requests, 3);
      assert.strictEqual(it.error, unread);
    }),
  );
});

describe("A call of an undeclared tool", () => {
  const streamed: Answer = {
    parts: [...call("c1", "bash", { cmd: "ls" }), ...call("c2", "nope", {}), finish("tool-calls")],
  };
  const whole = wholly(
    { type: "tool-call", id: "c1", name: "bash", params: { cmd: "ls" } },
    { type: "tool-call", id: "c2", name: "nope", params: {} },
    finish("tool-calls"),
  );

  for (const [way, answer, asking] of [
    [
      "streamText",
      streamed,
      Effect.flatMap(tools, (toolkit) => Stream.runDrain(LanguageModel.streamText({ prompt: "x", toolkit }))),
    ],
    ["generateText", whole, Effect.flatMap(tools, (toolkit) => LanguageModel.generateText({ prompt: "x", toolkit }))],
  ] as const)
    it.effect(`costs one request, runs nothing and is named: ${way}`, () =>
      Effect.gen(function* () {
        const it = yield* failing(asking, answer);
        assert.strictEqual(it.requests, 1);
        assert.deepStrictEqual(it.ran, []);
        const { error } = it;
        assert.isTrue(AiError.isAiError(error) && error.reason._tag === "ToolNotFoundError");
        if (!AiError.isAiError(error) || error.reason._tag !== "ToolNotFoundError") return;
        assert.strictEqual(error.reason.toolName, "nope");
        assert.deepStrictEqual(error.reason.availableTools, ["read_file", "bash"]);
      }),
    );

  it.effect("costs one request in EffectAi.run, whose error has the typed one as its cause", () =>
    Effect.gen(function* () {
      const asking = Effect.flatMap(tools, (toolkit) => Stream.runDrain(EffectAi.run({ prompt: "x", toolkit })));
      const it = yield* failing(asking, { parts: [...call("c2", "nope", {}), finish("tool-calls")] });
      assert.strictEqual(it.requests, 1);
      assert.instanceOf(it.error, RunInterrupted);
      assert.strictEqual(
        it.error instanceof RunInterrupted ? reasonOf(it.error.cause) : undefined,
        "ToolNotFoundError",
      );
    }),
  );
});
