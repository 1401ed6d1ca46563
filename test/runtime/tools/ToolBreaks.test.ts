/**
 * Breaks around a tool's call: those that raise a question, those that do not, and the tool's fate.
 */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Schema } from "effect";
import { TestClock } from "effect/testing";
import type { ToolBoundary } from "../../../src/domain/SideEffects.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

const tool = (effect: ToolBoundary["effect"], executor: ToolBoundary["executor"] = "runtime"): ToolBoundary => ({
  name: "bash",
  executor,
  effect,
});

describe("A tool that is only exposed", () => {
  it.effect("does not block a clean retry", () =>
    Effect.gen(function* () {
      // A disabled tool is not in `tools`. The exposed one of unknown effect was never called.
      const provider = S.scripted([S.start, S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [tool("unknown")] })));
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("does not turn shown text into a warning of side effects", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("half"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [tool("unknown")] })));
      assert.strictEqual(seen.lines.at(-1), "end stopped text_shown");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that the provider runs makes a processed 5xx raise a question", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "server_error", status: 500 })], S.hello);
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { tools: [tool("unknown", "provider")] })),
      );
      assert.strictEqual(seen.lines.at(-1), "end stopped side_effects_unprovable");
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("A call", () => {
  it.effect("whose input is complete and that is not whole is not replayed without a guard", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.callStarts("bash"), S.callComplete("bash"), S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [tool("unknown")] })));
      assert.strictEqual(seen.lines.at(-1), "end stopped tool_input_shown");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that failed earlier is not the cause of a later disconnect", () =>
    Effect.gen(function* () {
      class ToolError extends Schema.TaggedError<ToolError>()("ToolError", {}) {}
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", () => Effect.fail(new ToolError()));
      const provider = S.scripted([S.start, S.callReady("bash"), S.wait(10), S.reset]);
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { tools: [bash], runId: "r" })),
        (event) =>
          event._tag === "Part" && event.calls?.[0] !== undefined
            ? Effect.exit(bash.run(event.calls[0], undefined))
            : Effect.void,
      );
      const [incident] = (yield* S.recordOf("r")).incidents;
      assert.strictEqual(incident?.failure.kind, "transport");
      assert.strictEqual(incident?.facts.tools[0]?.phase, "settled");
      assert.instanceOf(S.errorOf(seen.exit)?.cause, S.ProviderBroke);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that runs is not interrupted by a broken stream", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const finish = yield* Deferred.make<void>();
      let outcome = "running";
      const bash = guard.mutating("bash", () =>
        Effect.onExit(Deferred.await(finish), (exit) =>
          Effect.sync(() => {
            outcome = exit._tag;
          }),
        ),
      );
      const provider = S.scripted([S.start, S.callReady("bash"), S.wait(1_000), S.reset]);
      const fiber = yield* Effect.forkChild(
        S.watch((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) =>
          event._tag === "Part" && event.calls?.[0] !== undefined
            ? Effect.forkDetach(bash.run(event.calls[0], undefined))
            : Effect.void,
        ),
      );
      yield* TestClock.adjust("1 minute");
      assert.strictEqual(outcome, "running");
      yield* Deferred.succeed(finish, undefined);
      yield* TestClock.adjust("1 second");
      const seen = yield* Fiber.join(fiber);
      assert.strictEqual(outcome, "Success");
      assert.strictEqual(seen.lines.at(-1), "end stopped tool_ran");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that has settled is never run again", () =>
    Effect.gen(function* () {
      let ran = 0;
      const guard = yield* ToolGuard;
      const charge = guard.mutating("charge_card", () =>
        Effect.sync(() => {
          ran += 1;
        }),
      );
      const gate = yield* Deferred.make<void>();
      const provider = S.scripted(
        [S.start, S.callReady("charge_card"), { run: Deferred.await(gate) }, S.reset],
        [S.start, S.text("charged"), S.done],
      );
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { tools: [charge], canContinue: true })),
        (event) =>
          event._tag === "Part" && event.calls?.[0] !== undefined
            ? Effect.andThen(Effect.orDie(charge.run(event.calls[0], undefined)), Deferred.succeed(gate, undefined))
            : Effect.void,
      );
      assert.deepStrictEqual(seen.lines.slice(-6), [
        "retry continue tools_settled",
        "attempt 2 continue",
        "start",
        "charged",
        "done",
        "completed",
      ]);
      assert.strictEqual(ran, 1);
      assert.deepStrictEqual(
        provider.attempts[1]?.calls.map((it) => [it.tool, it.outcome]),
        [["charge_card", "settled"]],
      );
    }).pipe(Effect.provide(S.processor())),
  );
});
