/** Tools: permission to start, waits, and records before and after (laws L6 and L8). */
import { assert, describe, it, vi } from "@effect/vitest";
import { Context, Deferred, Effect, Fiber, Layer, Schema } from "effect";
import { TestClock } from "effect/testing";
import * as Observation from "../../../src/domain/Observation.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RecorderError, RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import type { ReadyCall } from "../../../src/runtime/contract/ToolCall.ts";
import { Groups } from "../../../src/runtime/pacing/Groups.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { ProcessorConfig, StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { type GuardedTool, ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

/** Runs every ready call of an event in a separate fiber, like a runtime that does not wait for its tools. */
const inBackground =
  <A, E>(tool: GuardedTool<undefined, A, E, never>) =>
  (event: RunEvent<S.ScriptedPart>) =>
    event._tag === "Part" && event.calls !== undefined
      ? Effect.forEach(event.calls, (call) => Effect.forkDetach(tool.run(call, undefined)))
      : Effect.void;

const reasonOf = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(effect), (error) =>
    typeof error === "object" && error !== null && "reason" in error ? error.reason : error,
  );

describe("ToolGuard", () => {
  it.effect("a call that is run twice starts once", () =>
    Effect.gen(function* () {
      let ran = 0;
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", () => Effect.sync(() => ++ran));
      const provider = S.scripted([S.start, S.callReady("bash"), S.done]);
      const second: Array<unknown> = [];
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) =>
        event._tag === "Part" && event.calls?.[0] !== undefined
          ? Effect.gen(function* () {
              const [call] = event.calls as readonly [ReadyCall];
              assert.strictEqual(yield* Effect.orDie(bash.run(call, undefined)), 1);
              second.push(yield* reasonOf(bash.run(call, undefined)));
            })
          : Effect.void,
      );
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.deepStrictEqual(second, ["already_dispatched"]);
      assert.strictEqual(ran, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("L6: a call of a superseded attempt cannot start, the replay's own call can", () =>
    Effect.gen(function* () {
      const ran: Array<string> = [];
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", (input: string) => Effect.sync(() => ran.push(input)));
      const provider = S.scripted([S.start, S.callReady("bash"), S.reset], [S.start, S.callReady("bash"), S.done]);
      const calls: Array<ReadyCall> = [];
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) => {
        if (event._tag === "Part") calls.push(...(event.calls ?? []));
        return Effect.void;
      });
      const [old, current] = calls as [ReadyCall, ReadyCall];
      assert.strictEqual(yield* reasonOf(bash.run(old, "old")), "superseded");
      yield* Effect.orDie(bash.run(current, "current"));
      assert.deepStrictEqual(ran, ["current"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a call of another run, or one that was never handed over, is refused by name", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", () => Effect.void);
      const provider = S.scripted([S.start, S.callReady("bash"), S.done]);
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash], runId: "r" })));
      assert.strictEqual(yield* reasonOf(bash.run({ run_id: "x", attempt: 1, call: "0.0" }, undefined)), "unknown_run");
      assert.strictEqual(
        yield* reasonOf(bash.run({ run_id: "r", attempt: 1, call: "0.7" }, undefined)),
        "unknown_call",
      );
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("tools that run after their stream has completed are on record", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", () => Effect.succeed("ran"));
      const provider = S.scripted([S.start, S.callReady("bash"), S.done]);
      const calls: Array<ReadyCall> = [];
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash], runId: "r" })), (event) => {
        if (event._tag === "Part") calls.push(...(event.calls ?? []));
        return Effect.void;
      });
      const [call] = calls as [ReadyCall];
      assert.strictEqual(yield* Effect.orDie(bash.run(call, undefined)), "ran");
      const record = yield* S.recordOf("r");
      assert.strictEqual(record.end?.state, "completed");
      assert.strictEqual(record.attempts[0]?.facts.tools[0]?.phase, "settled");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("L8: a dispatch is on record before its handler starts, its outcome before it is returned", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const recorder = yield* RunRecorder;
      const phase = Effect.map(Effect.orDie(recorder.run("r")), (record) => record?.attempts[0]?.facts.tools[0]?.phase);
      const during: Array<string | undefined> = [];
      const bash = guard.mutating("bash", () => Effect.map(phase, (it) => during.push(it)));
      const provider = S.scripted([S.start, S.callReady("bash"), S.done]);
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash], runId: "r" })), (event) =>
        event._tag === "Part" && event.calls?.[0] !== undefined
          ? Effect.gen(function* () {
              during.push(yield* phase);
              yield* Effect.orDie(bash.run(event.calls?.[0] ?? { run_id: "", attempt: 0, call: "" }, undefined));
              during.push(yield* phase);
            })
          : Effect.void,
      );
      assert.deepStrictEqual(during, ["handed_over", "dispatched", "settled"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("L8: a dispatch that cannot be recorded does not happen", () =>
    Effect.gen(function* () {
      let ran = 0;
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", () => Effect.sync(() => ++ran));
      const provider = S.scripted([S.start, S.callReady("bash"), S.done]);
      const refusals: Array<unknown> = [];
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) =>
        event._tag === "Part" && event.calls?.[0] !== undefined
          ? Effect.map(reasonOf(bash.run(event.calls[0], undefined)), (it) => refusals.push(it))
          : Effect.void,
      );
      assert.deepStrictEqual(refusals, ["not_recorded"]);
      assert.strictEqual(ran, 0);
    }).pipe(Effect.provide(brokenProcessor((entry) => entry._tag === "FactsRaised"))),
  );

  it.effect("L8: without a record of the incident there is no automatic retry, and the error is the provider's", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "start", "end record_failed nothing_shown"]);
      assert.instanceOf(S.errorOf(seen.exit)?.cause, S.ProviderBroke);
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(brokenProcessor((entry) => entry._tag === "IncidentOpened"))),
  );

  it.effect("L8: an attempt whose start cannot be recorded is not started", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.strictEqual(seen.lines.at(-1), "end record_failed nothing_shown");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(brokenProcessor((entry) => entry._tag === "AttemptStarted" && entry.attempt === 2))),
  );

  it.effect("a tool that still runs when the stream breaks is awaited, and its settle decides", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const build = guard.mutating("build", () => Effect.sleep("10 minutes"));
      const provider = S.scripted([S.start, S.callReady("build"), S.wait(1_000), S.reset], S.hello);
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { tools: [build], canContinue: true })),
        inBackground(build),
      );
      assert.deepStrictEqual(
        seen.lines.filter((it) => it.startsWith("retry") || it === "completed"),
        ["retry continue tools_settled", "completed"],
      );
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("after the drain limit the question is asked, and a late settle makes a new incident (L1)", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const over = yield* Deferred.make<void>();
      const build = guard.mutating("build", () => Deferred.await(over));
      const provider = S.scripted([S.start, S.callReady("build"), S.wait(1_000), S.reset]);
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { tools: [build], runId: "r" })),
        inBackground(build),
      );
      assert.deepStrictEqual(seen.lines.slice(-3), [
        "ask tool_outcome_unknown",
        "answer stop",
        "end stopped tool_outcome_unknown",
      ]);
      const given = vi.spyOn(Groups.prototype, "returnRetry");
      yield* Effect.addFinalizer(() => Effect.sync(() => given.mockRestore()));
      yield* Deferred.succeed(over, undefined);
      yield* TestClock.adjust("1 second");
      const record = yield* S.recordOf("r");
      assert.deepStrictEqual(
        record.incidents.map((it) => [it.decision.rule, it.status, it.facts.tools[0]?.phase]),
        [
          ["tool_outcome_unknown", "final", "dispatched"],
          ["tool_ran", "late", "settled"],
        ],
      );
      assert.lengthOf(given.mock.calls, 0, "its group hears of the end, and of nothing later");
    }).pipe(Effect.scoped, Effect.provide(S.processor()), Effect.provideService(ProcessorConfig, { drainMs: 5_000 })),
  );

  it.effect("a settle during an open question asks again on the grown facts", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const over = yield* Deferred.make<void>();
      const build = guard.mutating("build", () => Deferred.await(over));
      const provider = S.scripted([S.start, S.callReady("build"), S.wait(1_000), S.reset], S.hello);
      const fiber = yield* Effect.forkChild(
        S.watch(
          (yield* StreamProcessor).run(S.options(provider, { tools: [build], canContinue: true })),
          inBackground(build),
        ),
      );
      yield* TestClock.adjust("1 minute");
      yield* Deferred.succeed(over, undefined);
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual((yield* Fiber.join(fiber)).lines.slice(2), [
        "build:ready",
        "ask tool_outcome_unknown",
        "retry continue tools_settled",
        "attempt 2 continue",
        "start",
        "hello",
        "done",
        "completed",
      ]);
    }).pipe(
      Effect.provide(
        StreamProcessor.layer.pipe(
          Layer.provideMerge(
            Layer.merge(
              RunRecorder.layerMemory(),
              UserDecisions.layerAsk(() => Effect.never),
            ),
          ),
        ),
      ),
      Effect.provideService(ProcessorConfig, { drainMs: 5_000 }),
    ),
  );

  it.effect("a dispatch that races the decision waits for it, and never starts if the attempt is superseded", () =>
    Effect.gen(function* () {
      let ran = 0;
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", () => Effect.sync(() => ++ran));
      const provider = S.scripted([S.start, S.callReady("bash"), S.reset], S.hello);
      const outcomes: Array<unknown> = [];
      const calls: Array<ReadyCall> = [];
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) => {
        if (event._tag === "Part") calls.push(...(event.calls ?? []));
        // The retry is scheduled and not yet started: the fence is suspended, and the call must wait.
        return event._tag === "RetryScheduled" && calls[0] !== undefined
          ? Effect.forkDetach(Effect.map(reasonOf(bash.run(calls[0], undefined)), (it) => outcomes.push(it)))
          : Effect.void;
      });
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.deepStrictEqual(outcomes, ["superseded"]);
      assert.strictEqual(ran, 0);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a call that waits for the decision starts when the response turns out to be whole", () =>
    Effect.gen(function* () {
      let ran = 0;
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", () => Effect.sync(() => ++ran));
      const provider = S.scripted([S.start, S.callReady("bash"), S.done, S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) =>
        event._tag === "Part" && event.calls?.[0] !== undefined
          ? Effect.forkDetach(Effect.delay(bash.run(event.calls[0], undefined), 10))
          : Effect.void,
      );
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.strictEqual(ran, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a failed tool is an outcome; an interrupted or dying one is unknown", () =>
    Effect.gen(function* () {
      class No extends Schema.TaggedError<No>()("No", {}) {}
      const guard = yield* ToolGuard;
      const phases: Array<string | undefined> = [];
      const handlers = [Effect.fail(new No()), Effect.die("bug"), Effect.interrupt];
      for (const [index, handler] of handlers.entries()) {
        const tool = guard.mutating("tool", () => handler);
        const runId = `r${index}`;
        const provider = S.scripted([S.start, S.callReady("tool"), S.done]);
        yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [tool], runId })), (event) =>
          event._tag === "Part" && event.calls?.[0] !== undefined
            ? Effect.flatMap(Effect.forkDetach(tool.run(event.calls[0], undefined)), Fiber.await)
            : Effect.void,
        );
        phases.push((yield* S.recordOf(runId)).attempts[0]?.facts.tools[0]?.phase);
      }
      assert.deepStrictEqual(phases, ["settled", "outcome_unknown", "outcome_unknown"]);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("call ids", () => {
  const twoCalls = (id: string) => [S.start, S.callReady("bash", 0, id), S.callReady("bash", 1, id), S.done];

  it.effect("empty, `0` and repeated ids are distinguished by their key", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const processor = yield* StreamProcessor;
      for (const [index, id] of ["", "0", "same"].entries()) {
        let ran = 0;
        const bash = guard.mutating("bash", () => Effect.sync(() => ++ran));
        const provider = S.scripted(twoCalls(id));
        yield* S.played(processor.run(S.options(provider, { tools: [bash], runId: `r${index}` })), (event) =>
          event._tag === "Part"
            ? Effect.forEach(event.calls ?? [], (call) => Effect.orDie(bash.run(call, undefined)))
            : Effect.void,
        );
        assert.strictEqual(ran, 2, `id "${id}"`);
      }
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("calls without any id are distinguished by their key", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      let ran = 0;
      const bash = guard.mutating("bash", () => Effect.sync(() => ++ran));
      const nameless = (ordinal: number) => ({
        part: {
          name: `call ${ordinal}`,
          says: Observation.calls([{ choice: 0, ordinal, tool: "bash", executor: "runtime", phase: "ready" }]),
        },
      });
      const provider = S.scripted([S.start, nameless(0), nameless(1), S.done]);
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) =>
        event._tag === "Part"
          ? Effect.forEach(event.calls ?? [], (call) => Effect.orDie(bash.run(call, undefined)))
          : Effect.void,
      );
      assert.strictEqual(ran, 2);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("if only an id reaches the handler, a repeated one is refused while the earlier is unsettled", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const gate = yield* Deferred.make<void>();
      const bash = guard.mutating("bash", () => Deferred.await(gate));
      const provider = S.scripted(twoCalls("same"));
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash], runId: "r" })));
      const byId = { run_id: "r", id: "same" };
      const first = yield* Effect.forkChild(bash.run(byId, undefined), { startImmediately: true });
      assert.strictEqual(yield* reasonOf(bash.run(byId, undefined)), "already_dispatched");
      yield* Deferred.succeed(gate, undefined);
      yield* Fiber.join(first);
      // The first has settled: the second call with that id may run now, and a third try finds no call.
      yield* Effect.orDie(bash.run(byId, undefined));
      assert.strictEqual(yield* reasonOf(bash.run(byId, undefined)), "already_dispatched");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an id that every turn repeats denotes the newest attempt's call", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      let ran = 0;
      const bash = guard.mutating("bash", () => Effect.sync(() => ++ran));
      const provider = S.scripted(
        [S.start, S.callReady("bash", 0, "0"), S.reset],
        [S.start, S.callReady("bash", 0, "0"), S.done],
      );
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash], runId: "r" })));
      yield* Effect.orDie(bash.run({ run_id: "r", id: "0" }, undefined));
      assert.strictEqual(ran, 1);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("guarded is a proof", () => {
  it.effect("a plain boundary that looks like a guarded tool proves nothing", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const real = guard.mutating("bash", () => Effect.void);
      const provider = S.scripted([S.start, S.callReady("bash"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [{ ...real }] })));
      assert.strictEqual(seen.lines.at(-1), "end stopped tool_call_handed_over");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("one unguarded tool among guarded ones invalidates the proof", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const real = guard.mutating("bash", () => Effect.void);
      const plain = { name: "edit", executor: "runtime", effect: "mutating" } as const;
      const provider = S.scripted([S.start, S.callReady("bash"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [real, plain] })));
      assert.strictEqual(seen.lines.at(-1), "end stopped tool_call_handed_over");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a call of an undeclared tool may run anywhere, so it raises a question", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const real = guard.mutating("bash", () => Effect.void);
      const provider = S.scripted([S.start, S.callReady("other"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [real] })));
      assert.strictEqual(seen.lines.at(-1), "end stopped tool_outcome_unknown");
    }).pipe(Effect.provide(S.processor())),
  );
});

/** A processor whose recorder refuses every write with such an entry. */
const brokenProcessor = (refuses: (entry: Entry) => boolean) =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(
      Layer.merge(
        UserDecisions.layerHeadless(),
        Layer.effect(
          RunRecorder,
          Effect.gen(function* () {
            const memory = Context.get(yield* Layer.build(RunRecorder.layerMemory()), RunRecorder);
            return RunRecorder.of({
              ...memory,
              write: (run_id, entries) =>
                entries.some(refuses)
                  ? Effect.fail(new RecorderError({ reason: "unavailable", run_id, message: "disk full" }))
                  : memory.write(run_id, entries),
            });
          }),
        ),
      ),
    ),
  );
