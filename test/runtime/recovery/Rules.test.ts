import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect";
import { TestClock } from "effect/testing";
import * as AttemptFacts from "../../../src/domain/AttemptFacts.ts";
import { Rule } from "../../../src/domain/Decision.ts";
import { RunIncident } from "../../../src/domain/RunIncident.ts";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import type { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { InterruptSignature } from "../../../src/runtime/contract/InterruptSignature.ts";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import { tokensMax } from "../../../src/runtime/pacing/Throttle.ts";
import { ProcessorConfig, StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";
import { bench, optionsOf, runId } from "./RuleBench.ts";
import { cases } from "./RuleCases.ts";

const throughJson = Schema.toCodecJson(RunIncident);
const drainSoon = Layer.succeed(ProcessorConfig, { drainMs: 1_000 });

/** Law L9: a stored incident, read from JSON, leads to the stored decision. */
const assertReplayable = (incident: RunIncident): void => {
  const json: unknown = JSON.parse(JSON.stringify(Schema.encodeSync(throughJson)(incident)));
  const stored = Schema.decodeUnknownSync(throughJson)(json);
  assert.deepStrictEqual(stored, incident);
  assert.deepStrictEqual(RecoveryPolicy.decide(stored), incident.decision);
};

/** Checks that the run's last incident has the rule, and that every incident has a sentence and can be decided again. */
const assertOnRecord = (id: string, rule: Rule) =>
  Effect.gen(function* () {
    const { incidents } = yield* S.recordOf(id);
    assert.isTrue(
      incidents.some((incident) => incident.decision.rule === rule),
      `an incident by ${rule} among ${incidents.map((incident) => incident.decision.rule)}`,
    );
    for (const incident of incidents) {
      assert.isAbove(incident.message.length, 20);
      assertReplayable(incident);
    }
  });

/** Rethrows an error that a caller's own check threw while it consumed the run. */
const rethrow = (exit: S.Seen["exit"]): void => {
  if (Exit.isSuccess(exit)) return;
  for (const reason of exit.cause.reasons) if (reason._tag === "Die") throw reason.defect;
};

/** Law L8: a decision, a hand-over or an end is on record before the caller sees it. */
const assertRecordedFirst = (event: RunEvent<S.ScriptedPart>, recorder: RunRecorder["Service"]) =>
  Effect.gen(function* () {
    const record = yield* Effect.orDie(recorder.run(runId));
    const attempt = (n: number) => record?.attempts.find((it) => it.attempt === n);
    const decision = record?.incidents.at(-1)?.decision;
    switch (event._tag) {
      case "AttemptStarted":
        return assert.strictEqual(attempt(event.attempt)?.mode, event.mode);
      case "Part": {
        const { shows } = event.part.says;
        const calls = event.part.says.calls.filter((it) => it.executor === "runtime");
        const facts = attempt(event.attempt)?.facts ?? AttemptFacts.fresh;
        assert.isTrue(AttemptFacts.isAtMost(AttemptFacts.Shown, shows, facts.shown), `${event.part.name} on record`);
        return assert.isAtLeast(facts.tools.length, calls.length, `${event.part.name} on record`);
      }
      case "RetryScheduled":
        return assert.deepStrictEqual([decision?.action, decision?.rule], ["auto_retry_once", event.rule]);
      case "QuestionAsked":
        assert.deepStrictEqual([decision?.action, decision?.rule], ["ask_user", event.question.rule]);
        return assert.strictEqual(record?.questions.at(-1)?.revision, event.question.revision);
      case "QuestionAnswered":
        return assert.strictEqual(record?.questions.at(-1)?.answer, event.choice);
      case "RunCompleted":
        return assert.strictEqual(record?.end?.state, "completed");
      case "AttemptDiscarded":
        return;
    }
  });

describe("Every rule through run, recorded before it is acted on (L8), its incident replayable (L9)", () => {
  for (const rule of cases) {
    it.effect(`${rule.rule}: ${rule.when}`, () =>
      Effect.gen(function* () {
        const its = yield* bench;
        const { options, onEvent, provider } = optionsOf(rule, its);
        const seen = yield* S.played(its.processor.run(options), (event) =>
          Effect.andThen(assertRecordedFirst(event, its.recorder), onEvent?.(event) ?? Effect.void),
        );
        rethrow(seen.exit);
        assert.deepStrictEqual(seen.lines, rule.lines);
        assert.strictEqual(provider.attempts.length, rule.attempts.length);
        yield* assertOnRecord(runId, rule.rule);
      }).pipe(Effect.provide(S.processor(rule.answers).pipe(Layer.provide(drainSoon)))),
    );
  }

  // Many broken connections would be an outage, whose runs start in waves and need no token.
  const broken = S.fail({ kind: "server_error", status: 500 });

  it.effect("throttled: a storm has taken every token of the provider", () =>
    Effect.gen(function* () {
      const { processor } = yield* bench;
      const storm = Array.from({ length: tokensMax }, (_, index) =>
        processor.run(S.options(S.scripted([broken], [S.done]), { runId: `storm-${index}` })),
      );
      const fibers = yield* Effect.forEach(storm, (run) => Effect.forkChild(S.watch(run)));
      yield* TestClock.adjust(1);
      const provider = S.scripted([S.reset]);
      const seen = yield* S.played(processor.run(S.options(provider, { runId, budget: { max_retry_after_ms: 50 } })));
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "ask throttled", "answer stop", "end stopped throttled"]);
      assert.strictEqual(provider.attempts.length, 1);
      for (const fiber of fibers) assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "completed");
      yield* assertOnRecord(runId, "throttled");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("throttled: a shorter wait is added to the delay instead", () =>
    Effect.gen(function* () {
      const { processor } = yield* bench;
      const storm = Array.from({ length: tokensMax }, (_, index) =>
        processor.run(S.options(S.scripted([broken], [S.done]), { runId: `storm-${index}` })),
      );
      yield* Effect.forEach(storm, (run) => Effect.forkChild(S.watch(run)));
      yield* TestClock.adjust(1);
      const seen = yield* S.played(processor.run(S.options(S.scripted([S.reset], [S.done]), { runId })));
      const scheduled = seen.events.find((event) => event._tag === "RetryScheduled");
      // 500 ms at half jitter, and 99 ms until the token that one millisecond has begun to refill.
      assert.strictEqual(scheduled?.delay_ms, 375 + 99);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a provider-executed call is on record before its part is handed over (L8)", () =>
    Effect.gen(function* () {
      const { processor } = yield* bench;
      const provider = S.scripted([S.start, S.providerCall("deploy"), S.done]);
      let phases: ReadonlyArray<string> | undefined;
      const look = Effect.gen(function* () {
        phases = (yield* S.recordOf(runId)).attempts[0]?.facts.tools.map((row) => row.phase);
      });
      yield* Stream.runForEach(processor.run(S.options(provider, { runId })), (event) =>
        S.line(event) === "deploy:input_started" ? look : Effect.void,
      );
      assert.deepStrictEqual(phases, ["input_started"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it("has a case for every rule of the table", () => {
    const covered = new Set<Rule>([...cases.map((it) => it.rule), "throttled", "outage_too_long"]);
    assert.deepStrictEqual(
      Rule.literals.filter((rule) => !covered.has(rule)),
      [],
    );
  });
});

describe("The source of a cancel (L10)", () => {
  const interrupted = (how: (fiber: Fiber.Fiber<unknown, unknown>) => Effect.Effect<unknown>, rule: Rule) =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.text("hi"), S.never]);
      const lines: Array<string> = [];
      const fiber = yield* Effect.forkChild(
        Stream.runForEach(processor.run(S.options(provider, { runId })), (event) =>
          Effect.sync(() => lines.push(S.line(event))),
        ),
      );
      yield* TestClock.adjust("1 second");
      yield* how(fiber);
      assert.deepStrictEqual(lines, ["attempt 1 first", "start", "hi"]);
      const record = yield* S.recordOf(runId);
      assert.strictEqual(record.end?.reason, rule);
      assert.strictEqual(record.state, "ended");
      assert.strictEqual(provider.attempts.length, 1);
      yield* assertOnRecord(runId, rule);
    }).pipe(Effect.provide(S.processor()));

  it.effect("an unsigned interrupt is the caller's", () => interrupted(Fiber.interrupt, "caller_interrupted"));

  for (const [by, rule] of [
    ["user", "user_cancelled"],
    ["lifecycle", "lifecycle_closed"],
  ] as const) {
    it.effect(`an interrupt signed by the ${by} is the ${by}'s`, () =>
      interrupted(
        (fiber) =>
          Effect.andThen(Fiber.interruptAs(fiber, 7, Context.make(InterruptSignature, by)), Fiber.await(fiber)),
        rule,
      ),
    );
  }

  it.effect("a provider that interrupts itself is retried like a transport failure", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const seen = yield* S.played(
        processor.run(S.options(S.scripted([S.start, { interrupt: true }], [S.done]), { runId })),
      );
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "start",
        "retry replay nothing_shown",
        "discard 1 after 0",
        "attempt 2 replay",
        "done",
        "completed",
      ]);
      yield* assertOnRecord(runId, "nothing_shown");
    }).pipe(Effect.provide(S.processor())),
  );
});
