import { assert, describe, it } from "@effect/vitest";
import { Effect, Stream } from "effect";
import { Prompt, Toolkit } from "effect/ai";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import {
  type Answer,
  type Asked,
  Bash,
  call,
  finish,
  layers,
  metadata,
  ReadFile,
  reset,
  text,
  tools,
} from "./Scripted.ts";
import { lines, soon } from "./Soon.ts";

/** One step, its events in short, and the history that they leave. */
const step = (answers: ReadonlyArray<Answer>, ran: Array<string>, asked?: Asked) =>
  Effect.gen(function* () {
    const toolkit = yield* tools;
    const seen: Array<string> = [];
    const transcript = new EffectAi.Transcript();
    yield* EffectAi.run({ prompt: "go", toolkit }).pipe(
      Stream.runForEach((event) =>
        Effect.sync(() => {
          transcript.take(event);
          if (event._tag === "Part") seen.push(event.part.type === "text-delta" ? event.part.delta : event.part.type);
          else if (event._tag === "ToolSettled") seen.push(`settled ${event.part.id}`);
          else if (event._tag === "RetryScheduled") seen.push(`${event.mode} ${event.rule}`);
          else if (event._tag === "AttemptDiscarded") seen.push(`discard ${event.attempt} after ${event.keep_through}`);
          else seen.push(event._tag);
        }),
      ),
      soon,
    );
    return { seen, history: lines(Prompt.concat(Prompt.make("go"), transcript.prompt())) };
  }).pipe(Effect.provide(layers(answers, ran, asked)));

const whole: Answer = { parts: [metadata, ...text("Hel", "lo"), finish("stop")] };

describe("EffectAi.run", () => {
  it.effect("hands parts on as they come, withdraws what a break leaves and repeats only what is safe", () =>
    Effect.gen(function* () {
      const ran: Array<string> = [];
      const thinking: Answer["parts"] = [
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "hm" },
      ];
      const it = yield* step([{ parts: thinking, error: reset }, whole], ran);
      assert.include(it.seen, "replay only_reasoning_shown");
      assert.include(it.seen, "discard 1 after 0");
      assert.deepStrictEqual(it.history, ["user text go", "assistant text Hello"]);
    }),
  );

  it.effect("continues from a settled call after a break: the request contains the call and its result", () =>
    Effect.gen(function* () {
      const ran: Array<string> = [];
      const asked: Asked = { prompts: [] };
      const broken: Answer = {
        parts: [...text("let me see"), ...call("c1", "bash", { cmd: "ls" })],
        waitFor: () => ran.length > 0,
        error: reset,
      };
      const it = yield* step([broken, whole], ran, asked);
      assert.deepStrictEqual(ran, ["bash ls"]);
      assert.include(it.seen, "continue tools_settled");
      assert.include(it.seen, "settled c1");
      const sent = asked.prompts[1]?.prompt;
      assert.deepStrictEqual(sent && lines(sent), [
        "user text go",
        "assistant text let me see",
        "assistant call c1",
        "tool result c1 false",
      ]);
      assert.deepStrictEqual(it.history, [...(sent ? lines(sent) : []), "assistant text Hello"]);
      assert.strictEqual(it.seen.at(-1), "RunCompleted");
    }),
  );

  it.effect("reports the results of calls before the run completes", () =>
    Effect.gen(function* () {
      const ran: Array<string> = [];
      const parts = [
        ...call("c1", "read_file", { path: "a" }),
        ...call("c2", "bash", { cmd: "ls" }),
        finish("tool-calls"),
      ];
      const it = yield* step([{ parts }], ran);
      assert.deepStrictEqual([...ran].sort(), ["bash ls", "read_file a"]);
      assert.strictEqual(it.seen.at(-1), "RunCompleted");
      assert.includeMembers(it.seen, ["settled c1", "settled c2"]);
    }),
  );

  it.effect("runs no tool that needs an approval", () =>
    Effect.gen(function* () {
      const ran: Array<string> = [];
      const seen: Array<unknown> = [];
      const parts = [...call("c1", "bash", { cmd: "rm" }), finish("tool-calls")];
      const careful = Toolkit.make(Bash.setNeedsApproval(true), ReadFile);
      yield* Effect.gen(function* () {
        const toolkit = yield* careful;
        yield* EffectAi.run({ prompt: "go", toolkit }).pipe(
          Stream.runForEach((event) => Effect.sync(() => event._tag === "ToolSettled" && seen.push(event.part.result))),
          soon,
        );
      }).pipe(Effect.provide(layers([{ parts }], ran)));
      assert.deepStrictEqual(ran, []);
      assert.include(JSON.stringify(seen), "execution-denied");
    }),
  );
});
