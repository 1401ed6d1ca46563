/** Law L5: a stream is complete only after its provider's own terminal marker, and an error is never that marker. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { Failure } from "../../src/domain/Failure.ts";
import * as Observation from "../../src/domain/Observation.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import * as S from "../runtime/Scripted.ts";

const atEnd: S.Step = {
  part: { name: "STOP", says: { ...Observation.text(1), terminal_at_end: true, finish: "STOP" } },
};
const error: Failure = { kind: "server_error", status: 500 };

/** Plays the first attempt of a run without retries, and returns its last event and its record's end. */
const endOf = (script: ReadonlyArray<S.Step>) =>
  Effect.gen(function* () {
    const run = S.options(S.scripted(script), { runId: "r", budget: { max_auto_retries: 0, max_not_processed: 0 } });
    const seen = yield* S.played((yield* StreamProcessor).run({ ...run, clocks: { idle: 1_000 } }));
    return { last: seen.lines.at(-1), state: (yield* S.recordOf("r")).end?.state };
  }).pipe(Effect.provide(S.processor()));

describe("L5 no false success", () => {
  const never: ReadonlyArray<readonly [name: string, script: ReadonlyArray<S.Step>]> = [
    ["a clean end without the marker", [S.start, S.text("half")]],
    ["a clean end of nothing at all", []],
    ["a source that falls silent", [S.start, S.text("half"), S.never]],
    ["an error event", [S.start, S.text("half"), S.errorEvent(error)]],
    ["an error event with a marker behind it", [S.start, S.errorEvent(error), S.done]],
    ["an error event and a marker in one chunk", [S.start, S.together(S.errorEvent(error), S.done)]],
    ["a finish that every chunk carries, and a reset behind it", [S.start, atEnd, S.reset]],
    ["a finish that every chunk carries, and more behind it", [S.start, atEnd, S.text("more")]],
    ["a finish in every chunk but the first, and silence", [S.start, S.text("half"), atEnd, atEnd, S.never]],
  ];
  for (const [name, script] of never) {
    it.effect(`${name} is a failure`, () =>
      Effect.gen(function* () {
        const { last, state } = yield* endOf(script);
        assert.match(last ?? "", /^end /);
        assert.strictEqual(state, "stopped");
      }),
    );
  }

  const whole: ReadonlyArray<readonly [name: string, script: ReadonlyArray<S.Step>]> = [
    ["the marker and a clean end", [S.start, S.text("all"), S.done]],
    ["the marker and a reset behind it", [S.start, S.text("all"), S.done, S.reset]],
    ["the marker and silence behind it", [S.start, S.text("all"), S.done, S.never]],
    ["a last finish and a clean end", [S.start, atEnd]],
  ];
  for (const [name, script] of whole) {
    it.effect(`${name} is a success`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* endOf(script), { last: "completed", state: "completed" });
      }),
    );
  }
});

describe("L5 an incomplete stream", () => {
  it.effect("is a stall if it falls silent after progress", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("half"), S.never]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.deepStrictEqual(seen.lines.slice(-3), ["ask text_shown", "answer stop", "end stopped text_shown"]);
      const [incident] = (yield* S.recordOf("r")).incidents;
      assert.deepStrictEqual(incident?.failure, { kind: "stalled", clock: "idle" });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is a truncation if it ends cleanly without the marker", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("half")]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "end stopped text_shown");
      assert.strictEqual((yield* S.recordOf("r")).incidents[0]?.failure.kind, "truncated");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is retried while nothing was shown", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.strictEqual((yield* S.recordOf("r")).incidents[0]?.failure.kind, "truncated");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is retried, and withheld completely by reveal on_complete", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("half")], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { reveal: "on_complete" })));
      assert.strictEqual(provider.attempts.length, 2);
      assert.deepStrictEqual(seen.lines.slice(-4), ["start", "hello", "done", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );
});
