/**
 * A run that was started without its transcript, like those of the adapters and of the gateway, cannot be continued by any process: it
 * is never offered, its questions have no choice that requires a continuation, and it can always be ended and deleted.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer, References, Stream } from "effect";
import { LanguageModel } from "effect/ai";
import { TestClock } from "effect/testing";
import { createRecovery } from "../../../src/adapters/ai-sdk/AiSdk.ts";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import { recoveringFetch } from "../../../src/adapters/fetch/FetchRecovery.ts";
import type { QuestionRecord, RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import type { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import { found, until } from "../../Polling.ts";
import * as L from "../crash/Lives.ts";

const lives: Readonly<Record<string, L.Life>> = {
  ...L.lives,
  "its question was open": (L.lives["its question was parked"] ?? []).slice(0, -1),
  "its question about a call was open": (L.lives["a tool's outcome was told: it ran"] ?? []).slice(0, -1),
  "an earlier release had offered it": [[L.begun(), L.attempt(1)], [L.raised(1, L.facts())], [L.parked("recovered")]],
};

const memory = () => Layer.fresh(RunRecorder.layerMemory());

const planted = (life: L.Life) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(1_000);
    const recorder = yield* RunRecorder;
    for (const entries of life) yield* recorder.write(L.runId, entries.map(L.withoutTranscript));
    yield* recorder.release(L.runId);
    return recorder;
  });

/** A run that asked about a call, with its own terms, when its process died. */
const askedOnTerms = (terms: Pick<QuestionRecord, "default_choice" | "expires_at">): L.Life => {
  const broken = L.incident(1, L.dispatched);
  return [
    [L.begun(), L.attempt(1)],
    [L.raised(1, L.dispatched), L.opened(broken), L.asked(broken, terms)],
  ];
};

const openChoices = ({ questions, state }: RunRecord): ReadonlyArray<string> =>
  state === "asking" ? (questions.at(-1)?.choices ?? []) : [];

describe("A run without its transcript whose process died", () => {
  for (const [name, life] of Object.entries(lives))
    it.effect(`is not offered, and can be ended and deleted: when ${name}`, () =>
      Effect.gen(function* () {
        const recorder = yield* planted(life);
        const report = yield* CrashRecovery.recover();
        assert.deepStrictEqual([report.counts.offered, report.counts.answered], [0, 0]);
        assert.deepStrictEqual((yield* CrashRecovery.recover()).runs, [], "the second sweep finds nothing");
        const record = yield* recorder.run(L.runId);
        const choices = record === undefined ? [] : openChoices(record);
        assert.isFalse(choices.includes("retry") || choices.includes("continue"), choices.join());
        const revision = record?.questions.at(-1)?.revision;
        if (choices.length > 0 && revision !== undefined) {
          const stop = { run_id: L.runId, revision, choice: "stop", by: "person" } as const;
          assert.strictEqual((yield* CrashRecovery.answer(stop)).state, "ended");
        }
        assert.strictEqual((yield* recorder.run(L.runId))?.state, "ended");
        yield* recorder.prune({ keep: 0 });
        assert.isUndefined(yield* recorder.run(L.runId));
      }).pipe(Effect.provide(memory())),
    );

  it.effect("records in its end why it could not continue, next to its decision", () =>
    Effect.gen(function* () {
      const recorder = yield* planted(lives["nothing was shown"] ?? []);
      const { runs } = yield* CrashRecovery.recover();
      assert.deepStrictEqual(
        runs.map(({ outcome, rule }) => [outcome, rule]),
        [["stopped", "nothing_shown"]],
      );
      const record = yield* recorder.run(L.runId);
      assert.strictEqual(record?.end?.reason, "not_resumable");
      assert.strictEqual(record?.incidents.at(-1)?.decision.action, "auto_retry_once");
    }).pipe(Effect.provide(memory())),
  );

  it.effect("asks no further question if no choice has an effect, because the waiting caller has left", () =>
    Effect.gen(function* () {
      const recorder = yield* planted(lives["its question was open"] ?? []);
      yield* CrashRecovery.recover({ unresumable: () => "client_gone" });
      assert.strictEqual((yield* recorder.run(L.runId))?.end?.reason, "client_gone");
    }).pipe(Effect.provide(memory())),
  );

  it.effect("keeps the deadline and the default of a question that is asked again, and applies them in time", () =>
    Effect.gen(function* () {
      const recorder = yield* planted(askedOnTerms({ expires_at: 20_000, default_choice: "it_ran" }));
      yield* CrashRecovery.recover();
      const anew = (yield* recorder.run(L.runId))?.questions.at(-1);
      assert.deepInclude(anew, { revision: 2, expires_at: 20_000, default_choice: "it_ran" });
      yield* TestClock.setTime(20_000);
      yield* CrashRecovery.recover();
      const record = yield* recorder.run(L.runId);
      assert.deepInclude(record?.questions.at(-1), { answer: "it_ran", answered_by: "expiry" });
      assert.deepStrictEqual([record?.calls[0]?.verdict, record?.end?.reason], ["it_ran", "not_resumable"]);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("repeats a question with its original terms, whatever the settings of the repeating process", () =>
    Effect.gen(function* () {
      const terms = { expiryMs: 60_000, defaults: { tool_outcome_unknown: "it_did_not_run" } } as const;
      const asked = [
        [{ expires_at: 20_000, default_choice: "stop" }, [20_000, "stop"]],
        [{ expires_at: 20_000, default_choice: "retry" }, [20_000, "stop"]],
        [{ default_choice: "it_ran" }, [undefined, "it_ran"]],
      ] as const;
      for (const [before, after] of asked) {
        const anew = yield* Effect.gen(function* () {
          const recorder = yield* planted(askedOnTerms(before));
          yield* CrashRecovery.recover({ terms });
          return (yield* recorder.run(L.runId))?.questions.at(-1);
        }).pipe(Effect.provide(memory()));
        assert.deepStrictEqual([anew?.revision, anew?.expires_at, anew?.default_choice], [2, ...after]);
      }
    }),
  );

  it.effect("asks about a call that may have run, without any choice that needs its request", () =>
    Effect.gen(function* () {
      const recorder = yield* planted(lives["a tool was under way"] ?? []);
      yield* CrashRecovery.recover();
      const record = yield* recorder.run(L.runId);
      assert.deepStrictEqual(record && openChoices(record), ["it_ran", "it_did_not_run", "stop"]);
      const given = { run_id: L.runId, revision: 1, choice: "it_ran", by: "person" } as const;
      assert.strictEqual((yield* CrashRecovery.answer(given)).end?.reason, "not_resumable");
    }).pipe(Effect.provide(memory())),
  );
});

const durable = () =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(UserDecisions.layerDurable({ parkAfterMs: 20 })),
    Layer.provideMerge(SqlRunRecorder.layerFile({ file: ":memory:", retention: false })),
    Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "None")),
  );

const stands = Effect.flatMap(RunRecorder, (recorder) =>
  found(
    Effect.map(recorder.runs({ limit: 1 }), ([run]) =>
      run === undefined || run.state === "live" ? undefined : [run.state, run.parked ?? run.end?.reason],
    ),
  ),
);

const shown = [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "Hel" },
] as const;

/** A model that shows a text and then breaks or hangs. */
const effectAi = (after: "breaks" | "hangs") =>
  EffectAi.layer().pipe(
    Layer.provide(
      Layer.effect(
        LanguageModel.LanguageModel,
        LanguageModel.make({
          streamText: () => Stream.concat(Stream.fromIterable(shown), after === "hangs" ? Stream.never : Stream.empty),
          generateText: () => Effect.never,
        }),
      ),
    ),
  );

describe("A run of an adapter on a durable recorder", () => {
  it.live("ends if its caller leaves it, in Effect AI", () =>
    Effect.gen(function* () {
      const seen: Array<string> = [];
      const asking = Stream.runForEach(LanguageModel.streamText({ prompt: "x" }), (part) =>
        Effect.sync(() => seen.push(part.type)),
      );
      const fiber = yield* Effect.forkChild(asking);
      yield* until(() => seen.length >= 2);
      yield* Fiber.interrupt(fiber);
      assert.deepStrictEqual(yield* stands, ["ended", "caller_interrupted"]);
    }).pipe(Effect.provide(Layer.provideMerge(effectAi("hangs"), durable()))),
  );

  it.live("ends if its question stays unanswered, in Effect AI", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Stream.runDrain(LanguageModel.streamText({ prompt: "x" })));
      assert.strictEqual(EffectAi.interruptionOf(error)?.reason, "stopped");
      assert.deepStrictEqual(yield* stands, ["ended", "text_shown"]);
    }).pipe(Effect.provide(Layer.provideMerge(effectAi("breaks"), durable()))),
  );

  it.live("ends if its caller's time is over, in the AI SDK and in fetch", () =>
    Effect.gen(function* () {
      const services = yield* Effect.context<StreamProcessor | ToolGuard | RunRecorder>();
      const limit = () => AbortSignal.timeout(30);
      const recorded = Layer.succeedContext(services);
      const fetch = recoveringFetch({ layer: recorded, fetch: () => new Promise(() => undefined) });
      const body = JSON.stringify({ model: "m", stream: true, messages: [] });
      const fetched = fetch("https://provider.test/v1/chat/completions", { method: "POST", body, signal: limit() });
      yield* Effect.promise(() => fetched.catch(() => undefined));
      assert.deepStrictEqual(yield* stands, ["ended", "caller_interrupted"]);
      const recovery = createRecovery({ layer: recorded });
      const model = recovery.recover({
        specificationVersion: "v4",
        provider: "own",
        modelId: "m",
        supportedUrls: {},
        doStream: () => new Promise(() => undefined),
        doGenerate: () => new Promise(() => undefined),
      });
      const generated = model.doGenerate({ prompt: [], abortSignal: limit() });
      yield* Effect.promise(() => Promise.resolve(generated).catch(() => undefined));
      assert.deepStrictEqual(yield* stands, ["ended", "caller_interrupted"]);
      assert.strictEqual((yield* (yield* RunRecorder).runs()).length, 2);
      yield* Effect.promise(() => Promise.all([fetch.close(), recovery.close()]));
    }).pipe(Effect.provide(durable())),
  );
});
