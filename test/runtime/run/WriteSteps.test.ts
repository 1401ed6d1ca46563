/**
 * Each write of a run fails in each way, one by one: nothing happens twice, nothing hangs, and the record finally matches the
 * events.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Layer, Random, Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { Choice } from "../../../src/domain/Decision.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { awayFor, faults, faulty, type Store } from "./FaultyStore.ts";

interface Scenario {
  readonly scripts: ReadonlyArray<ReadonlyArray<S.Step>>;
  readonly more?: S.More;
  readonly answer?: Choice | "parked";
}

const again = [S.start, S.text("b"), S.done];

const scenarios: Readonly<Record<string, Scenario>> = {
  "a whole response": { scripts: [[S.start, S.text("a"), S.wait(10), S.done]] },
  "nothing shown, replayed": { scripts: [[S.start, S.reset], again] },
  "text, a tool, text, whole": {
    scripts: [[S.start, S.text("a"), S.callReady("bash"), S.wait(10), S.text("b"), S.done]],
  },
  "a tool ran, continued": {
    scripts: [[S.start, S.callReady("bash"), S.wait(10), S.reset], again],
    more: { canContinue: true },
  },
  "text shown, a question, retried": { scripts: [[S.start, S.text("a"), S.wait(10), S.reset], again], answer: "retry" },
  "text shown, a question, parked": { scripts: [[S.start, S.text("a"), S.wait(10), S.reset]], answer: "parked" },
};

const runId = "r";

/** A run that was played to its end, and the close of its layer. */
interface Played {
  readonly lines: ReadonlyArray<string>;
  readonly started: number;
  readonly unrecorded: ReadonlyArray<string>;
  readonly store: Store;
  readonly closed: boolean;
  readonly ended: boolean;
}

const play = (scenario: Scenario, faultOf: Parameters<typeof faulty>[1]): Effect.Effect<Played, never, RunRecorder> =>
  Effect.gen(function* () {
    const memory = yield* RunRecorder;
    const store = faulty(memory, faultOf);
    const scope = Scope.makeUnsafe();
    const services = yield* Layer.buildWithScope(
      StreamProcessor.layer.pipe(
        Layer.provide(Layer.succeed(RunRecorder, store.recorder)),
        Layer.provide(Layer.succeed(UserDecisions, { ask: () => Effect.succeed(scenario.answer ?? "stop") })),
        Layer.provideMerge(Layer.succeed(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 })),
      ),
      scope,
    );
    const unrecorded: Array<string> = [];
    let started = 0;
    const provider = S.scripted(...scenario.scripts);
    const attempt: typeof provider.attempt = (context) => {
      const known = store.taken.some((it) => it._tag === "AttemptStarted" && it.attempt === context.attempt);
      if (context.attempt > 1 && !known) unrecorded.push(`attempt ${context.attempt}`);
      return provider.attempt(context);
    };
    const bash = Context.get(services, ToolGuard).mutating("bash", () =>
      Effect.sync(() => {
        started += 1;
        const facts = store.taken.flatMap((it) => (it._tag === "FactsRaised" ? it.facts.tools : []));
        if (!facts.some(({ phase }) => phase === "dispatched")) unrecorded.push("a dispatch");
      }),
    );
    const options = S.options({ attempt }, { ...scenario.more, runId, transcript: "t", tools: [bash] });
    const lines: Array<string> = [];
    const consumed = Stream.runForEach(Context.get(services, StreamProcessor).run(options), (event) => {
      lines.push(S.line(event));
      if (event._tag !== "Part") return Effect.void;
      return Effect.forEach(event.calls ?? [], (call) => Effect.ignore(bash.run(call, undefined)), { discard: true });
    });
    const fiber = yield* Effect.forkDetach(consumed, { startImmediately: true });
    yield* TestClock.adjust("1 hour");
    const exit = fiber.pollUnsafe();
    const error = exit === undefined ? undefined : S.errorOf(exit);
    if (error !== undefined) lines.push(`end ${error.reason}`);
    const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true });
    yield* TestClock.adjust("1 hour");
    const closed = closing.pollUnsafe() !== undefined;
    return { lines, started, unrecorded, store, closed, ended: exit !== undefined };
  });

const holds = (it: Played, where: string): Effect.Effect<void, never, RunRecorder> =>
  Effect.gen(function* () {
    assert.isTrue(it.ended, `${where}: the run hangs`);
    assert.isTrue(it.closed, `${where}: the layer hangs`);
    assert.isAtMost(it.started, 1, `${where}: the tool ran twice`);
    assert.deepStrictEqual(it.unrecorded, [], `${where}: acted before the record (L8)`);
    const text = it.lines.filter((line) => line.length === 1);
    assert.deepStrictEqual([...new Set(text)], text, `${where}: shown twice`);
    const ends = it.lines.filter((line) => line === "completed" || line.startsWith("end "));
    assert.lengthOf(ends, 1, `${where}: ${it.lines}`);
    const record = yield* S.recordOf(runId);
    const completed = it.lines.at(-1) === "completed";
    const parked = it.lines.at(-1) === "end parked";
    assert.strictEqual(record.state, parked ? "asking" : "ended", `${where}: ${it.lines}`);
    if (!parked) assert.strictEqual(record.end?.state, completed ? "completed" : "stopped", where);
    const asked = it.lines.filter((line) => line.startsWith("ask ")).length;
    // A question that the store did not accept in time was never asked, so its default applied.
    const byDefault = record.questions.filter(({ answered_by }) => answered_by === "expiry").length;
    assert.strictEqual(record.questions.length - byDefault, asked, `${where}: questions`);
    const attempts = it.lines.filter((line) => line.startsWith("attempt ")).length;
    assert.isAtLeast(record.attempts.length, attempts, `${where}: attempts`);
  });

const inStore = <A, E>(effect: Effect.Effect<A, E, RunRecorder>) =>
  Effect.provide(effect, Layer.fresh(RunRecorder.layerMemory()));

describe("A write that fails in any way loses nothing, repeats nothing and blocks no run (L7, L8, L11)", () => {
  for (const [name, scenario] of Object.entries(scenarios)) {
    for (const [way, fault] of Object.entries(faults)) {
      it.effect(`${name}: each write ${way}`, () =>
        Effect.gen(function* () {
          const writes = yield* inStore(
            Effect.map(
              play(scenario, () => undefined),
              ({ store }) => store.tried(),
            ),
          );
          assert.isAbove(writes, 1);
          for (let at = 1; at <= writes; at += 1) {
            const where = `${name}, write ${at} of ${writes} ${way}`;
            yield* inStore(
              Effect.flatMap(
                play(scenario, (write) => (write === at ? fault : undefined)),
                (it) => holds(it, where),
              ),
            );
          }
        }),
      );
    }
    for (const ms of [300, 3_000, 60_000]) {
      it.effect(`${name}: the store is away for ${ms} ms from each write on`, () =>
        Effect.gen(function* () {
          const writes = yield* inStore(
            Effect.map(
              play(scenario, () => undefined),
              ({ store }) => store.tried(),
            ),
          );
          for (let at = 1; at <= writes; at += 1) {
            const where = `${name}, away for ${ms} ms from write ${at} of ${writes}`;
            yield* inStore(Effect.flatMap(play(scenario, awayFor(at, ms)), (it) => holds(it, where)));
          }
        }),
      );
    }
  }
});

describe("A write that the store refuses for good is no record of anything (L8)", () => {
  for (const [name, scenario] of Object.entries(scenarios)) {
    for (const reason of ["unknown_run", "invalid"] as const) {
      it.effect(`${name}: each write, alone and with all after it, is refused as ${reason}`, () =>
        Effect.gen(function* () {
          const refused = () => Effect.fail(new RecorderError({ reason, run_id: runId, message: reason }));
          const writes = yield* inStore(
            Effect.map(
              play(scenario, () => undefined),
              ({ store }) => store.tried(),
            ),
          );
          for (let at = 2; at <= writes; at += 1) {
            for (const to of [at, Number.POSITIVE_INFINITY]) {
              const where = `${name}, write ${at} to ${to} of ${writes}`;
              const it = yield* inStore(play(scenario, (write) => (write >= at && write <= to ? refused : undefined)));
              assert.isTrue(it.ended && it.closed, `${where}: hangs`);
              assert.isAtMost(it.started, 1, `${where}: the tool ran twice`);
              assert.deepStrictEqual(it.unrecorded, [], `${where}: acted before the record (L8)`);
            }
          }
        }),
      );
    }
  }
});
