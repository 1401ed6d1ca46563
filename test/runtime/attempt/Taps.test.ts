/** The tee of a run's output: what it sees, takes and refuses. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { none } from "../../../src/domain/Observation.ts";
import { Handoff } from "../../../src/runtime/attempt/Handoff.ts";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import type { Tee } from "../../../src/runtime/contract/Taps.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const named = (name: string): S.ScriptedPart => ({ name, says: none });

const whole = ["attempt 1 first", "start", "one", "two", "three", "done", "completed"];

/** Runs a whole response past a tee: what the reader saw, and how the run ended. */
const teed = (tee: Tee<S.ScriptedPart>, onEvent?: (event: RunEvent<S.ScriptedPart>) => Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const provider = S.scripted([S.start, S.text("one"), S.text("two"), S.text("three"), S.done]);
    const seen = yield* S.played(
      (yield* StreamProcessor).run(S.options(provider, { runId: "r", taps: { tee } })),
      onEvent,
    );
    return { seen, end: (yield* S.recordOf("r")).end?.state };
  });

describe("a tee", () => {
  it.effect("that keeps a copy sees every event once, in order, and the reader sees them all", () =>
    Effect.gen(function* () {
      const copy: Array<string> = [];
      const { seen } = yield* teed((events) => {
        copy.push(...events.map(S.line));
        return false;
      });
      assert.deepStrictEqual(seen.lines, whole);
      assert.deepStrictEqual(copy, whole);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that takes every event stands in for the reader, which waits until the run has ended", () =>
    Effect.gen(function* () {
      const buffer: Array<string> = [];
      const { end, seen } = yield* teed((events) => buffer.push(...events.map(S.line)) > 0);
      assert.deepStrictEqual(buffer, whole);
      assert.deepStrictEqual(seen.lines, []);
      assert.strictEqual(end, "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that refuses while it drains loses nothing: what it refuses comes by the reader, in order", () =>
    Effect.gen(function* () {
      const socket: Array<string> = [];
      let room = 1;
      let byReader = 0;
      yield* teed(
        (events) => {
          room -= 1;
          if (room < 0) return false;
          socket.push(...events.map(S.line));
          return true;
        },
        (event) =>
          Effect.gen(function* () {
            socket.push(S.line(event));
            byReader += 1;
            yield* Effect.sleep("1 second");
            room = 1;
          }),
      );
      assert.deepStrictEqual(socket, whole);
      assert.isAbove(byReader, 1);
      assert.isBelow(byReader, whole.length);
    }).pipe(Effect.provide(S.processor())),
  );

  it("is given parts in the step in which they arrive, and the reader is not woken", () => {
    const seen: Array<number> = [];
    const handoff = new Handoff<S.ScriptedPart>((events) => seen.push(events.length) < 2);
    const reader = Effect.runFork(handoff.take);
    const part = { _tag: "Part", attempt: 1, ordinal: 1, part: named("a") } as const;
    handoff.give([part]);
    assert.deepStrictEqual(seen, [1]);
    assert.isUndefined(reader.pollUnsafe());
    assert.isTrue(handoff.isWanted);
    handoff.give([part, part]);
    assert.deepStrictEqual(seen, [1, 2]);
    assert.isDefined(reader.pollUnsafe());
    assert.isFalse(handoff.isWanted);
  });
});
