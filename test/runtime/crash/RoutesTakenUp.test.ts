/**
 * A run with routes that another process takes up: it continues on its recorded route, with the tries and the spending of all routes.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Fiber, Layer, Scope } from "effect";
import { TestClock } from "effect/testing";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Routes from "../../../src/stages/routes/Routes.ts";
import * as S from "../Scripted.ts";

type Script = ReadonlyArray<S.Step>;

const quota = S.fail({ kind: "rejected", reason: "quota", status: 402 });
const serverError = S.fail({ kind: "server_error", status: 500 });

/** A store that outlives its processes, and one process over it at a time. */
const bench = Effect.gen(function* () {
  const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
  const digest = (content: string) => Effect.succeed(`digest of ${content}`);
  const recorder: RunRecorder["Service"] = { ...memory, durable: true, digest };
  const process = Effect.map(
    Layer.build(
      Layer.fresh(StreamProcessor.layer).pipe(
        Layer.provide(Layer.succeed(RunRecorder, recorder)),
        Layer.provide(Layer.succeed(UserDecisions, { ask: () => Effect.succeed("stop" as const) })),
      ),
    ),
    (services) => Context.get(services, StreamProcessor),
  );
  /** Plays a run until it waits for a silent provider, and leaves it there. */
  const left = Effect.fnUntraced(function* (request: ReturnType<typeof routed>["options"]) {
    const scope = yield* Scope.make();
    const processor = yield* Scope.provide(process, scope);
    const fiber = yield* Effect.forkChild(S.watch(processor.run({ ...request, runId: "r" })), {
      startImmediately: true,
    });
    yield* TestClock.adjust("5 seconds");
    yield* Fiber.interrupt(fiber);
  });
  const takenUp = Effect.fnUntraced(function* (request: ReturnType<typeof routed>["options"]) {
    return yield* S.played((yield* process).takeUp("r", { request, transcript: "t" }));
  });
  return { left, takenUp, record: memory.run("r") };
});

const routed = (first: ReadonlyArray<Script>, further: Readonly<Record<string, ReadonlyArray<Script>>>) => {
  const primary = S.scripted(...first);
  const others = Object.entries(further).map(([id, scripts]) => ({ id, provider: S.scripted(...scripts) }));
  const routes = others.map(({ id, provider }) => ({
    id,
    provider: { id: `provider-${id}`, reasoning: false },
    attempt: provider.attempt,
    observe: (it: S.ScriptedPart) => it.says,
  }));
  return {
    options: S.options(primary, { routes: Routes.of(routes), transcript: "t" }),
    requests: () => [primary.attempts.length, ...others.map(({ provider }) => provider.attempts.length)],
  };
};

describe("A run with routes that another process takes up", () => {
  it.effect("continues on the route of its record, and not on one that it has left", () =>
    Effect.gen(function* () {
      const it = yield* bench;
      yield* it.left(routed([[quota]], { b: [[S.start, S.never]] }).options);
      const request = routed([], { b: [S.hello], c: [] });
      const seen = yield* it.takenUp(request.options);
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.deepStrictEqual(request.requests(), [0, 1, 0]);
      assert.deepInclude(seen.events.at(-1), { _tag: "RunCompleted", route: "b" });
      const { attempts } = (yield* it.record) ?? { attempts: [] };
      assert.deepStrictEqual(
        attempts.map(({ route, run }) => [route, run?.moves]),
        [
          [undefined, 0],
          ["b", 1],
          ["b", 1],
        ],
      );
    }).pipe(Effect.scoped),
  );

  it.effect("moves to a route that none of its processes has tried", () =>
    Effect.gen(function* () {
      const it = yield* bench;
      yield* it.left(routed([[quota]], { b: [[S.start, S.never]], c: [] }).options);
      const request = routed([], { b: [[quota]], c: [S.hello] });
      const seen = yield* it.takenUp(request.options);
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.deepStrictEqual(request.requests(), [0, 1, 1]);
    }).pipe(Effect.scoped),
  );

  it.effect("reports the failure of the first route that an earlier process received (L12)", () =>
    Effect.gen(function* () {
      const it = yield* bench;
      yield* it.left(routed([[quota]], { b: [[S.start, S.never]] }).options);
      const seen = yield* it.takenUp(routed([], { b: [[quota], [serverError]] }).options);
      assert.deepInclude(S.errorOf(seen.exit)?.failure, { kind: "rejected", reason: "quota" });
    }).pipe(Effect.scoped),
  );

  it.effect("is refused by name if its route is missing from its options, and stays unchanged", () =>
    Effect.gen(function* () {
      const it = yield* bench;
      yield* it.left(routed([[quota]], { b: [[S.start, S.never]] }).options);
      for (const request of [routed([S.hello], { c: [S.hello] }), routed([S.hello], {})]) {
        const seen = yield* it.takenUp(request.options);
        assert.strictEqual(S.errorOf(seen.exit)?.reason, "refused");
        assert.strictEqual(S.errorOf(seen.exit)?.message, 'routes: expected one with the id "b", which the run uses');
        assert.deepStrictEqual(
          request.requests().every((count) => count === 0),
          true,
        );
      }
      const seen = yield* it.takenUp(routed([], { b: [S.hello] }).options);
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.scoped),
  );

  it.effect("counts consecutive failures on its route over both processes", () =>
    Effect.gen(function* () {
      const it = yield* bench;
      yield* it.left(routed([[serverError], [S.start, S.never]], { b: [] }).options);
      const request = routed([[serverError]], { b: [S.hello] });
      const seen = yield* it.takenUp(request.options);
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.deepStrictEqual(request.requests(), [1, 1]);
    }).pipe(Effect.scoped),
  );
});
