/** Limits on the retries of all processes that share a file. */
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import type { Recorder } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const keepMs = 1_000;

const pacingOf = ({ pacing }: Recorder) => {
  if (pacing === undefined) throw new Error("a file's processes bound their retries together");
  return pacing;
};

/** Two processes that share a file, and the file. */
const two = Effect.gen(function* () {
  const file = yield* Folder.emptyPath;
  return { file, one: yield* Folder.open({ file }), other: yield* Folder.open({ file, process: "other" }) };
});

describe("the processes that share a file", () => {
  it.effect("count what a group has spent together, until it was idle for its time", () =>
    Effect.gen(function* () {
      const { file, one, other } = yield* two;
      const [first, second] = [pacingOf(one), pacingOf(other)];
      yield* first.spend("g", { retries: 1, tokens: 10 }, keepMs);
      assert.deepStrictEqual(yield* second.spend("g", { retries: 1, tokens: 5 }, keepMs), { retries: 2, tokens: 15 });
      assert.deepStrictEqual(yield* second.spend("h", { retries: 1, tokens: 0 }, keepMs), { retries: 1, tokens: 0 });
      assert.deepStrictEqual(yield* first.spend("g", { retries: -1, tokens: 0 }, keepMs), { retries: 1, tokens: 15 });
      yield* TestClock.adjust(keepMs);
      assert.deepStrictEqual(yield* first.spend("g", { retries: 1, tokens: 1 }, keepMs), { retries: 1, tokens: 1 });
      const database = new DatabaseSync(file, { readOnly: true });
      const rows = database.prepare("SELECT id FROM stream_recovery_groups").all();
      database.close();
      assert.deepStrictEqual(
        rows.map(({ id }) => id),
        ["g"],
        "what is over is forgotten",
      );
    }),
  );

  it.effect("draw tokens from one bucket, which refills by itself and never over its size", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two;
      const draw = (from: Recorder, count = 1) => pacingOf(from).draw("p", count, { max: 2, perSecond: 1 });
      assert.strictEqual(yield* draw(one), 1);
      assert.strictEqual(yield* draw(other), 0);
      assert.strictEqual(yield* draw(one), -1, "ahead of its time");
      yield* TestClock.adjust(500);
      assert.strictEqual(yield* draw(other), -1.5);
      assert.strictEqual(yield* draw(other, -1), -0.5);
      assert.strictEqual(yield* pacingOf(one).draw("q", 1, { max: 2, perSecond: 1 }), 1, "another one is full");
      for (const restedMs of [10_000, 3_600_001]) {
        yield* TestClock.adjust(restedMs);
        assert.strictEqual(yield* draw(one), 1, "no more than it holds");
      }
    }),
  );

  it.effect("do not wait for a clock that was set back, nor get more because of it", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two;
      const draw = (from: Recorder) => pacingOf(from).draw("p", 1, { max: 2, perSecond: 1 });
      yield* TestClock.setTime(7_200_000);
      for (const from of [one, other, one]) yield* draw(from);
      yield* TestClock.setTime(0);
      assert.strictEqual(yield* draw(other), -2);
      yield* TestClock.adjust(1_000);
      assert.strictEqual(yield* draw(one), -2);
      yield* TestClock.adjust(2_000);
      assert.strictEqual(yield* draw(other), -1);
    }),
  );
});
