/** Law L11: the limits on calls apply to one response, and a call that was handed over within them can run. */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Layer } from "effect";
import { callsMax, toolRowsMax } from "../../../src/domain/Limits.ts";
import * as Observation from "../../../src/domain/Observation.ts";
import type { ReadyCall } from "../../../src/runtime/contract/ToolCall.ts";
import * as CallOutcomes from "../../../src/runtime/crash/CallOutcomes.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

/** A response with many calls, each in a separate part. */
const calls = (count: number): ReadonlyArray<S.Step> =>
  Array.from({ length: count }, (_, ordinal) => ({
    part: {
      name: `pay ${ordinal}`,
      says: Observation.calls([
        { choice: 0, ordinal, id: `c${ordinal}`, tool: "pay", executor: "runtime", phase: "ready", input: "{}" },
      ]),
    },
  }));

/** Collects the calls of a run, like a runtime that runs them once the response is whole. */
const gathered = (scripts: ReadonlyArray<ReadonlyArray<S.Step>>) =>
  Effect.gen(function* () {
    let ran = 0;
    const pay = (yield* ToolGuard).mutating("pay", () => Effect.sync(() => (ran += 1)));
    const held = new Map<string, ReadyCall>();
    const options = S.options(S.scripted(...scripts), { runId: "r", tools: [pay] });
    const seen = yield* S.played((yield* StreamProcessor).run(options), (event) =>
      Effect.sync(() => {
        if (event._tag === "AttemptDiscarded") held.clear();
        if (event._tag === "Part") for (const call of event.calls ?? []) held.set(call.call, call);
      }),
    );
    assert.strictEqual(seen.lines.at(-1), "completed");
    const refused: Array<string> = [];
    for (const call of held.values()) {
      yield* Effect.catchTag(pay.run(call, undefined), "ToolRefused", ({ reason }) =>
        Effect.sync(() => void refused.push(reason)),
      );
    }
    return { ran, refused, held: [...held.values()] };
  });

describe("L11 the calls of one response", () => {
  it.effect("are counted without those of a response before it", () =>
    Effect.gen(function* () {
      const { ran, refused } = yield* gathered([
        [...calls(callsMax - 1), S.reset],
        [...calls(callsMax), S.done],
      ]);
      assert.deepStrictEqual([ran, refused], [callsMax, []]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("can all run, even those whose rows were folded, and are all known on record", () =>
    Effect.gen(function* () {
      const { ran, refused } = yield* gathered([
        [...calls(toolRowsMax), S.reset],
        [...calls(toolRowsMax + 40), S.done],
      ]);
      assert.deepStrictEqual([ran, refused], [toolRowsMax + 40, []]);
      const outcomes = (yield* CallOutcomes.of("r")).filter(({ attempt }) => attempt === 2);
      assert.lengthOf(outcomes, toolRowsMax + 40);
      assert.lengthOf(
        outcomes.filter(({ outcome }) => outcome === "not_run"),
        0,
      );
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("have one limit, beyond which no call starts", () =>
    Effect.gen(function* () {
      const { ran, refused } = yield* gathered([[...calls(callsMax + 2), S.done]]);
      assert.deepStrictEqual([ran, refused], [callsMax, ["unknown_call", "unknown_call"]]);
      assert.lengthOf((yield* S.recordOf("r")).calls, callsMax);
    }).pipe(Effect.provide(S.processor())),
  );

  it.live(
    "that ran are not reported as not run by the process that takes the run up, if their rows were folded",
    () => {
      const count = toolRowsMax + 10;
      const layer = StreamProcessor.layer.pipe(
        Layer.provideMerge(
          Layer.merge(S.recorderThat({ durable: true }), UserDecisions.layerHeadless({ otherwise: "continue" })),
        ),
      );
      return Effect.gen(function* () {
        const processor = yield* StreamProcessor;
        const pay = (yield* ToolGuard).mutating("pay", () => Effect.void);
        const all = yield* Deferred.make<void>();
        const first = S.scripted([...calls(count), S.never]);
        const options = S.options(first, { tools: [pay], canContinue: true, transcript: "t" });
        let ran = 0;
        const fiber = yield* Effect.forkChild(
          S.watch(processor.run({ ...options, runId: "r" }), (event) =>
            event._tag === "Part" && event.calls?.[0] !== undefined
              ? Effect.andThen(pay.run(event.calls[0], undefined), () =>
                  ++ran === count ? Deferred.succeed(all, undefined) : Effect.void,
                )
              : Effect.void,
          ),
        );
        yield* Deferred.await(all);
        yield* Fiber.interrupt(fiber);
        const next = S.scripted([S.text("all"), S.done]);
        const request = { ...options, attempt: next.attempt, canContinue: next.attempt };
        const seen = yield* S.watch(processor.takeUp("r", { request, transcript: "t" }));
        assert.strictEqual(seen.lines.at(-1), "completed");
        const told = next.attempts[0]?.calls ?? [];
        assert.lengthOf(told, count);
        assert.deepStrictEqual(
          told.filter(({ outcome }) => outcome === "not_run"),
          [],
        );
      }).pipe(Effect.provide(layer));
    },
  );
});
