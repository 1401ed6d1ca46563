/** What bounds the retries of all processes of one file. */
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import { dividing, livingLookMs } from "../../../src/runtime/pacing/SharedThrottle.ts";
import { Throttle, tokensMax } from "../../../src/runtime/pacing/Throttle.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const keepMs = 1_000;

const pacingOf = ({ pacing }: Recorder) => {
  if (pacing === undefined) throw new Error("a file's processes bound their retries together");
  return pacing;
};

/** Two processes of one file, and the file. */
const two = Effect.gen(function* () {
  const file = yield* Folder.emptyPath;
  return { file, one: yield* Folder.open({ file }), other: yield* Folder.open({ file, process: "other" }) };
});

/** How many retries go at once. */
const atOnce = (throttle: Throttle, now: number): number => {
  for (let n = 0; ; n += 1) {
    if (throttle.waitMs("p", now) > 0) return n;
    throttle.take("p", now);
  }
};

describe("what the processes of a file do together", () => {
  it.effect("is to count what a group has spent, until it was idle for its time", () =>
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

  it.effect("is to divide the throttle of retries by those that drive runs, and by one less once it has died", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two;
      const throttle = new Throttle();
      yield* Effect.forkScoped(dividing(throttle, pacingOf(one)), { startImmediately: true });
      yield* one.write("r", [E.begun("r")]);
      yield* other.write("s", [E.begun("s")]);
      yield* TestClock.adjust(livingLookMs);
      assert.strictEqual(atOnce(throttle, 0), tokensMax / 2);
      yield* other.processEnded?.("no such process") ?? Effect.void;
      yield* one.processEnded?.("other") ?? Effect.void;
      yield* TestClock.adjust(livingLookMs);
      assert.strictEqual(atOnce(throttle, 3_600_000), tokensMax);
    }),
  );
});
