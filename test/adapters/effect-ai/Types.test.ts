/**
 * The adapter changes no inferred type of the wrapped call: checked by the compiler, and run once so that the file is a test.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, type Effect, type Layer, Schema, type Stream } from "effect";
import { type LanguageModel, Tool, Toolkit } from "effect/ai";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import type { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import type { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(value: Same<A, B>): boolean => value;

class Database extends Context.Service<Database, { readonly name: string }>()("test/Database") {}

const Query = Tool.make("query", {
  parameters: Schema.Struct({ sql: Schema.String }),
  success: Schema.Finite,
  failure: Schema.Literal("locked"),
  dependencies: [Database],
});
const toolkit = Toolkit.make(Query);
const schema = Schema.Struct({ name: Schema.String });

/** Both models are asked the same, and the compiler compares what it infers. */
const asked = (plain: LanguageModel.LanguageModel, recovered: Effect.Success<ReturnType<typeof EffectAi.make>>) => ({
  text: [plain.generateText({ prompt: "" }), recovered.generateText({ prompt: "" })] as const,
  tools: [plain.streamText({ prompt: "", toolkit }), recovered.streamText({ prompt: "", toolkit })] as const,
  disabled: [
    plain.streamText({ prompt: "", toolkit, disableToolCallResolution: true }),
    recovered.streamText({ prompt: "", toolkit, disableToolCallResolution: true }),
  ] as const,
  object: [plain.generateObject({ prompt: "", schema }), recovered.generateObject({ prompt: "", schema })] as const,
});
type Asked = ReturnType<typeof asked>;

describe("Types", () => {
  it("a recovered model has the type of the model", () => {
    assert.isTrue(same<Effect.Success<ReturnType<typeof EffectAi.make>>, LanguageModel.LanguageModel>(true));
    assert.isTrue(
      same<
        ReturnType<typeof EffectAi.layer>,
        Layer.Layer<LanguageModel.LanguageModel, never, LanguageModel.LanguageModel | StreamProcessor | ToolGuard>
      >(true),
    );
  });

  it("parts, errors and requirements of every call are inferred as without it", () => {
    assert.isTrue(same<Asked["text"][0], Asked["text"][1]>(true));
    assert.isTrue(same<Asked["tools"][0], Asked["tools"][1]>(true));
    assert.isTrue(same<Asked["disabled"][0], Asked["disabled"][1]>(true));
    assert.isTrue(same<Asked["object"][0], Asked["object"][1]>(true));
  });

  it("run requires what the handlers of its toolkit do, and gives their errors", () => {
    type Tools = Toolkit.Tools<typeof toolkit>;
    type Run = ReturnType<typeof EffectAi.run<Tools>>;
    assert.isTrue(same<Extract<Stream.Services<Run>, Database>, Database>(true));
    assert.isTrue(same<Extract<Stream.Error<Run>, string>, "locked">(true));
  });

  it("an annotation keeps the type of its tool", () => {
    const tool = Query.annotate(EffectAi.ToolEffect, "read_only");
    assert.isTrue(same<typeof tool, typeof Query>(true));
  });
});
