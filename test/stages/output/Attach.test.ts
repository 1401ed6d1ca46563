/**
 * A run that goes on without its consumer: who ends it, what a reader gets that comes back, and what it has been shown (L4, L10).
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Fiber, Stream } from "effect";
import * as HttpServerError from "effect/http/HttpServerError";
import { InterruptSignature } from "../../../src/runtime/contract/InterruptSignature.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Linger from "../../../src/stages/output/Linger.ts";
import * as S from "../../runtime/Scripted.ts";
import * as R from "./Readers.ts";

const lingerMs = 30_000;
const run = (provider: ReturnType<typeof S.scripted>, more: Parameters<typeof S.options>[1] = {}) =>
  Stream.unwrap(
    Effect.map(StreamProcessor, (it) =>
      it.run(S.options(provider, { runId: "r", linger: Linger.of(lingerMs), ...more })),
    ),
  );
const endOf = Effect.map(S.recordOf("r"), ({ end }) => (end === undefined ? undefined : `${end.state} ${end.reason}`));
const shown = Effect.map(S.recordOf("r"), ({ incidents }) => incidents.map((it) => it.facts.shown));

/** A response of ten words, one a second. */
const words = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
const slow = [S.start, ...words.flatMap((word) => [S.wait(1_000), S.text(word)]), S.done];

describe("a consumer that goes away", () => {
  it.effect("comes back, and has exactly what it would have had, from one request", () =>
    Effect.gen(function* () {
      const provider = S.scripted(slow);
      const first = yield* R.reads(run(provider));
      yield* R.passed(3_000);
      yield* first.leave;
      assert.deepStrictEqual(R.lines(first.events), ["attempt 1 first", "start", "a", "b", "c"]);
      yield* R.passed(3_000);
      assert.isUndefined(yield* endOf);
      const second = yield* R.reads(R.attached(R.after(first.events)));
      yield* R.settled;
      assert.deepStrictEqual(R.lines(second.events), ["d", "e", "f"]);
      yield* R.passed(10_000);
      assert.deepStrictEqual(R.lines(second.events), ["d", "e", "f", "g", "h", "i", "j", "done", "completed"]);
      assert.strictEqual(second.end(), "done");
      assert.strictEqual(provider.attempts.length, 1);
      assert.strictEqual(yield* endOf, "completed stop");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("gets the run from its first event where it does not say what it has", () =>
    Effect.gen(function* () {
      const first = yield* R.reads(run(S.scripted(slow)));
      yield* R.passed(3_000);
      yield* first.leave;
      const second = yield* R.reads(R.attached());
      yield* R.passed(20_000);
      assert.deepStrictEqual(R.lines(second.events), ["attempt 1 first", "start", ...words, "done", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is told of a call that was delivered before, so that it is not run as a new one", () =>
    Effect.gen(function* () {
      const tools = [{ name: "pay", executor: "runtime", effect: "mutating" }] as const;
      const script = [S.start, S.callReady("pay"), S.wait(5_000), S.callReady("pay", 1), S.done];
      const first = yield* R.reads(run(S.scripted(script), { tools }));
      yield* R.passed(1_000);
      yield* first.leave;
      const second = yield* R.reads(R.attached());
      yield* R.passed(20_000);
      const calls = second.events.flatMap((event) =>
        event._tag === "Part" ? [...(event.calls ?? []), ...(event.delivered_calls ?? [])] : [],
      );
      assert.deepStrictEqual(
        calls.map((call) => [call.call, "delivered" in call]),
        [
          ["0.0", true],
          ["0.1", false],
        ],
      );
      const third = yield* R.reads(R.attached());
      yield* R.settled;
      assert.isTrue(third.events.every((event) => event._tag !== "Part" || event.calls === undefined));
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("may count its parts instead, as a caller of `parts` does", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const got: Array<string> = [];
      const parts = processor.parts(S.options(S.scripted(slow), { runId: "r", linger: Linger.of(lingerMs) }));
      const reading = yield* Effect.forkDetach(
        Stream.runForEach(parts, (part) => Effect.sync(() => got.push(part.name))),
        { startImmediately: true },
      );
      yield* R.passed(3_000);
      yield* Fiber.interrupt(reading);
      const second = yield* R.reads(processor.attach<S.ScriptedPart>("r", { after: { parts: got.length } }));
      yield* R.passed(20_000);
      const rest = second.events.flatMap((event) => (event._tag === "Part" ? [event.part.name] : []));
      assert.deepStrictEqual([...got, ...rest], ["start", ...words, "done"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("and stays away for as long as it may cancels the run in its user's name (L10)", () =>
    Effect.gen(function* () {
      const first = yield* R.reads(run(S.scripted([S.start, S.text("a"), S.never])));
      yield* R.settled;
      yield* first.leave;
      yield* R.passed(lingerMs - 1);
      assert.isUndefined(yield* endOf);
      yield* R.passed(1);
      assert.strictEqual(yield* endOf, "stopped user_cancelled");
      const late = yield* R.reads(R.attached());
      assert.strictEqual(late.end(), "AttachRefused unknown");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("finds the end of a run that has ended for as long as it may be away, and not longer", () =>
    Effect.gen(function* () {
      const first = yield* R.reads(run(S.scripted(slow)));
      yield* R.passed(2_000);
      yield* first.leave;
      yield* R.passed(8_000 + lingerMs - 1);
      assert.strictEqual(yield* endOf, "completed stop");
      const second = yield* R.reads(R.attached(R.after(first.events)));
      yield* R.settled;
      assert.strictEqual(second.end(), "done");
      assert.deepStrictEqual(R.kept([...first.events, ...second.events]), ["start", ...words, "done"]);
      // The commonest loss is the last packet: it may come once more.
      const third = yield* R.reads(R.attached({ attempt: 1, ordinal: 11 }));
      yield* R.settled;
      assert.deepStrictEqual(R.lines(third.events), ["done", "completed"]);
      yield* R.passed(lingerMs);
      assert.strictEqual((yield* R.reads(R.attached())).end(), "AttachRefused unknown");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("without `lingerMs` ends its run, as ever", () =>
    Effect.gen(function* () {
      const first = yield* R.reads(run(S.scripted([S.start, S.text("a"), S.never]), { linger: Linger.of(0) }));
      yield* R.settled;
      assert.strictEqual((yield* R.reads(R.attached())).end(), "AttachRefused not_lingering");
      yield* first.leave;
      assert.strictEqual(yield* endOf, "stopped caller_interrupted");
      assert.strictEqual((yield* R.reads(R.attached())).end(), "AttachRefused unknown");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is refused a longer time than a day", () =>
    Effect.gen(function* () {
      for (const wrong of [-1, Number.NaN, 86_400_001, Number.POSITIVE_INFINITY]) {
        const seen = yield* R.reads(run(S.scripted(slow), { linger: Linger.of(wrong) }));
        assert.strictEqual(seen.end(), "RunInterrupted refused");
      }
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("what ends a run at once all the same", () => {
  const ended = (
    how: string,
    end: string,
    leave: (reading: R.Reading, stop: AbortController) => Effect.Effect<unknown, never, StreamProcessor>,
  ) =>
    it.effect(how, () =>
      Effect.gen(function* () {
        const stop = new AbortController();
        const provider = S.scripted([S.start, S.text("a"), S.wait(1_000), S.text("b"), S.never]);
        const reading = yield* R.reads(run(provider, { signal: stop.signal }));
        yield* R.settled;
        yield* leave(reading, stop);
        yield* R.settled;
        assert.strictEqual(yield* endOf, end);
        const late = (yield* R.reads(R.attached())).end();
        assert.include(["AttachRefused ended", "AttachRefused unknown", "AttachRefused closed"], late);
      }).pipe(Effect.provide(S.processor())),
    );

  const cancel = Effect.flatMap(StreamProcessor, (it) => it.cancel("r"));
  ended("cancel of its run while it is read", "stopped user_cancelled", () => cancel);
  ended("cancel of its run while its reader is away", "stopped user_cancelled", (reading) =>
    Effect.andThen(reading.leave, cancel),
  );
  ended("the caller's own signal, also once its reader is away", "stopped user_cancelled", (reading, stop) =>
    Effect.andThen(
      reading.leave,
      Effect.sync(() => stop.abort()),
    ),
  );
  ended("close while its reader is away", "stopped lifecycle_closed", (reading) =>
    Effect.andThen(
      reading.leave,
      Effect.flatMap(StreamProcessor, (it) => it.close("over")),
    ),
  );

  it.effect("a signed interrupt of its reader", () =>
    Effect.gen(function* () {
      const stream = run(S.scripted([S.start, S.text("a"), S.never]));
      const fiber = yield* Effect.forkDetach(Stream.runDrain(stream), { startImmediately: true });
      yield* R.settled;
      yield* Fiber.interruptAs(fiber, 1, Context.make(InterruptSignature, "user"));
      assert.strictEqual(yield* endOf, "stopped user_cancelled");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a reader that has taken all that it wanted: that is an end, and no departure", () =>
    Effect.gen(function* () {
      yield* Stream.runDrain(Stream.take(run(S.scripted([S.start, S.text("a"), S.never])), 2));
      assert.strictEqual(yield* endOf, "stopped consumer_finished");
      assert.strictEqual((yield* R.reads(R.attached())).end(), "AttachRefused ended");
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("a processor that is closed", () => {
  it.effect("refuses every attachment, also to an ended run", () =>
    Effect.gen(function* () {
      yield* R.reads(run(S.scripted(S.hello)));
      yield* R.settled;
      yield* (yield* StreamProcessor).close("over");
      assert.strictEqual((yield* R.reads(R.attached())).end(), "AttachRefused closed");
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("what is unsigned with linger", () => {
  it.effect("a client that left Effect's HTTP server departs: only the end of its time cancels its run (L10)", () =>
    Effect.gen(function* () {
      const stream = run(S.scripted([S.start, S.text("a"), S.wait(1_000), S.text("b"), S.done]));
      const fiber = yield* Effect.forkDetach(Effect.timeoutOption(Stream.runDrain(stream), "1 hour"), {
        startImmediately: true,
      });
      yield* R.settled;
      yield* Fiber.interruptAs(fiber, 1, Context.make(HttpServerError.ClientAbort, true));
      yield* R.passed(2_000);
      assert.strictEqual(yield* endOf, "completed stop");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a consumer that fails in its own code departs too", () =>
    Effect.gen(function* () {
      const stream = run(S.scripted([S.start, S.text("a"), S.wait(1_000), S.text("b"), S.done]));
      yield* Effect.exit(
        Stream.runForEach(stream, (event) => (event._tag === "Part" ? Effect.fail("socket") : Effect.void)),
      );
      const second = yield* R.reads(R.attached());
      yield* R.passed(2_000);
      assert.deepStrictEqual(R.kept(second.events), ["start", "a", "b", "done"]);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("while nobody reads", () => {
  it.effect("a break is decided on what was really handed over: behind nothing it is replayed, at once (L4)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.wait(1_000), S.text("half"), S.wait(1_000), S.reset], S.hello);
      const first = yield* R.reads(run(provider, { discardable: false }));
      yield* R.settled;
      yield* first.leave;
      yield* R.passed(10_000);
      assert.deepStrictEqual(yield* shown, ["nothing"]);
      const second = yield* R.reads(R.attached(R.after(first.events)));
      yield* R.settled;
      assert.deepStrictEqual(R.kept([...first.events, ...second.events]), ["start", "hello", "done"]);
      assert.strictEqual(provider.attempts.length, 2);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a break behind text that was shown before is asked about, as ever, and its words are held", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("a"), S.wait(1_000), S.text("b"), S.wait(1_000), S.reset]);
      const first = yield* R.reads(run(provider, { discardable: false }));
      yield* R.settled;
      yield* first.leave;
      yield* R.passed(10_000);
      assert.deepStrictEqual(yield* shown, ["text"]);
      const second = yield* R.reads(R.attached(R.after(first.events)));
      yield* R.settled;
      assert.deepStrictEqual(R.lines(second.events), ["ask text_shown", "answer accept", "b"]);
      assert.strictEqual(second.end(), "RunInterrupted accepted_partial");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor(["accept"]))),
  );

  it.effect("a call that came is handed over, and on record, only when a reader takes it (L4, L8)", () =>
    Effect.gen(function* () {
      const bash = { name: "bash", executor: "runtime", effect: "mutating" } as const;
      const provider = S.scripted([S.start, S.text("a"), S.wait(1_000), S.callReady("bash"), S.wait(9_000), S.done]);
      const first = yield* R.reads(run(provider, { tools: [bash] }));
      yield* R.settled;
      yield* first.leave;
      yield* R.passed(5_000);
      const phases = Effect.map(S.recordOf("r"), ({ attempts }) =>
        attempts.flatMap((it) => it.facts?.tools.map((row) => row.phase) ?? []),
      );
      assert.deepStrictEqual(yield* phases, []);
      const second = yield* R.reads(R.attached(R.after(first.events)));
      yield* R.settled;
      assert.deepStrictEqual(R.lines(second.events), ["bash:ready"]);
      assert.deepStrictEqual(yield* phases, ["handed_over"]);
      yield* second.leave;
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a slow reader's attempt reads on, its clocks too: what hangs while nobody reads is found", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("a"), S.text("b"), S.text("c"), S.never], S.hello);
      const stuck = Stream.runForEach(run(provider, { clocks: { idle: 5_000 } }), (event) =>
        event._tag === "Part" ? Effect.never : Effect.void,
      );
      const fiber = yield* Effect.forkDetach(stuck, { startImmediately: true });
      yield* R.passed(20_000);
      assert.strictEqual(provider.attempts.length, 1);
      yield* Fiber.interrupt(fiber);
      yield* R.passed(10_000);
      assert.strictEqual(provider.attempts.length, 2);
      const second = yield* R.reads(R.attached());
      yield* R.settled;
      assert.deepStrictEqual(R.kept(second.events), ["start", "hello", "done"]);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("one reader at a time", () => {
  it.effect("a reader that attaches takes the place of the one before, which ends with a reason of its own", () =>
    Effect.gen(function* () {
      const provider = S.scripted(slow);
      const first = yield* R.reads(run(provider));
      yield* R.passed(2_000);
      const second = yield* R.reads(R.attached(R.after(first.events)));
      yield* R.settled;
      assert.strictEqual(first.end(), "RunInterrupted attached_elsewhere");
      const third = yield* R.reads(R.attached());
      yield* R.passed(20_000);
      assert.strictEqual(second.end(), "RunInterrupted attached_elsewhere");
      assert.deepStrictEqual(R.kept(third.events), ["start", ...words, "done"]);
      assert.strictEqual(third.end(), "done");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("who asks for what the run has not said is refused, and changes nothing", () =>
    Effect.gen(function* () {
      const first = yield* R.reads(run(S.scripted(slow)));
      yield* R.passed(2_000);
      for (const ahead of [
        { attempt: 1, ordinal: 4 },
        { attempt: 2, ordinal: 0 },
        { parts: 4 },
        { attempt: 1, ordinal: -1 },
      ])
        assert.strictEqual((yield* R.reads(R.attached(ahead))).end(), "AttachRefused ahead");
      yield* R.passed(20_000);
      assert.deepStrictEqual(R.kept(first.events), ["start", ...words, "done"]);
      assert.strictEqual(first.end(), "done");
    }).pipe(Effect.provide(S.processor())),
  );
});
