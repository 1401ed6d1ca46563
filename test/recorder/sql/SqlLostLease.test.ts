/**
 * A process that waits for others, or has lost its lease, is informed of everything, in time.
 */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber } from "effect";
import { MaxOpsBeforeYield } from "effect/Scheduler";
import { TestClock } from "effect/testing";
import { toBounded } from "../../../src/recorder/BoundedRecorder.ts";
import { seeded } from "../../Seeded.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const leaseMs = 15_000;
const begun = (runId: string) => [E.begun(runId), E.attempt(1)];

/** A process over a shared file that the test can stop. */
const processOf = (file: string, ownMs = leaseMs) =>
  Effect.gen(function* () {
    const world = { stopped: false };
    const recorder = yield* Folder.open({ file, leaseMs: ownMs }, { stopped: () => world.stopped });
    return { recorder, world };
  });

/** Advances time until an effect is done. */
const waited = <A, X, R>(effect: Effect.Effect<A, X, R>, stepMs = 250) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true });
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(stepMs);
    return yield* Fiber.join(fiber);
  });

const ids = (recorder: Recorder, waits: boolean | "all" = true) =>
  Effect.map(recorder.orphans(100, { waits }), (runs) => runs.map((run) => run.run_id));

describe("a process with a lease that is longer than others wait", () => {
  it.effect("hides no other run from a sweep, and its own is found when the lease is over", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const longMs = 10 * 60_000;
      const long = yield* processOf(file, longMs);
      const sweeper = toBounded((yield* processOf(file)).recorder);
      yield* long.recorder.write("long", begun("long"));
      long.world.stopped = true;
      yield* TestClock.adjust(longMs);
      const from = yield* Clock.currentTimeMillis;
      let sweeps = 0;
      for (;;) {
        const name = `left${sweeps}`;
        yield* Effect.scoped(Effect.flatMap(Folder.open({ file, leaseMs }), (it) => it.write(name, begun(name))));
        const found = yield* waited(ids(sweeper), 1_000);
        assert.include(found, name, `sweep ${sweeps}`);
        if (found.includes("long")) break;
        sweeps += 1;
        yield* TestClock.adjust(leaseMs);
        assert.isAtMost((yield* Clock.currentTimeMillis) - from, longMs * 1.25);
      }
      assert.isAtLeast((yield* Clock.currentTimeMillis) - from, longMs);
    }).pipe(Effect.scoped),
  );

  it.effect("keeps its run while it sends heartbeats, however often others look", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const longMs = 10 * 60_000;
      const { recorder: long } = yield* processOf(file, longMs);
      const sweeper = toBounded((yield* processOf(file)).recorder);
      yield* long.write("long", begun("long"));
      for (let sweep = 0; sweep < 60; sweep += 1) {
        assert.deepStrictEqual(yield* waited(ids(sweeper), 1_000), []);
        yield* TestClock.adjust(leaseMs);
      }
      yield* long.write("long", [E.noted(1)]);
    }).pipe(Effect.scoped),
  );
});

describe("a single look after a crash", () => {
  it.effect("waits for a process that has died just now, but not long for a live one", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [one, two] = [yield* processOf(file), yield* processOf(file)];
      yield* one.recorder.write("living", begun("living"));
      yield* two.recorder.write("dead", begun("dead"));
      const { recorder } = yield* processOf(file, 1_000);
      const { recorder: later } = yield* processOf(file, 1_000);
      const from = yield* Clock.currentTimeMillis;
      const alone = yield* waited(ids(recorder, "all"));
      assert.deepStrictEqual(alone, []);
      assert.isAtMost((yield* Clock.currentTimeMillis) - from, leaseMs / 2);
      two.world.stopped = true;
      yield* TestClock.adjust(100);
      assert.deepStrictEqual(yield* ids(later), []);
      assert.deepStrictEqual(yield* waited(ids(later, "all")), ["dead"]);
      assert.isAtMost((yield* Clock.currentTimeMillis) - from, leaseMs * 2);
    }).pipe(Effect.scoped),
  );
});

describe("a process that was fenced", () => {
  it.effect("reports the runs that it has lost once, at its next heartbeat, and may take them over again", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [one, two] = [yield* processOf(file), yield* processOf(file)];
      const told: Array<string> = [];
      const off = toBounded(one.recorder).onLost?.((runId) => told.push(runId) > 0);
      yield* one.recorder.write("r", begun("r"));
      one.world.stopped = true;
      yield* TestClock.adjust(leaseMs);
      yield* waited(two.recorder.claim("r"));
      yield* two.recorder.write("r", [{ _tag: "RunParked", reason: "recovered" }]);
      assert.deepStrictEqual(told, []);
      // Its next write is of another run, because the heartbeat is stopped for good in this test.
      yield* one.recorder.write("other", begun("other"));
      assert.deepStrictEqual(told, ["r"]);
      assert.strictEqual((yield* Effect.flip(one.recorder.write("r", [E.noted(1)]))).reason, "fenced");
      yield* one.recorder.claim("r");
      yield* one.recorder.write("r", [{ _tag: "RunResumed" }]);
      assert.deepStrictEqual(told, ["r"]);
      off?.();
    }).pipe(Effect.scoped),
  );
});

describe("consecutive transactions of one process", () => {
  it.effect("have one lease, wherever they are delayed in between", () =>
    Effect.gen(function* () {
      const random = seeded(7);
      for (let round = 0; round < 15; round += 1) {
        const file = yield* Folder.emptyPath;
        const recorder = yield* Folder.open({ file, leaseMs });
        const names = Array.from({ length: 8 }, (_, n) => `r${n}`);
        yield* Folder.open({ file, leaseMs }).pipe(
          Effect.flatMap((it) => Effect.forEach(names.slice(0, 4), (name) => it.write(name, begun(name)))),
          Effect.scoped,
        );
        const act = (name: string, index: number) =>
          Effect.provideService(
            index < 4 ? Effect.asVoid(recorder.claim(name)) : recorder.write(name, begun(name)),
            MaxOpsBeforeYield,
            8 + Math.floor(random() * 60),
          );
        yield* Effect.all(names.map(act), { concurrency: "unbounded" });
        for (const name of names) {
          const outcome = yield* Effect.result(recorder.write(name, [E.noted(1)]));
          assert.strictEqual(outcome._tag, "Success", `round ${round}, ${name}`);
        }
      }
    }).pipe(Effect.scoped),
  );
});
