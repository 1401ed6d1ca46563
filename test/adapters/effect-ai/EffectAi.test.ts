import { assert, describe, it } from "@effect/vitest";
import { Cause, Effect, Exit, Option, Ref, Schema, Stream } from "effect";
import { AiError, Chat, LanguageModel, Prompt, Toolkit } from "effect/ai";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import {
  type Answer,
  type Asked,
  aiError,
  Bash,
  call,
  finish,
  layers,
  metadata,
  reset,
  text,
  tools,
} from "./Scripted.ts";
import { lines, soon } from "./Soon.ts";

/** One turn of a chat with tools, and what is left of it. */
const turn = (answers: ReadonlyArray<Answer>, asked?: Asked, options?: EffectAi.Options) => {
  const ran: Array<string> = [];
  return Effect.gen(function* () {
    const chat = yield* Chat.empty;
    const toolkit = yield* tools;
    const seen: Array<string> = [];
    const result = yield* chat.streamText({ prompt: "go", toolkit }).pipe(
      Stream.runForEach((part) => Effect.sync(() => seen.push(part.type === "text-delta" ? part.delta : part.type))),
      Effect.exit,
      soon,
    );
    const history = lines(yield* Ref.get(chat.history));
    const error = Exit.isFailure(result) ? Option.getOrUndefined(Cause.findErrorOption(result.cause)) : undefined;
    return { seen, ran, history, error, failed: Exit.isFailure(result) };
  }).pipe(Effect.provide(layers(answers, ran, asked, options)));
};

const whole: Answer = { parts: [metadata, ...text("Hel", "lo"), finish("stop")] };

describe("A recovered language model", () => {
  it.effect("passes a healthy stream through as it is", () =>
    Effect.gen(function* () {
      const it = yield* turn([whole]);
      assert.deepStrictEqual(it.seen, ["response-metadata", "text-start", "Hel", "lo", "text-end", "finish"]);
      assert.deepStrictEqual(it.history, ["user text go", "assistant text Hello"]);
    }),
  );

  it.effect("replays a break before the first word unseen", () =>
    Effect.gen(function* () {
      const it = yield* turn([{ parts: [metadata, { type: "text-start", id: "t" }], error: reset }, whole]);
      assert.deepStrictEqual(it.seen, ["response-metadata", "text-start", "Hel", "lo", "text-end", "finish"]);
      assert.isUndefined(it.error);
    }),
  );

  it.effect("ends with the provider's own error once text was shown, and says why", () =>
    Effect.gen(function* () {
      const it = yield* turn([{ parts: [metadata, ...text("Hel").slice(0, 2)], error: reset }, whole]);
      assert.strictEqual(it.error, reset);
      const interrupted = EffectAi.interruptionOf(reset);
      assert.strictEqual(interrupted?.rule, "text_shown");
      assert.deepStrictEqual(it.history, ["user text go", "assistant text Hel"]);
    }),
  );

  it.effect("replays a break behind text unseen where answers are handed over whole", () =>
    Effect.gen(function* () {
      const it = yield* turn([{ parts: text("Hel").slice(0, 2), error: reset }, whole], undefined, {
        reveal: "on_complete",
      });
      assert.isUndefined(it.error);
      assert.deepStrictEqual(it.history, ["user text go", "assistant text Hello"]);
    }),
  );

  it.effect("treats a clean end without a finish as a failure", () =>
    Effect.gen(function* () {
      const it = yield* turn([{ parts: text("Hel") }, whole]);
      assert.instanceOf(it.error, AiError.AiError);
      assert.strictEqual(it.error && EffectAi.interruptionOf(it.error)?.failure.kind, "truncated");
    }),
  );

  it.effect("runs a call once, after its answer is whole, however often the answer broke", () =>
    Effect.gen(function* () {
      const broken = { parts: call("c1", "bash", { cmd: "ls" }), error: reset };
      const it = yield* turn([broken, broken, { parts: [...call("c1", "bash", { cmd: "ls" }), finish("tool-calls")] }]);
      assert.isUndefined(it.error);
      assert.deepStrictEqual(it.ran, ["bash ls"]);
      assert.deepStrictEqual(it.history, ["user text go", "assistant call c1", "tool result c1 false"]);
    }),
  );

  it.effect("distinguishes calls with the same id", () =>
    Effect.gen(function* () {
      const parts = [...call("", "read_file", { path: "a" }), ...call("", "bash", { cmd: "ls" }), finish("tool-calls")];
      const it = yield* turn([{ parts }]);
      assert.isUndefined(it.error);
      assert.deepStrictEqual([...it.ran].sort(), ["bash ls", "read_file a"]);
    }),
  );

  it.effect("asks before it repeats what a hosted tool of unknown effect may have done", () =>
    Effect.gen(function* () {
      const parts = [...call("c1", "bash", { cmd: "ls" }, true)];
      const it = yield* turn([{ parts, error: reset }, whole]);
      assert.strictEqual(it.error, reset);
      assert.strictEqual(EffectAi.interruptionOf(reset)?.rule, "provider_tool_activity");
    }),
  );

  it.effect("fails the step when the model calls an undeclared tool", () =>
    Effect.gen(function* () {
      const it = yield* turn([{ parts: [...call("c1", "nope", {}), finish("tool-calls")] }]);
      assert.strictEqual(it.error instanceof AiError.AiError && it.error.reason._tag, "ToolNotFoundError");
      assert.deepStrictEqual(it.ran, []);
    }),
  );

  it.effect("closes the calls of a failing handler in the history", () =>
    Effect.gen(function* () {
      const parts = [
        ...call("c1", "bash", { cmd: "fail" }),
        ...call("c2", "bash", { cmd: "die" }),
        finish("tool-calls"),
      ];
      const it = yield* turn([{ parts }]);
      assert.isTrue(it.failed);
      const results = it.history.filter((line) => line.startsWith("tool result")).map((line) => line.split(" ")[2]);
      assert.deepStrictEqual([...results].sort(), ["c1", "c2"]);
    }),
  );

  it.effect("closes in the next request what a consumer that stopped listening left open", () => {
    const asked: Asked = { prompts: [] };
    const parts = [...call("c1", "bash", { cmd: "wait" }), finish("tool-calls")];
    return Effect.gen(function* () {
      const chat = yield* Chat.empty;
      const toolkit = yield* tools;
      const first = chat.streamText({ prompt: "go", toolkit });
      yield* first.pipe(
        Stream.takeUntil((part) => part.type === "tool-call"),
        Stream.runDrain,
      );
      yield* Stream.runDrain(chat.streamText({ prompt: "and now?", toolkit }));
      const sent = asked.prompts[1]?.prompt;
      assert.deepStrictEqual(sent && lines(sent), [
        "user text go",
        "assistant call c1",
        "tool result c1 true",
        "user text and now?",
      ]);
    }).pipe(Effect.provide(layers([{ parts }, whole], [], asked)));
  });

  it.effect("lets the caller resolve calls by itself, and delivers only whole calls", () =>
    Effect.gen(function* () {
      const toolkit = yield* tools;
      const broken = { parts: call("c1", "bash", { cmd: "ls" }).slice(0, 2), error: reset };
      const ran: Array<string> = [];
      const seen = yield* LanguageModel.streamText({ prompt: "go", toolkit, disableToolCallResolution: true }).pipe(
        Stream.runCollect,
        soon,
        Effect.provide(layers([broken, { parts: [...call("c1", "bash", { cmd: "ls" }), finish("tool-calls")] }], ran)),
      );
      const types = seen.map((part) => part.type);
      assert.deepStrictEqual(types, [
        "tool-params-start",
        "tool-params-delta",
        "tool-params-end",
        "tool-call",
        "finish",
      ]);
      assert.deepStrictEqual(ran, []);
    }).pipe(Effect.provide(layers([whole], []))),
  );

  it.effect("reports invalid parameters where effect/ai does, without a retry", () =>
    Effect.gen(function* () {
      const asked: Asked = { prompts: [] };
      const it = yield* turn([{ parts: [...call("c1", "bash", { wrong: 1 }), finish("tool-calls")] }], asked);
      assert.strictEqual(it.error instanceof AiError.AiError && it.error.reason._tag, "ToolParameterValidationError");
      assert.strictEqual(asked.prompts.length, 1);
      assert.deepStrictEqual(it.history, ["user text go", "assistant call c1", "tool result c1 true"]);
    }),
  );

  it.effect("classifies AiError: a rejected key is not repeated, an overload is", () =>
    Effect.gen(function* () {
      const key = aiError(new AiError.AuthenticationError({ kind: "InvalidKey" }));
      const rejected = yield* turn([{ parts: [], error: key }, whole]);
      assert.strictEqual(rejected.error, key);
      const overloaded = aiError(new AiError.InternalProviderError({ description: "overloaded" }));
      const repeated = yield* turn([{ parts: [], error: overloaded }, whole]);
      assert.isUndefined(repeated.error);
    }),
  );

  it.effect("never takes a finish that says error for the end", () =>
    Effect.gen(function* () {
      const it = yield* turn([{ parts: [metadata, finish("error")] }, whole]);
      assert.isUndefined(it.error);
      assert.deepStrictEqual(it.history, ["user text go", "assistant text Hello"]);
    }),
  );

  it.effect("reads an error part as a failure of the stream", () =>
    Effect.gen(function* () {
      const it = yield* turn([{ parts: [{ type: "error", error: reset }] }, whole]);
      assert.isUndefined(it.error);
      assert.deepStrictEqual(it.history, ["user text go", "assistant text Hello"]);
    }),
  );
});

describe("A recovered language model and approvals", () => {
  it.effect("runs an approved call once, although the request behind it broke", () => {
    const ran: Array<string> = [];
    const careful = Toolkit.make(Bash.setNeedsApproval(true));
    const parts = [...call("c1", "bash", { cmd: "rm" }), finish("tool-calls")];
    return Effect.gen(function* () {
      const chat = yield* Chat.empty;
      const toolkit = yield* careful;
      let approvalId = "";
      yield* chat.streamText({ prompt: "go", toolkit }).pipe(
        Stream.runForEach((part) =>
          Effect.sync(() => {
            if (part.type === "tool-approval-request") approvalId = part.approvalId;
          }),
        ),
      );
      assert.deepStrictEqual(ran, []);
      const approval = Prompt.toolMessage({
        content: [Prompt.toolApprovalResponsePart({ approvalId, approved: true })],
      });
      yield* soon(Stream.runDrain(chat.streamText({ prompt: Prompt.fromMessages([approval]), toolkit })));
      assert.deepStrictEqual(ran, ["bash rm"]);
      assert.include(lines(yield* Ref.get(chat.history)), "assistant text Hello");
    }).pipe(Effect.provide(layers([{ parts }, { parts: [], error: reset }, whole], ran)));
  });
});

describe("A recovered language model, whole answers", () => {
  const parts = [{ type: "text", text: '{"name":"Ada"}' } as const, finish("stop")];
  const answers = [{ parts: [], error: reset }, { parts: parts as never }]; // whole parts, of which generateText consists

  it.effect("generateText is replayed", () =>
    Effect.gen(function* () {
      const response = yield* soon(LanguageModel.generateText({ prompt: "who" }));
      assert.strictEqual(response.text, '{"name":"Ada"}');
      assert.strictEqual(response.finishReason, "stop");
    }).pipe(Effect.provide(layers(answers, []))),
  );

  it.effect("generateObject is replayed and decoded", () =>
    Effect.gen(function* () {
      const schema = Schema.Struct({ name: Schema.String });
      const response = yield* soon(LanguageModel.generateObject({ prompt: "who", schema }));
      assert.deepStrictEqual(response.value, { name: "Ada" });
    }).pipe(Effect.provide(layers(answers, []))),
  );

  it.effect("generateText runs the calls of a toolkit once", () => {
    const ran: Array<string> = [];
    const call = { type: "tool-call", id: "c1", name: "bash", params: { cmd: "ls" } } as const;
    return Effect.gen(function* () {
      const toolkit = yield* tools;
      const response = yield* soon(LanguageModel.generateText({ prompt: "go", toolkit }));
      assert.deepStrictEqual(ran, ["bash ls"]);
      assert.strictEqual(response.toolResults.length, 1);
    }).pipe(
      Effect.provide(layers([{ parts: [], error: reset }, { parts: [call, finish("tool-calls")] as never }], ran)), // as above
    );
  });
});
