/**
 * A volatile run asks about a broken response while one of its handlers still runs. A person in another process answers in the same step
 * in which that handler settles (L1, L8).
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Exit, Layer, Stream } from "effect";
import { TestClock } from "effect/testing";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { ProcessorConfig, StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { faulty } from "./FaultyStore.ts";

/** Plays the run up to its question, then lets both happen in one step. */
const played = (order: "answer first" | "settle first", record: "first" | "behind") =>
  Effect.gen(function* () {
    const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
    const store = faulty(memory, () => undefined);
    const services = yield* Layer.build(
      StreamProcessor.layer.pipe(
        Layer.provide(UserDecisions.layerDurable({ parkAfterMs: 600_000, pollMs: 1_000 })),
        Layer.provide(Layer.succeed(RunRecorder, store.recorder)),
        Layer.provideMerge(Layer.succeed(ProcessorConfig, { drainMs: 50 })),
      ),
    );
    const over = yield* Deferred.make<void>();
    let started = 0;
    const build = Context.get(services, ToolGuard).mutating("build", () =>
      Effect.andThen(
        Effect.sync(() => {
          started += 1;
        }),
        Deferred.await(over),
      ),
    );
    const provider = S.scripted([S.start, S.callReady("build"), S.wait(1_000), S.reset], S.hello);
    const lines: Array<string> = [];
    const run = Context.get(services, StreamProcessor).run(
      S.options(provider, { tools: [build], runId: "r", record, transcript: "t" }),
    );
    const consumed = Stream.runForEach(run, (event) => {
      lines.push(S.line(event));
      const calls = event._tag === "Part" ? (event.calls ?? []) : [];
      return Effect.forEach(calls, (call) => Effect.forkDetach(Effect.exit(build.run(call, undefined))));
    });
    yield* Effect.forkScoped(
      Effect.map(Effect.exit(consumed), (exit) => {
        if (Exit.isFailure(exit)) lines.push(`end ${S.errorOf(exit)?.rule}`);
      }),
      { startImmediately: true },
    );
    yield* TestClock.adjust("10 seconds");
    const asked = (yield* memory.run("r"))?.questions.at(-1);
    assert.isDefined(asked, "the question is on record while it is open");
    const answer = Effect.exit(
      memory.answer({ run_id: "r", revision: asked?.revision ?? 0, choice: "retry", by: "person" }),
    );
    const settle = Deferred.succeed(over, undefined);
    const before = lines.length;
    const given = yield* order === "answer first" ? Effect.tap(answer, settle) : Effect.andThen(settle, answer);
    yield* TestClock.adjust("1 minute");
    return { lines: lines.slice(before), given, started, record: yield* memory.run("r"), attempts: provider.attempts };
  }).pipe(Effect.scoped);

const questionsOf = ({ record }: Effect.Success<ReturnType<typeof played>>) =>
  record?.questions.map(({ answer, revision, rule }) => [revision, rule, answer]);

describe("A person's answer that coincides with a late settle", () => {
  for (const order of ["answer first", "settle first"] as const)
    it.effect(
      `starts nothing, and a volatile run asks about the grown facts like a durable one: ${order} (L1, L8)`,
      () =>
        Effect.gen(function* () {
          const it = yield* played(order, "behind");
          assert.deepStrictEqual([it.lines, it.attempts.length, it.started], [["ask tool_ran"], 1, 1]);
          assert.strictEqual(it.given._tag, order === "answer first" ? "Success" : "Failure");
          assert.deepStrictEqual(questionsOf(it), [
            [1, "tool_outcome_unknown", order === "answer first" ? "retry" : undefined],
            [2, "tool_ran", undefined],
          ]);
          const durable = yield* played(order, "first");
          assert.deepStrictEqual([it.lines, it.given._tag], [durable.lines, durable.given._tag]);
          assert.deepStrictEqual(questionsOf(it), questionsOf(durable));
        }),
    );
});
