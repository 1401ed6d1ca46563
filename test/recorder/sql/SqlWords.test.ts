/** What the processes of one file tell each other, and what a payload of a server says. */
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import type { SharedCancels } from "../../../src/recorder/shared/SharedCancels.ts";
import { wordOf } from "../../../src/recorder/sql/SqlWords.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const cancelsOf = ({ cancels }: Recorder): SharedCancels => {
  if (cancels === undefined) throw new Error("a file's processes cancel each other's runs");
  return cancels;
};

/** Rows of the file's facts, also of those that are over. */
const rowsIn = (file: string): number => {
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = database.prepare("SELECT key FROM stream_recovery_facts").all();
  database.close();
  return rows.length;
};

/** Lets time go on until an effect is done. */
const inTime = <A, Err, R>(effect: Effect.Effect<A, Err, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true });
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(100);
    return yield* Fiber.join(fiber);
  });

describe("the processes of a file", () => {
  it.effect("look for cancels while they drive a run, as soon as they do, and not before or behind", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const recorder = yield* Folder.open({ file });
      let looks = 0;
      cancelsOf(recorder).on(() => {
        looks += 1;
      });
      yield* TestClock.adjust("1 minute");
      assert.strictEqual(looks, 0);
      for (const run of ["one", "another"]) {
        const before = looks;
        yield* inTime(recorder.write(run, [E.begun(run), E.attempt(1)]));
        yield* TestClock.adjust(0);
        assert.isAbove(looks, before, "at once");
        const first = looks;
        yield* TestClock.adjust(5_000);
        assert.strictEqual(looks, first + 10);
        yield* inTime(recorder.write(run, [E.ended()]));
        yield* TestClock.adjust(1_000);
        const last = looks;
        yield* TestClock.adjust("1 minute");
        assert.strictEqual(looks, last);
      }
    }).pipe(Effect.scoped),
  );

  it.effect(
    "know by name who drives a run: nobody behind its end, once it was given back, or once its process has ended",
    () =>
      Effect.gen(function* () {
        const file = yield* Folder.emptyPath;
        const [one, other] = [yield* Folder.open({ file, process: "one" }), yield* Folder.open({ file })];
        const driver = (run: string) => inTime(cancelsOf(other).driver(run));
        for (const run of ["ends", "returned", "left"]) yield* inTime(one.write(run, [E.begun(run), E.attempt(1)]));
        const label = yield* driver("ends");
        assert.match(label ?? "", new RegExp(`^${process.pid}@`));
        assert.isUndefined(yield* driver("none"));
        yield* inTime(one.write("ends", [E.ended()]));
        assert.isUndefined(yield* driver("ends"));
        yield* inTime(one.release("returned"));
        assert.isUndefined(yield* driver("returned"));
        assert.strictEqual(yield* driver("left"), label);
        yield* inTime(other.processEnded?.("one") ?? Effect.void);
        assert.isUndefined(yield* driver("left"));
      }).pipe(Effect.scoped),
  );

  it.effect("keep no cancel that is over behind the next one (L11)", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const cancels = cancelsOf(yield* Folder.open({ file }));
      for (const run of ["a", "b", "c"]) yield* inTime(cancels.put("cancel", run, "{}", 1_000));
      assert.strictEqual(rowsIn(file), 3);
      yield* TestClock.adjust(1_001);
      assert.lengthOf(yield* inTime(cancels.all("cancel")), 0);
      yield* inTime(cancels.put("cancel", "d", "{}", 1_000));
      assert.strictEqual(rowsIn(file), 1);
    }).pipe(Effect.scoped),
  );
});

describe("a payload", () => {
  it("says what it is about, and nothing where it is of another version, or a greeting", () => {
    assert.deepStrictEqual(wordOf("answered run_1"), { _tag: "Answered", run_id: "run_1" });
    assert.deepStrictEqual(wordOf("cancel"), { _tag: "Put", kind: "cancel" });
    assert.deepStrictEqual(wordOf("cooldown"), { _tag: "Put", kind: "cooldown" });
    for (const other of ["", "hello 1", "answered", "failed", "told", "cancel run_1"])
      assert.isUndefined(wordOf(other));
  });
});
