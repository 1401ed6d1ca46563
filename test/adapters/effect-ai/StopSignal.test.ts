/**
 * A user's Stop reaches a recovered model in every way in which it is asked, and is no other's word (law L10).
 */
import { assert, describe, it } from "@effect/vitest";
import { Cause, Context, Effect, Exit, Fiber, Layer, Option, Ref, Schema, Stream } from "effect";
import { AiError, Chat, LanguageModel, Tool, Toolkit } from "effect/ai";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { InterruptSignature } from "../../../src/runtime/contract/InterruptSignature.ts";
import { RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import { type Answer, type Asked, call, finish, layers, text } from "./Scripted.ts";
import { lines } from "./Soon.ts";

const Wait = Tool.make("wait", { success: Schema.String }).annotate(EffectAi.ToolEffect, "mutating");
const kit = Toolkit.make(Wait);

/** What the scene has come to. */
interface Seen {
  readonly asked: Asked;
  started: number;
  interrupted: number;
}

const waiting = (seen: Seen) =>
  kit.toLayer({
    wait: () =>
      Effect.suspend(() => {
        seen.started += 1;
        return Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            seen.interrupted += 1;
          }),
        );
      }),
  });

const open: Answer = { parts: text("Hel").slice(0, 2), waitFor: () => false };
const calling: Answer = { parts: [...call("c1", "wait", {}), finish("tool-calls")] };
/** Whole parts, of which generateText consists. */
const callingWhole: Answer = {
  parts: [{ type: "tool-call", id: "c1", name: "wait", params: {} }, finish("tool-calls")] as never,
};

const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)));

const end = Effect.gen(function* () {
  const [run] = yield* (yield* RunRecorder).runs({ limit: 1 });
  return run?.end?.reason ?? run?.parked ?? run?.state;
});

const ruleOf = (exit: Exit.Exit<unknown, unknown>): string | undefined => {
  const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined;
  if (error instanceof RunInterrupted) return error.rule;
  return AiError.isAiError(error) ? EffectAi.interruptionOf(error)?.rule : undefined;
};

interface Scene {
  readonly seen: Seen;
  /** Whether the moment to stop has come. */
  readonly reached: () => boolean;
}

/** Plays a way of asking until its moment, stops it, and says how it ended. */
const play = <E, R>(
  way: Effect.Effect<unknown, E, R>,
  { reached, seen }: Scene,
  stop: (fiber: Fiber.Fiber<unknown, unknown>) => Effect.Effect<unknown>,
) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(way);
    yield* Effect.repeat(turn, { until: reached });
    // A part that was sent is on its way to its consumer for some turns.
    for (let at = 0; at < 20; at += 1) yield* turn;
    yield* stop(fiber);
    const exit = yield* Fiber.await(fiber);
    return { rule: ruleOf(exit), end: yield* end, requests: seen.asked.prompts.length };
  });

const over = (answer: Answer, seen: Seen) => Layer.provideMerge(waiting(seen), layers([answer], [], seen.asked));

const scene = (): Seen => ({ asked: { prompts: [] }, started: 0, interrupted: 0 });

/** A way of asking, whatever it fails with. */
type Ways<Name extends string> = Readonly<
  Record<Name, () => Effect.Effect<unknown, unknown, Layer.Success<ReturnType<typeof over>>>>
>;

const object = Schema.Struct({ title: Schema.String });

const prompt = "go";

const ways: Ways<
  | "streamText"
  | "streamText with a toolkit"
  | "a chat with a toolkit"
  | "EffectAi.run"
  | "streamText below a timeout"
  | "streamText in a race"
> = {
  streamText: () => Stream.runDrain(LanguageModel.streamText({ prompt })),
  "streamText with a toolkit": () =>
    Effect.flatMap(kit, (toolkit) => Stream.runDrain(LanguageModel.streamText({ prompt, toolkit }))),
  "a chat with a toolkit": () =>
    Effect.flatMap(Effect.all([Chat.empty, kit]), ([chat, toolkit]) =>
      Stream.runDrain(chat.streamText({ prompt, toolkit })),
    ),
  "EffectAi.run": () => Effect.flatMap(kit, (toolkit) => Stream.runDrain(EffectAi.run({ prompt, toolkit }))),
  "streamText below a timeout": () =>
    Effect.timeout(
      Effect.flatMap(kit, (toolkit) => Stream.runDrain(LanguageModel.streamText({ prompt, toolkit }))),
      20_000,
    ),
  "streamText in a race": () =>
    Effect.raceFirst(
      Effect.never,
      Effect.flatMap(kit, (toolkit) => Stream.runDrain(LanguageModel.streamText({ prompt, toolkit }))),
    ),
};

const whole: Ways<"generateText" | "generateText with a toolkit" | "generateObject"> = {
  generateText: () => LanguageModel.generateText({ prompt }),
  "generateText with a toolkit": () =>
    Effect.flatMap(kit, (toolkit) => LanguageModel.generateText({ prompt, toolkit })),
  generateObject: () => LanguageModel.generateObject({ prompt, schema: object }),
};

/** The moment at which an answer is under way. */
const asked = (seen: Seen) => ({ seen, reached: () => seen.asked.prompts.length > 0 });
/** The moment at which the tool of a whole answer runs. */
const running = (seen: Seen) => ({ seen, reached: () => seen.started > 0 });

describe("A user's Stop by EffectAi.StopSignal", () => {
  for (const [name, way] of Object.entries({ ...ways, ...whole }))
    it.live(`ends the run in the user's name: ${name}`, () => {
      const seen = scene();
      const controller = new AbortController();
      return Effect.gen(function* () {
        const stopping = Effect.provideService(way(), EffectAi.StopSignal, controller.signal);
        const it = yield* play(stopping, asked(seen), () => Effect.sync(() => controller.abort()));
        assert.deepStrictEqual(it, { rule: "user_cancelled", end: "user_cancelled", requests: 1 });
      }).pipe(Effect.provide(over(open, seen)));
    });

  for (const [name, way] of Object.entries({ ...ways, ...whole }))
    it.live(`sends nothing once it was pressed: ${name}`, () => {
      const seen = scene();
      return Effect.gen(function* () {
        const stopping = Effect.provideService(way(), EffectAi.StopSignal, AbortSignal.abort());
        const it = yield* play(stopping, { seen, reached: () => true }, () => Effect.void);
        assert.strictEqual(it.rule, "user_cancelled");
        assert.strictEqual(it.requests, 0);
      }).pipe(Effect.provide(over(open, seen)));
    });

  for (const [name, way, answer] of [
    ["streamText", ways["streamText with a toolkit"], calling],
    ["a chat", ways["a chat with a toolkit"], calling],
    ["EffectAi.run", ways["EffectAi.run"], calling],
    ["generateText", whole["generateText with a toolkit"], callingWhole],
  ] as const)
    it.live(`reaches the tool that runs behind a whole answer: ${name}`, () => {
      const seen = scene();
      const controller = new AbortController();
      return Effect.gen(function* () {
        const stopping = Effect.provideService(way(), EffectAi.StopSignal, controller.signal);
        const it = yield* play(stopping, running(seen), () => Effect.sync(() => controller.abort()));
        assert.strictEqual(it.rule, "user_cancelled");
        assert.strictEqual(it.requests, 1);
        assert.deepStrictEqual([seen.started, seen.interrupted], [1, 1]);
      }).pipe(Effect.provide(over(answer, seen)));
    });

  it.live("leaves a history without an open call", () => {
    const seen = scene();
    const controller = new AbortController();
    return Effect.gen(function* () {
      const chat = yield* Chat.empty;
      const toolkit = yield* kit;
      const stopping = Effect.provideService(
        Stream.runDrain(chat.streamText({ prompt, toolkit })),
        EffectAi.StopSignal,
        controller.signal,
      );
      yield* play(stopping, running(seen), () => Effect.sync(() => controller.abort()));
      assert.deepStrictEqual(lines(yield* Ref.get(chat.history)), [
        "user text go",
        "assistant call c1",
        "tool result c1 true",
      ]);
    }).pipe(Effect.provide(over(calling, seen)));
  });

  it.live("is given to EffectAi.run as an option too", () => {
    const seen = scene();
    const controller = new AbortController();
    return Effect.gen(function* () {
      const way = Stream.runDrain(EffectAi.run({ prompt, signal: controller.signal }));
      const it = yield* play(way, asked(seen), () => Effect.sync(() => controller.abort()));
      assert.deepStrictEqual(it, { rule: "user_cancelled", end: "user_cancelled", requests: 1 });
    }).pipe(Effect.provide(over(open, seen)));
  });

  it.live("is no user's cancel where a time limit aborts it", () => {
    const seen = scene();
    const controller = new AbortController();
    return Effect.gen(function* () {
      const stopping = Effect.provideService(ways.streamText(), EffectAi.StopSignal, controller.signal);
      const it = yield* play(stopping, asked(seen), () =>
        Effect.sync(() => controller.abort(new DOMException("too long", "TimeoutError"))),
      );
      assert.deepStrictEqual(it, { rule: "caller_interrupted", end: "caller_interrupted", requests: 1 });
    }).pipe(Effect.provide(over(open, seen)));
  });
});

describe("A signed interrupt of a recovered model", () => {
  const signed = (fiber: Fiber.Fiber<unknown, unknown>) =>
    Fiber.interruptAs(fiber, 7, Context.make(InterruptSignature, "user"));

  for (const [name, way] of Object.entries({ ...ways, ...whole }))
    it.live(`ends the run in the user's name: ${name}`, () => {
      const seen = scene();
      return Effect.gen(function* () {
        const it = yield* play(way(), asked(seen), signed);
        assert.deepStrictEqual([it.end, it.requests], ["user_cancelled", 1]);
      }).pipe(Effect.provide(over(open, seen)));
    });

  it.live("is told from one without a signature", () => {
    const seen = scene();
    return Effect.gen(function* () {
      const it = yield* play(ways["streamText with a toolkit"](), asked(seen), Fiber.interrupt);
      assert.deepStrictEqual([it.end, it.requests], ["caller_interrupted", 1]);
    }).pipe(Effect.provide(over(open, seen)));
  });

  it.live("interrupts the tool that runs behind a whole answer", () => {
    const seen = scene();
    return Effect.gen(function* () {
      yield* play(ways["streamText with a toolkit"](), running(seen), signed);
      assert.deepStrictEqual([seen.started, seen.interrupted], [1, 1]);
    }).pipe(Effect.provide(over(calling, seen)));
  });
});
