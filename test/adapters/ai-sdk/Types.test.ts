import { assert, describe, it } from "@effect/vitest";
import {
  generateText,
  jsonSchema,
  type LanguageModel,
  type LanguageModelMiddleware,
  Output,
  streamText,
  tool,
  type UIMessage,
  wrapLanguageModel,
} from "ai";
import { expectTypeOf } from "vitest";
import { applyRecovery, createRecovery, recoveryTransform } from "../../../src/adapters/ai-sdk/AiSdk.ts";
import type { Model } from "../../../src/adapters/ai-sdk/Parts.ts";

const recovery = createRecovery();

const tools = {
  weather: tool({
    inputSchema: jsonSchema<{ readonly city: string }>({ type: "object" }),
    execute: async ({ city }) => ({ city, degrees: 20 }),
  }),
  steps: tool({
    inputSchema: jsonSchema<{ readonly n: number }>({ type: "object" }),
    execute: async function* ({ n }) {
      yield `step ${n}`;
    },
  }),
};

// Never called: what the compiler infers of them is the test.
const calls = {
  bare: (model: Model) => streamText({ model, tools, prompt: "" }),
  ours: (model: Model) =>
    streamText({
      model: recovery.recover(model),
      tools: recovery.guardTools(tools, { effects: { weather: "read_only" } }),
      prompt: "",
    }),
  live: (model: Model) => streamText({ ...recovery.live(model), tools: recovery.guardTools(tools), prompt: "" }),
  output: (model: Model) => streamText({ model, output: numbers, prompt: "" }),
  ourOutput: (model: Model) => streamText({ model: recovery.recover(model), output: numbers, prompt: "" }),
  whole: (model: Model) => generateText({ model, tools, prompt: "" }),
  ourWhole: (model: Model) =>
    generateText({ model: recovery.recover(model), tools: recovery.guardTools(tools), prompt: "" }),
};

const numbers = Output.object({ schema: jsonSchema<{ readonly n: number }>({ type: "object" }) });

describe("the types of a call", () => {
  it("are those of the bare call: results, parts, tool calls and outputs", () => {
    expectTypeOf(calls.ours).toEqualTypeOf(calls.bare);
    expectTypeOf(calls.live).returns.toEqualTypeOf<ReturnType<typeof calls.bare>>();
    expectTypeOf(calls.ourOutput).toEqualTypeOf(calls.output);
    expectTypeOf(calls.ourWhole).toEqualTypeOf(calls.whole);
    type Result = Awaited<ReturnType<typeof calls.ours>["toolResults"]>[number];
    expectTypeOf<Extract<Result, { toolName: "weather" }>["output"]>().toEqualTypeOf<{
      city: string;
      degrees: number;
    }>();
  });

  it("of a set of tools, of a model and of messages stay what they were", () => {
    const guarded = recovery.guardTools(tools);
    expectTypeOf(guarded).toEqualTypeOf(tools);
    assert.deepEqual(Object.keys(guarded), Object.keys(tools));
    expectTypeOf(recovery.recover).returns.toExtend<LanguageModel>();
    expectTypeOf(recovery.middleware).returns.toExtend<LanguageModelMiddleware>();
    expectTypeOf(wrapLanguageModel).toBeCallableWith({ model: {} as Model, middleware: recovery.middleware() });
    type Mine = UIMessage<{ readonly at: number }>;
    expectTypeOf(applyRecovery<Mine>).returns.toEqualTypeOf<Array<Mine>>();
    expectTypeOf(recoveryTransform).returns.toExtend<TransformStream>();
  });

  it("hold effects to the names of the set", () => {
    // @ts-expect-error there is no such tool
    recovery.guardTools(tools, { effects: { wether: "read_only" } });
    // @ts-expect-error there is no such effect
    recovery.guardTools(tools, { effects: { weather: "harmless" } });
  });
});
