/** What a caller is handed, when, and what counts as shown (law L4); reveal on_complete; plain parts; one live attempt (L6). */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { Delivery } from "../../../src/domain/AttemptFacts.ts";
import * as Observation from "../../../src/domain/Observation.ts";
import { heldBytesMax } from "../../../src/runtime/attempt/Reveal.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

const overloaded = S.errorEvent({ kind: "overloaded" });
const bash = { name: "bash", executor: "runtime", effect: "mutating" } as const;

/** Plain parts to the end: their names, and how it ended. */
const partsOf = (stream: Stream.Stream<S.ScriptedPart, { readonly rule: string }>) =>
  Effect.gen(function* () {
    const names: Array<string> = [];
    const fiber = yield* Effect.forkChild(
      Effect.exit(Stream.runForEach(stream, (part) => Effect.sync(() => names.push(part.name)))),
    );
    yield* TestClock.adjust("10 hours");
    const exit = yield* Fiber.join(fiber);
    return [...names, S.errorOf(exit)?.rule ?? "completed"];
  });

describe("L4 shown means handed over", () => {
  it.effect(
    "text that arrived together with the error was never shown: it is thrown away and replayed in silence",
    () =>
      Effect.gen(function* () {
        const provider = S.scripted([S.start, S.together(S.text("half"), overloaded)], S.hello);
        const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
        assert.deepStrictEqual(seen.lines, [
          "attempt 1 first",
          "start",
          "retry replay nothing_shown",
          "discard 1 after 0",
          "attempt 2 replay",
          "start",
          "hello",
          "done",
          "completed",
        ]);
        const facts = (yield* S.recordOf("r")).incidents[0]?.facts;
        assert.strictEqual(facts?.progress, "output");
        assert.strictEqual(facts?.shown, "nothing");
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a part that a slow caller has not pulled when the run is cancelled was not shown", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.text("a"), S.text("b"), S.never]);
      const seen = yield* S.played(processor.run(S.options(provider, { runId: "r" })), (event) =>
        S.line(event) === "start" ? Effect.andThen(Effect.sleep("1 minute"), processor.cancel("r")) : Effect.void,
      );
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "start", "end do_not_retry user_cancelled"]);
      assert.strictEqual((yield* S.recordOf("r")).incidents[0]?.facts.shown, "nothing");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("frozen parts of a complete response are handed over before its end", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.together(S.text("all"), S.done, overloaded)]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "start", "all", "done", "completed"]);
      const end = seen.events.at(-1);
      assert.strictEqual(end?._tag === "RunCompleted" ? end.late_failure?.kind : undefined, "overloaded");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("shown text is withdrawn only when its replay really starts", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reasoning("hm"), S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.deepStrictEqual(seen.lines.slice(3, 6), [
        "retry replay only_reasoning_shown",
        "discard 1 after 0",
        "attempt 2 replay",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect(
    "text, then a call of a guarded tool, then a cut: the order survives one chunk, and the run continues",
    () =>
      Effect.gen(function* () {
        const guard = yield* ToolGuard;
        const guarded = guard.mutating("bash", () => Effect.void);
        const provider = S.scripted(
          [S.start, S.together(S.text("I will"), S.callReady("bash")), S.reset],
          [S.start, S.text("go on"), S.done],
        );
        const seen = yield* S.played(
          (yield* StreamProcessor).run(S.options(provider, { tools: [guarded], canContinue: true })),
        );
        assert.deepStrictEqual(seen.lines, [
          "attempt 1 first",
          "start",
          "I will",
          "bash:ready",
          "retry continue text_closed_by_call",
          "discard 1 after 2",
          "attempt 2 continue",
          "start",
          "go on",
          "done",
          "completed",
        ]);
        assert.deepStrictEqual(
          provider.attempts[1]?.calls.map((it) => [it.tool, it.outcome]),
          [["bash", "not_run"]],
        );
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("L3: a replay after a continue repeats the continuation, never the run's first request", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const guarded = guard.mutating("bash", () => Effect.void);
      const provider = S.scripted(
        [S.start, S.text("I will"), S.callReady("bash"), S.reset],
        [S.start, S.reset],
        [S.start, S.text("go on"), S.done],
      );
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { tools: [guarded], canContinue: true })),
      );
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.deepStrictEqual(
        provider.attempts.map((it) => [it.mode, it.request, it.calls.length]),
        [
          ["first", "first", 0],
          ["continue", "continue", 1],
          ["replay", "continue", 1],
        ],
      );
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("reveal on_complete", () => {
  it.effect("calls are held too, and none is handed over before its end is proven", () =>
    Effect.gen(function* () {
      const provider = S.scripted(
        [S.start, S.callStarts("bash"), S.callReady("bash"), S.reset],
        [S.start, S.callReady("bash"), S.done],
      );
      const options = S.options(provider, { reveal: "on_complete", tools: [bash] });
      const seen = yield* S.played((yield* StreamProcessor).run(options));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "retry replay nothing_shown",
        "attempt 2 replay",
        "start",
        "bash:ready",
        "done",
        "completed",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a marker that only a clean end confirms releases what was held", () =>
    Effect.gen(function* () {
      const atEnd: S.Step = {
        part: { name: "last", says: { ...Observation.text(1), terminal_at_end: true, finish: "STOP" } },
      };
      const provider = S.scripted([S.text("a"), atEnd, S.reset], [S.text("a"), atEnd]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { reveal: "on_complete" })));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "retry replay nothing_shown",
        "attempt 2 replay",
        "a",
        "last",
        "completed",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("past its byte limit the answer goes live, and a later break asks (L11)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.text("a"), S.text("b"), S.text("c"), S.reset]);
      const options = S.options(provider, { reveal: "on_complete", sizeOf: () => heldBytesMax / 2 });
      const seen = yield* S.played((yield* StreamProcessor).run(options));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "a",
        "b",
        "c",
        "ask text_shown",
        "answer stop",
        "end stopped text_shown",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("parts, for callers that cannot discard", () => {
  it.effect("holds the lifecycle prefix back, so that no caller sees two starts", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], S.hello);
      const names = yield* partsOf((yield* StreamProcessor).parts(S.options(provider)));
      assert.deepStrictEqual(names, ["start", "hello", "done", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a clean end of a healthy stream keeps every part and its order", () =>
    Effect.gen(function* () {
      const steps = [
        S.start,
        S.ping,
        S.reasoning("hm"),
        S.text("a"),
        S.callStarts("bash"),
        S.callReady("bash"),
        S.done,
        S.ping,
      ];
      const names = yield* partsOf((yield* StreamProcessor).parts(S.options(S.scripted(steps), { tools: [bash] })));
      assert.deepStrictEqual(names, [
        "start",
        "ping",
        "(hm)",
        "a",
        "bash:input_started",
        "bash:ready",
        "done",
        "ping",
        "completed",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("reasoning that was handed over counts as text: nothing is shown twice", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reasoning("hm"), S.reset], S.hello);
      const names = yield* partsOf((yield* StreamProcessor).parts(S.options(provider)));
      assert.deepStrictEqual(names, ["start", "(hm)", "text_shown"]);
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a call that broke before its end is replayed unseen", () =>
    Effect.gen(function* () {
      const provider = S.scripted(
        [S.start, S.callStarts("bash"), S.reset],
        [S.start, S.callStarts("bash"), S.callReady("bash"), S.done],
      );
      const names = yield* partsOf((yield* StreamProcessor).parts(S.options(provider, { tools: [bash] })));
      assert.deepStrictEqual(names, ["start", "bash:input_started", "bash:ready", "done", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an unrecoverable break is a failure, never a clean end (L5)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("half")]);
      const names = yield* partsOf((yield* StreamProcessor).parts(S.options(provider)));
      assert.deepStrictEqual(names, ["start", "half", "text_shown"]);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("L6 one live attempt", () => {
  it.effect("a finalizer that hangs never delays a decision: its attempt is abandoned after the close grace", () =>
    Effect.gen(function* () {
      const stuck = { ...S.options(S.scripted([])), runId: "r" };
      let attempts = 0;
      const attempt = (): Stream.Stream<S.ScriptedPart, S.ProviderBroke> => {
        attempts += 1;
        if (attempts > 1) return S.scripted(S.hello).attempt({} as AttemptContext);
        return Stream.never.pipe(Stream.ensuring(Effect.never));
      };
      const seen = yield* S.played(
        (yield* StreamProcessor).run({ ...stuck, attempt, clocks: { first_progress: 1_000 } }),
      );
      assert.deepStrictEqual(seen.lines.slice(-4), ["start", "hello", "done", "completed"]);
      const record = yield* S.recordOf("r");
      const at = (event: string) => record.evidence.first.find((it) => it.event === event)?.at_ms;
      assert.strictEqual(at("decision"), 1_000);
      assert.strictEqual(at("abandoned"), 2_000);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an attempt's scope is closed before the next one starts", () =>
    Effect.gen(function* () {
      const order: Array<string> = [];
      let attempts = 0;
      const attempt = (context: AttemptContext): Stream.Stream<S.ScriptedPart, S.ProviderBroke> => {
        attempts += 1;
        const name = attempts;
        order.push(`open ${name}`);
        const closing = Effect.andThen(
          Effect.sleep(800),
          Effect.sync(() => order.push(`closed ${name}`)),
        );
        const steps = name === 1 ? [S.start, S.reset] : S.hello;
        return S.scripted(steps).attempt(context).pipe(Stream.ensuring(closing));
      };
      yield* S.played((yield* StreamProcessor).run(S.options({ attempt })));
      assert.deepStrictEqual(order, ["open 1", "closed 1", "open 2", "closed 2"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("what an abandoned attempt still says is refused", () =>
    Effect.gen(function* () {
      const late = yield* Deferred.make<void>();
      let attempts = 0;
      const attempt = (context: AttemptContext): Stream.Stream<S.ScriptedPart, S.ProviderBroke> => {
        attempts += 1;
        if (attempts > 1) return S.scripted([...S.hello.slice(0, 2), S.wait(5_000), S.done]).attempt(context);
        // Deaf to interruption: it says its word long after the next attempt has taken over.
        const said = Effect.uninterruptible(Effect.as(Deferred.await(late), S.text("late")));
        return Stream.fromEffect(said).pipe(Stream.flatMap((step) => S.scripted([step]).attempt(context)));
      };
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options({ attempt }, { clocks: { first_progress: 1_000 } })),
        (event) => (S.line(event) === "hello" ? Deferred.succeed(late, undefined) : Effect.void),
      );
      assert.deepStrictEqual(seen.lines.slice(-4), ["start", "hello", "done", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("delivery", () => {
  const deliveryOf = (steps: ReadonlyArray<S.Step>, reports: ReadonlyArray<Delivery> = []) =>
    Effect.gen(function* () {
      const attempt = (context: AttemptContext) => {
        for (const report of reports) context.delivery(report);
        return S.scripted(steps).attempt(context);
      };
      const budget = { max_auto_retries: 0, max_not_processed: 0 };
      yield* S.played((yield* StreamProcessor).run(S.options({ attempt }, { runId: "r", budget })));
      return (yield* S.recordOf("r")).incidents[0]?.facts.delivery;
    }).pipe(Effect.provide(S.processor()));

  it.effect("without a reporter an attempt is ambiguous from its first pull and accepted from its first part", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* deliveryOf([S.reset]), "ambiguous");
      assert.strictEqual(yield* deliveryOf([S.start, S.reset]), "accepted");
    }),
  );

  it.effect("only a reporter can prove not_sent, and what it says only grows", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* deliveryOf([S.reset], ["not_sent"]), "not_sent");
      assert.strictEqual(yield* deliveryOf([S.reset], ["not_sent", "ambiguous", "not_sent"]), "ambiguous");
      assert.strictEqual(yield* deliveryOf([S.reset], ["not_sent", "accepted"]), "accepted");
    }),
  );
});
