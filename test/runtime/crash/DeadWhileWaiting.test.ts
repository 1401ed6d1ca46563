/** A process dies while its run waits for a path: the run is offered, and continues elsewhere with the rest of its time. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Deferred, Effect, Fiber, Layer, Scope } from "effect";
import { TestClock } from "effect/testing";
import { Paths } from "../../../src/paths/Paths.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { leaseMsDefault } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Folder from "../../recorder/sql/SqlFolder.ts";
import type { Recorder } from "../../recorder/suite/Bench.ts";
import * as Outage from "../recovery/OutageBench.ts";
import * as S from "../Scripted.ts";
import { mortalClock } from "./MortalClock.ts";

const transcript = "what the user asked";

/** A process with its own recorder. It is never closed, because a killed process closes nothing. */
const processOver = (recorder: Recorder) =>
  Layer.buildWithScope(
    Layer.fresh(
      StreamProcessor.layer.pipe(
        Layer.provideMerge(Paths.layer),
        Layer.provide(UserDecisions.layerHeadless()),
        // The real digest is a promise, which no virtual clock waits for.
        Layer.provideMerge(
          Layer.succeed(RunRecorder, { ...recorder, digest: (content) => Effect.succeed(`digest of ${content}`) }),
        ),
      ),
    ),
    Scope.makeUnsafe(),
  );

/** Advances time in twentieths of a lease until a fiber has ended. */
const until = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.gen(function* () {
    for (let step = 0; step < 400 && fiber.pollUnsafe() === undefined; step += 1)
      yield* TestClock.adjust(leaseMsDefault / 20);
    return yield* Fiber.join(fiber);
  });

/** A run waits for 30 s in a process that then dies. Another process finds it a lease later. */
const died = (script: (outage: Outage.Outage) => ReadonlyArray<ReadonlyArray<S.Step>>, more: Outage.Options = {}) =>
  Effect.gen(function* () {
    const file = yield* Folder.emptyPath;
    const outage = new Outage.Outage();
    const dead = Deferred.makeUnsafe<void>();
    const first = yield* Folder.open({ file }, { stopped: () => Deferred.isDoneUnsafe(dead) });
    const clock = yield* mortalClock(dead);
    const services = yield* Effect.provideService(processOver(first), Clock.Clock, clock);
    yield* Effect.provideContext(outage.reached, services);
    const options = { ...outage.options(script(outage), more), transcript };
    const run = S.watch(Context.get(services, StreamProcessor).run(options));
    yield* Effect.forkDetach(Effect.provideService(run, Clock.Clock, clock));
    yield* Outage.settle;
    for (let second = 0; second < 31; second += 1) yield* TestClock.adjust("1 second");
    const waiting = yield* first.run("r");
    yield* Deferred.succeed(dead, undefined);
    yield* TestClock.adjust(leaseMsDefault);
    const second = yield* Folder.open({ file });
    const recovered = yield* Effect.forkChild(Effect.provideService(CrashRecovery.recover(), RunRecorder, second));
    const report = yield* until(recovered);
    return { outage, options, waiting, report, second };
  });

describe("a process that dies while its run waits for a path", () => {
  it.effect("can be taken up, and its waited time counts up to the last heartbeat of its process", () =>
    Effect.gen(function* () {
      const thinks = [S.start, S.reasoning("hm")];
      const { options, outage, report, second, waiting } = yield* died((it) => [
        [...thinks, { run: it.away(3_600_000) }, S.reset],
        S.hello,
      ]);
      assert.strictEqual(waiting?.waiting?.for, "path");
      assert.deepStrictEqual(
        report.runs.map(({ outcome }) => outcome),
        ["offered"],
      );
      const left = yield* second.run("r");
      assert.isUndefined(left?.waiting);
      assert.isAtMost(left?.waited_ms ?? 0, 31_000);
      assert.isAtLeast(left?.waited_ms ?? 0, 31_000 - leaseMsDefault);
      // The path is still down: the next process reads from the record that it was reached before, and continues to wait.
      const services = yield* processOver(second);
      const taken = Context.get(services, StreamProcessor).takeUp("r", { request: options, transcript });
      const fiber = yield* Effect.forkChild(S.watch(taken));
      yield* Outage.settle;
      for (let at = 0; at < 60; at += 1) yield* TestClock.adjust("1 second");
      assert.strictEqual((yield* second.run("r"))?.waiting?.for, "path");
      outage.network.mend();
      const seen = yield* until(fiber);
      assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(" | "));
      const ended = yield* second.run("r");
      assert.isAtLeast(ended?.waited_ms ?? 0, (left?.waited_ms ?? 0) + 55_000);
      assert.strictEqual(outage.sent.length, 2);
    }),
  );

  it.effect("makes it end as an outage that is too long once the rest of its time is over, too", () =>
    Effect.gen(function* () {
      const { options, second } = yield* died((it) => [[S.start, { run: it.away(36_000_000) }, S.reset], S.hello], {
        budget: { max_outage_ms: 60_000 },
      });
      const services = yield* processOver(second);
      const taken = Context.get(services, StreamProcessor).takeUp("r", { request: options, transcript });
      const fiber = yield* Effect.forkChild(S.watch(taken));
      yield* Outage.settle;
      const seen = yield* until(fiber);
      assert.strictEqual(seen.lines.at(-1), "end stopped outage_too_long", seen.lines.join(" | "));
      assert.strictEqual((yield* second.run("r"))?.waited_ms, 60_000);
    }),
  );
});

describe("a process that dies while its run waits for the end of a cooldown", () => {
  it.effect("passes the wait on to the next process, which sends nothing before the wait ends", () =>
    Effect.gen(function* () {
      const limited = { kind: "rate_limited", status: 429, retry_after_ms: 120_000 } as const;
      const { options, outage, second, waiting } = yield* died(() => [[S.fail(limited)], S.hello], {
        budget: { max_retry_after_ms: 600_000, max_outage_ms: 600_000 },
      });
      assert.strictEqual(waiting?.waiting?.for, "cooldown");
      const services = yield* processOver(second);
      const taken = Context.get(services, StreamProcessor).takeUp("r", { request: options, transcript });
      const fiber = yield* Effect.forkChild(S.watch(taken));
      yield* Outage.settle;
      const seen = yield* until(fiber);
      assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(" | "));
      assert.isAtLeast((outage.sent[1] ?? 0) - (outage.sent[0] ?? 0), 120_000);
    }),
  );
});
