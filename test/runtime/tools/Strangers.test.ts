/** Calls of other tools and processors are refused, and a second close has no effect. */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import type { ReadyCall } from "../../../src/runtime/contract/ToolCall.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

/** The one call of a run, and the runs of the two tools. */
const called = Effect.gen(function* () {
  const guard = yield* ToolGuard;
  const ran: Array<string> = [];
  const tool = (name: string) => guard.mutating(name, () => Effect.sync(() => ran.push(name)));
  const [pay, read] = [tool("pay"), tool("read")];
  const calls: Array<ReadyCall> = [];
  const provider = S.scripted([S.callReady("pay"), S.done]);
  yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r", tools: [pay, read] })), (event) =>
    Effect.sync(() => event._tag === "Part" && calls.push(...(event.calls ?? []))),
  );
  const [call] = calls;
  return call === undefined ? yield* Effect.die("no call") : { call, pay, ran, read };
});

describe("A guarded tool", () => {
  it.effect(
    "refuses a call that is another tool's, by its key and by its id, and the call remains its own tool's",
    () =>
      Effect.gen(function* () {
        const { call, pay, ran, read } = yield* called;
        for (const reference of [call, { run_id: "r", id: call.id }]) {
          const error = yield* Effect.flip(read.run(reference, undefined));
          assert.deepInclude(error, { _tag: "ToolRefused", reason: "another_tool", tool: "read" });
        }
        yield* pay.run(call, undefined);
        assert.deepStrictEqual(ran, ["pay"]);
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("refuses a call of another processor's run, of no run, and of another attempt", () =>
    Effect.gen(function* () {
      const { call, pay, ran } = yield* called;
      const other = Context.get(yield* Layer.build(Layer.fresh(S.processor())), ToolGuard);
      const strange = other.mutating("pay", () => Effect.sync(() => ran.push("other")));
      assert.strictEqual((yield* Effect.flip(strange.run(call, undefined))).reason, "unknown_run");
      assert.strictEqual((yield* Effect.flip(pay.run({ ...call, run_id: "none" }, undefined))).reason, "unknown_run");
      assert.strictEqual((yield* Effect.flip(pay.run({ ...call, attempt: 2 }, undefined))).reason, "unknown_call");
      assert.deepStrictEqual(ran, []);
    }).pipe(Effect.scoped, Effect.provide(S.processor())),
  );
});

describe("A processor", () => {
  it.effect("that is closed twice was closed once: the first reason is kept", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      yield* processor.close("first");
      yield* processor.close("second");
      const seen = yield* S.played(processor.run(S.options(S.scripted([S.done]), { runId: "r" })));
      assert.include(S.errorOf(seen.exit)?.message, "first");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("starts the stream of one run id once, even if the stream is run again", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.text("all"), S.done]);
      const stream = (yield* StreamProcessor).run(S.options(provider, { runId: "r" }));
      assert.strictEqual((yield* S.played(stream)).lines.at(-1), "completed");
      assert.strictEqual(S.errorOf((yield* S.played(stream)).exit)?.reason, "refused");
      assert.lengthOf(provider.attempts, 1);
    }).pipe(Effect.provide(S.processor())),
  );
});
