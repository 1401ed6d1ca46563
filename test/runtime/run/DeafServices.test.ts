/** Every wait of a run can be abandoned at any moment: a cancel and a close take effect despite code that cannot be interrupted (L11). */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { SharedPacing } from "../../../src/recorder/shared/SharedFacts.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { refreshMsMax } from "../../../src/runtime/recovery/Recovery.ts";
import { cancelGraceMs } from "../../../src/runtime/recovery/Waits.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

/** Ignores interrupts, and never ends. */
const deaf = Effect.uninterruptible(Effect.never);

interface Given {
  readonly script: ReadonlyArray<S.Step>;
  readonly ask?: UserDecisions["Service"]["ask"];
  readonly handler?: Effect.Effect<void>;
  readonly verify?: ToolGuard.Verify;
  readonly pacing?: SharedPacing;
  readonly more?: S.More;
}

const begin = ({
  ask = () => Effect.succeed("stop" as const),
  handler = Effect.void,
  more,
  pacing,
  script,
  verify,
}: Given) =>
  Effect.gen(function* () {
    const scope = Scope.makeUnsafe();
    const services = yield* Layer.buildWithScope(
      Layer.fresh(StreamProcessor.layer).pipe(
        Layer.provide(Layer.fresh(S.recorderThat(pacing === undefined ? {} : { pacing }))),
        Layer.provide(Layer.succeed(UserDecisions, { ask })),
      ),
      scope,
    );
    const options = verify === undefined ? {} : { verify };
    const bash = Context.get(services, ToolGuard).mutating("bash", () => handler, options);
    const processor = Context.get(services, StreamProcessor);
    const lines: Array<string> = [];
    const run = processor.run(S.options(S.scripted(script), { runId: "r", tools: [bash], ...more }));
    const consumed = Stream.runForEach(run, (event) => {
      lines.push(S.line(event));
      if (event._tag !== "Part") return Effect.void;
      return Effect.forEach(event.calls ?? [], (call) => Effect.forkDetach(Effect.exit(bash.run(call, undefined))));
    });
    const fiber = yield* Effect.forkDetach(Effect.exit(consumed), { startImmediately: true });
    yield* TestClock.adjust("1 second");
    const close = Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true });
    return { processor, lines, fiber, close };
  });

const waits: Readonly<Record<string, Given>> = {
  "a handler": { script: [S.start, S.callReady("bash"), S.wait(10), S.reset], handler: deaf },
  "a question": { script: [S.start, S.text("a"), S.wait(10), S.reset], ask: () => deaf },
  "a tool's verify": {
    script: [S.start, S.callReady("bash"), S.wait(10), S.reset],
    handler: Effect.die(new Error("the handler died")),
    verify: () => deaf,
  },
  "the renewal of credentials": {
    script: [S.start, S.fail({ kind: "rejected", reason: "auth", status: 401 })],
    more: { refreshCredentials: deaf },
  },
  "the count of its group": {
    script: [S.start, S.wait(10), S.reset],
    more: { group: "g", budget: { max_group_retries: 1 } },
    pacing: { draw: () => Effect.succeed(1), spend: () => deaf },
  },
  "a token of the throttle": {
    script: [S.start, S.wait(900), S.reset],
    pacing: { draw: () => deaf, spend: () => deaf },
  },
};

describe("A wait for code that cannot be interrupted", () => {
  for (const [name, given] of Object.entries(waits)) {
    it.effect(`${name}: is ended at once by a close`, () =>
      Effect.gen(function* () {
        const it = yield* begin(given);
        assert.isUndefined(it.fiber.pollUnsafe());
        const closing = yield* it.close;
        yield* TestClock.adjust(1);
        assert.isDefined(it.fiber.pollUnsafe(), "the run hangs");
        assert.isDefined(closing.pollUnsafe(), "the layer hangs");
      }),
    );

    it.effect(`${name}: is ended by a cancel within its grace period, and at once by a close after it`, () =>
      Effect.gen(function* () {
        const cancelled = yield* begin(given);
        yield* cancelled.processor.cancel("r");
        yield* TestClock.adjust(cancelGraceMs);
        assert.isDefined(cancelled.fiber.pollUnsafe(), "the run hangs");
        const closed = yield* begin(given);
        yield* closed.processor.cancel("r");
        const closing = yield* closed.close;
        yield* TestClock.adjust(1);
        assert.isDefined(closing.pollUnsafe(), "the layer hangs");
      }),
    );
  }

  it.effect("the renewal of credentials has its own limit", () =>
    Effect.gen(function* () {
      const it = yield* begin(waits["the renewal of credentials"] ?? { script: [] });
      yield* TestClock.adjust(2 * refreshMsMax);
      assert.isDefined(it.fiber.pollUnsafe());
    }),
  );

  it.effect("a question whose service throws or gives no effect ends the run with that defect", () =>
    Effect.gen(function* () {
      const throwing: UserDecisions["Service"]["ask"] = () => {
        throw new Error("no terminal");
      };
      // Results that a service in plain JavaScript may return.
      const garbage = (() => "retry") as unknown as UserDecisions["Service"]["ask"];
      for (const ask of [throwing, garbage]) {
        const it = yield* begin({ script: [S.start, S.text("a"), S.wait(10), S.reset], ask });
        const exit = it.fiber.pollUnsafe();
        assert.isDefined(exit);
        assert.isTrue(exit !== undefined && Exit.isSuccess(exit) && Exit.hasDies(exit.value));
      }
    }),
  );
});

describe("A recorder that never responds", () => {
  const recoveries: Readonly<Record<string, Effect.Effect<unknown, unknown, RunRecorder>>> = {
    recover: CrashRecovery.recover(),
    answer: CrashRecovery.answer({ run_id: "r", revision: 1, choice: "stop", by: "person" }),
    giveUp: CrashRecovery.giveUp("r"),
  };
  const recorder = Object.fromEntries(
    ["write", "run", "runs", "incidents", "claim", "release", "orphans", "answer", "digest"].map((name) => [
      name,
      () => deaf,
    ]),
  );
  for (const [name, recovery] of Object.entries(recoveries)) {
    it.effect(`does not block CrashRecovery.${name} forever`, () =>
      Effect.gen(function* () {
        // Plain JavaScript may pass such a recorder.
        const service = recorder as unknown as RunRecorder["Service"];
        const fiber = yield* Effect.forkDetach(Effect.exit(Effect.provideService(recovery, RunRecorder, service)));
        yield* TestClock.adjust("2 minutes");
        const exit = fiber.pollUnsafe();
        assert.isTrue(exit !== undefined && Exit.isSuccess(exit) && Exit.isFailure(exit.value));
      }),
    );
  }
});
