/** A whole response is held for at most `holdMaxMs`; then it goes on as if it had been shown from its start (laws L2, L4, L8). */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, type Stream } from "effect";
import { TestClock } from "effect/testing";
import type { RunEvent, RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const held = { reveal: "on_complete", holdMaxMs: 30_000 } as const;
const bash = { name: "bash", executor: "runtime", effect: "mutating" } as const;

/** What a reader has had after so many seconds, from the run's start on. */
const seenAt = (
  stream: Stream.Stream<RunEvent<S.ScriptedPart>, RunInterrupted>,
  seconds: ReadonlyArray<number>,
  onEvent: (event: RunEvent<S.ScriptedPart>) => Effect.Effect<unknown> = () => Effect.void,
) =>
  Effect.gen(function* () {
    const lines: Array<string> = [];
    const note = (event: RunEvent<S.ScriptedPart>) =>
      Effect.andThen(
        onEvent(event),
        Effect.sync(() => void lines.push(S.line(event))),
      );
    const fiber = yield* Effect.forkChild(S.watch(stream, note));
    const seen: Array<string> = [];
    let now = 0;
    for (const at of seconds) {
      yield* TestClock.adjust((at - now) * 1_000);
      now = at;
      seen.push(lines.join(" "));
    }
    yield* Fiber.interrupt(fiber);
    return seen;
  });

describe("a hold that has a limit", () => {
  it.effect("ends in the middle of a response: what came is handed over, and the rest as it comes", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("a"), S.wait(60_000), S.text("b"), S.wait(60_000), S.done]);
      const seen = yield* seenAt((yield* StreamProcessor).run(S.options(provider, held)), [29, 31, 61, 121]);
      assert.deepStrictEqual(seen, [
        "attempt 1 first",
        "attempt 1 first start a",
        "attempt 1 first start a b",
        "attempt 1 first start a b done completed",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("leaves a healthy response alone that is whole before", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("a"), S.wait(29_000), S.done]);
      const seen = yield* seenAt((yield* StreamProcessor).run(S.options(provider, held)), [28, 30, 60]);
      const all = "attempt 1 first start a done completed";
      assert.deepStrictEqual(seen, ["attempt 1 first", all, all]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("hands a caller that cannot discard no call before the marker, and no prefix without content (L4)", () =>
    Effect.gen(function* () {
      const calling = S.scripted([
        S.start,
        S.text("a"),
        S.callStarts("bash"),
        S.wait(60_000),
        S.callReady("bash"),
        S.done,
      ]);
      const more = { ...held, tools: [bash], discardable: false };
      const processor = yield* StreamProcessor;
      assert.deepStrictEqual(yield* seenAt(processor.run(S.options(calling, more)), [31, 59, 61]), [
        "attempt 1 first start a",
        "attempt 1 first start a",
        "attempt 1 first start a bash:input_started bash:ready done completed",
      ]);
      const silent = S.scripted([S.start, S.wait(60_000), S.text("a"), S.wait(1_000), S.done]);
      assert.deepStrictEqual(yield* seenAt(processor.run(S.options(silent, more)), [31, 60]), [
        "attempt 1 first",
        "attempt 1 first start a",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("says in its facts what was shown: a break behind it asks, and is not replayed (L2)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("a"), S.wait(60_000), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { ...held, runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "end stopped text_shown");
      const record = yield* S.recordOf("r");
      assert.strictEqual(record.incidents[0]?.facts.shown, "text");
      assert.include(JSON.stringify(record.evidence), "hold_is_over");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("counts nothing as shown that its reader has not taken: that is replayed, and held no more (L4)", () =>
    Effect.gen(function* () {
      const provider = S.scripted(
        [S.start, S.text("a"), S.wait(60_000), S.reset],
        [S.start, S.text("b"), S.wait(60_000), S.done],
      );
      // The reader is busy with the first event until the attempt has broken.
      const busy = (event: RunEvent<S.ScriptedPart>) =>
        event._tag === "AttemptStarted" && event.attempt === 1 ? Effect.sleep(70_000) : Effect.void;
      const stream = (yield* StreamProcessor).run(S.options(provider, { ...held, runId: "r" }));
      const [before, after] = yield* seenAt(stream, [69, 80], busy);
      assert.strictEqual(before, "");
      assert.strictEqual(after, "attempt 1 first retry replay nothing_shown attempt 2 replay start b");
      assert.strictEqual((yield* S.recordOf("r")).incidents[0]?.facts.shown, "nothing");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("keeps all parts and their order where the hold ends while the reader is busy", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.text("a"), S.wait(40_000), S.text("b"), S.text("c"), S.wait(1_000), S.done]);
      const busy = (event: RunEvent<S.ScriptedPart>) =>
        event._tag === "AttemptStarted" ? Effect.sleep(100_000) : Effect.void;
      const seen = yield* seenAt((yield* StreamProcessor).run(S.options(provider, held)), [99, 150], busy);
      assert.deepStrictEqual(seen, ["", "attempt 1 first a b c done completed"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("counts from the run's start: an attempt that begins behind it is never held", () =>
    Effect.gen(function* () {
      const provider = S.scripted(
        [S.start, S.text("a"), S.wait(29_900), S.reset],
        [S.wait(20_000), S.start, S.text("b"), S.wait(1_000), S.done],
      );
      const seen = yield* seenAt((yield* StreamProcessor).run(S.options(provider, held)), [40, 51]);
      assert.notInclude(seen[0] ?? "", "start a");
      assert.match(seen[1] ?? "", /attempt 2 replay start b$/);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("takes a marker that waits for its protocol's last event for one", () =>
    Effect.gen(function* () {
      const finish = S.done;
      if (!("part" in finish)) throw new Error("the marker is one part");
      const marker: S.Step = { part: { name: "finish", says: { ...finish.part.says, closes: "later" } } };
      const provider = S.scripted([
        S.start,
        S.wait(29_500),
        S.text("a"),
        S.callReady("bash"),
        marker,
        S.wait(900),
        S.reset,
      ]);
      const more = { ...held, tools: [bash], discardable: false };
      const seen = yield* seenAt((yield* StreamProcessor).run(S.options(provider, more)), [29.9, 30.1, 31]);
      assert.deepStrictEqual(seen, [
        "attempt 1 first",
        "attempt 1 first start a bash:ready finish",
        "attempt 1 first start a bash:ready finish completed",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is refused by name where it is no time", () =>
    Effect.gen(function* () {
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(S.scripted(), { holdMaxMs: Number.NaN })));
      assert.match(S.errorOf(seen.exit)?.message ?? "", /^holdMaxMs: expected milliseconds/);
    }).pipe(Effect.provide(S.processor())),
  );
});
