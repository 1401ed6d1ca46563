/** Law L8: no answer makes a handler that runs here count as one that does not, and none starts the like of it beside it. */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import type { Choice } from "../../../src/domain/Decision.ts";
import type { Question } from "../../../src/recorder/Question.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { ProcessorConfig, StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

const asking = (ask: (question: Question) => Choice) =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(
      Layer.merge(
        RunRecorder.layerMemory(),
        Layer.succeed(UserDecisions, { ask: (question) => Effect.sync(() => ask(question)) }),
      ),
    ),
    Layer.provide(Layer.succeed(ProcessorConfig, { drainMs: 50 })),
  );

/** A tool that takes a while, and how many of its handlers ran at once. */
const paying = (effect: "mutating" | "readOnly" = "mutating") =>
  Effect.gen(function* () {
    const guard = yield* ToolGuard;
    const counts = { running: 0, most: 0, ran: 0 };
    const handler = Effect.acquireUseRelease(
      Effect.sync(() => {
        counts.running += 1;
        counts.ran += 1;
        counts.most = Math.max(counts.most, counts.running);
      }),
      () => Effect.sleep("1 minute"),
      () => Effect.sync(() => (counts.running -= 1)),
    );
    return { counts, tool: guard[effect]("pay", () => handler) };
  });

type Paying = Effect.Success<ReturnType<typeof paying>>;

/** Runs each call beside the stream, as an agent does. */
const calling =
  ({ tool }: Paying) =>
  (event: RunEvent<S.ScriptedPart>) =>
    event._tag === "Part"
      ? Effect.forEach(event.calls ?? [], (call) => Effect.forkDetach(Effect.exit(tool.run(call, undefined))), {
          discard: true,
        })
      : Effect.void;

const broken = [S.callReady("pay"), S.wait(10), S.reset];
const again = [S.callReady("pay"), S.done];

describe("L8 an answer that meets a handler which runs", () => {
  for (const wanted of ["it_did_not_run", "it_ran", "retry"] as const) {
    for (const canContinue of [true, false]) {
      it.effect(`${wanted}${canContinue ? "" : ", without a continuation"}: never two handlers at once`, () => {
        const asked: Array<Question> = [];
        const layer = asking((question) => {
          asked.push(question);
          return question.choices.includes(wanted) ? wanted : "stop";
        });
        return Effect.gen(function* () {
          const pay = yield* paying();
          const provider = S.scripted(broken, again, again, again);
          const options = S.options(provider, { runId: "r", tools: [pay.tool], canContinue });
          yield* S.played((yield* StreamProcessor).run(options), calling(pay));
          assert.strictEqual(pay.counts.most, 1);
          assert.notInclude(asked[0]?.choices ?? [], "it_did_not_run");
          assert.notInclude(asked[0]?.choices ?? [], "it_ran");
          assert.isAtLeast(asked[0]?.choices.length ?? 0, 2);
        }).pipe(Effect.provide(layer));
      });
    }
  }

  it.effect("the retry waits until the handler has ended, and the question is then put on what it did", () => {
    const asked: Array<string> = [];
    const layer = asking((question) => {
      asked.push(question.rule);
      return "retry";
    });
    return Effect.gen(function* () {
      const pay = yield* paying();
      const options = S.options(S.scripted(broken, again), { runId: "r", tools: [pay.tool] });
      const seen = yield* S.played((yield* StreamProcessor).run(options), calling(pay));
      assert.deepStrictEqual(asked, ["tool_outcome_unknown", "tool_ran"]);
      assert.strictEqual(seen.lines.at(-1), "completed");
      const { incidents } = yield* S.recordOf("r");
      assert.notInclude(
        incidents.map(({ status }) => status),
        "late",
      );
    }).pipe(Effect.provide(layer));
  });

  it.effect("a user's cancel ends that wait", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const pay = yield* paying();
      const options = S.options(S.scripted(broken), { runId: "r", tools: [pay.tool] });
      const fiber = yield* Effect.forkChild(S.watch(processor.run(options), calling(pay)));
      yield* TestClock.adjust("10 seconds");
      yield* processor.cancel("r");
      yield* TestClock.adjust("10 seconds");
      assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "end do_not_retry user_cancelled");
    }).pipe(Effect.provide(asking(() => "retry"))),
  );

  it.effect(
    "of two calls a word is asked for once no handler runs, and settles the one that did not say what it did",
    () => {
      const asked: Array<Question> = [];
      const layer = asking((question) => {
        asked.push(question);
        return question.choices.includes("it_did_not_run") ? "it_did_not_run" : "retry";
      });
      return Effect.gen(function* () {
        const pay = yield* paying();
        const dies = (yield* ToolGuard).mutating("dies", () => Effect.die("killed"));
        const provider = S.scripted([S.callReady("pay", 0), S.callReady("dies", 1), S.wait(10), S.reset], again);
        const options = S.options(provider, { runId: "r", tools: [pay.tool, dies], canContinue: true });
        const seen = yield* S.played((yield* StreamProcessor).run(options), (event) =>
          event._tag === "Part" && event.calls?.[0] !== undefined && event.attempt === 1
            ? Effect.forkDetach(
                Effect.exit(
                  event.calls[0].tool === "dies" ? dies.run(event.calls[0], 0) : pay.tool.run(event.calls[0], 0),
                ),
              )
            : Effect.void,
        );
        assert.deepStrictEqual(
          asked.map(({ choices }) => choices.includes("it_did_not_run")),
          [false, true],
        );
        assert.strictEqual(seen.lines.at(-1), "completed");
        const verdicts = (yield* S.recordOf("r")).calls.map(({ tool, verdict }) => [tool, verdict]);
        assert.deepInclude(verdicts, ["dies", "it_did_not_run"]);
        assert.deepInclude(verdicts, ["pay", undefined]);
        assert.deepStrictEqual(
          provider.attempts.at(-1)?.calls.map(({ outcome, tool }) => [tool, outcome]),
          [
            ["pay", "settled"],
            ["dies", "it_did_not_run"],
          ],
        );
      }).pipe(Effect.provide(layer));
    },
  );

  it.effect("a handler that only reads holds up no retry", () =>
    Effect.gen(function* () {
      const look = yield* paying("readOnly");
      const provider = S.scripted([S.text("a"), ...broken], [S.text("b"), S.done]);
      const options = S.options(provider, { runId: "r", tools: [look.tool] });
      const started = yield* Effect.forkChild(S.watch((yield* StreamProcessor).run(options), calling(look)));
      yield* TestClock.adjust("10 seconds");
      assert.strictEqual((yield* Fiber.join(started)).lines.at(-1), "completed");
      assert.strictEqual(look.counts.running, 1);
    }).pipe(Effect.provide(asking(() => "retry"))),
  );
});

describe("L8 a run that is parked while a handler of it runs", () => {
  it.effect("stays with this process until the handler has ended, and is then free with what it did", () => {
    const layer = StreamProcessor.layer.pipe(
      Layer.provideMerge(
        Layer.merge(S.recorderThat({}), Layer.succeed(UserDecisions, { ask: () => Effect.succeed("parked" as const) })),
      ),
      Layer.provide(Layer.succeed(ProcessorConfig, { drainMs: 50 })),
    );
    return Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const pay = yield* paying();
      const options = S.options(S.scripted(broken), { tools: [pay.tool], canContinue: true, transcript: "t" });
      const begun = yield* Deferred.make<void>();
      const call = calling(pay);
      const fiber = yield* Effect.forkChild(
        S.watch(processor.run({ ...options, runId: "r" }), (event) =>
          Effect.andThen(Deferred.succeed(begun, undefined), call(event)),
        ),
      );
      // The transcript's digest is no matter of the virtual clock.
      yield* Deferred.await(begun);
      yield* TestClock.adjust("10 seconds");
      assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "end parked tool_outcome_unknown");
      assert.isUndefined((yield* S.recordOf("r")).parked);
      const early = yield* S.watch(processor.takeUp("r", { request: options, transcript: "t" }));
      assert.strictEqual(S.errorOf(early.exit)?.reason, "refused");
      yield* TestClock.adjust("1 minute");
      const record = yield* S.recordOf("r");
      assert.strictEqual(record.parked, "question");
      assert.strictEqual(record.attempts[0]?.facts.tools[0]?.phase, "settled");
      const provider = S.scripted([S.text("all"), S.done]);
      const late = { ...options, attempt: provider.attempt, canContinue: provider.attempt };
      const resumed = yield* Deferred.make<void>();
      const going = yield* Effect.forkChild(
        S.watch(processor.takeUp("r", { request: late, transcript: "t" }), () => Deferred.succeed(resumed, undefined)),
      );
      yield* Deferred.await(resumed);
      yield* TestClock.adjust("1 minute");
      assert.strictEqual((yield* Fiber.join(going)).lines.at(-1), "completed");
      assert.strictEqual(pay.counts.ran, 1);
    }).pipe(Effect.provide(layer));
  });
});
