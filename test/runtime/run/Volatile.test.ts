/**
 * Volatile runs (`record: "behind"`, L8): nothing waits for the store, unless a guarded tool or a question needs it, and the final record
 * equals that of a durable run.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Layer, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { Entry, RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { storeWaitMs } from "../../../src/runtime/run/RunWriter.ts";
import { readsMsMax } from "../../../src/runtime/run/StoreReads.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as E from "../../recorder/Entries.ts";
import * as S from "../Scripted.ts";
import { type Fault, faults, faulty } from "./FaultyStore.ts";
import { away, bench, between, failing, has } from "./StoreBench.ts";

const behind: S.More = { record: "behind" };

/** A store that never answers. */
const hangs: Fault = () => Effect.never;

const scripts: Readonly<Record<string, ReadonlyArray<S.Step>>> = {
  text: [S.start, S.text("a"), S.wait(1_000), S.text("c"), S.done],
  "a call that no guard holds": [S.start, S.text("a"), S.wait(1_000), S.callReady("bash"), S.wait(1_000), S.done],
  "the last call of a whole response": [S.start, S.text("a"), S.together(S.callReady("bash"), S.done)],
  "a break before anything was shown": [S.start, S.wait(1_000), S.reset],
};

/** Fields that differ between a volatile run and a durable one, or between two plays of one. */
const ofPlay = new Set([
  "evidence",
  "started_by",
  "transcript",
  "volatile",
  "at",
  "started_at",
  "at_ms",
  "elapsed_ms",
  "delay_ms",
  "jitter",
  "started_ms",
]);

const plain = (record: RunRecord | undefined) =>
  JSON.parse(JSON.stringify(record ?? null, (key, value) => (ofPlay.has(key) ? undefined : value)));

describe("A volatile run", () => {
  for (const [what, script] of Object.entries(scripts)) {
    it.effect(`shows ${what} as over a store that accepts everything, whatever the store does (L8)`, () =>
      Effect.gen(function* () {
        const played = (fault: Fault | undefined, more: S.More) =>
          Effect.gen(function* () {
            const it = yield* bench({ script, guarded: false, more, fault: () => fault });
            yield* TestClock.adjust("4 seconds");
            return it.lines;
          }).pipe(Effect.scoped);
        const durable = yield* played(undefined, {});
        assert.strictEqual(durable.at(-1), "completed");
        for (const [name, fault] of Object.entries(faults))
          assert.deepStrictEqual(yield* played(fault, behind), durable, `each write ${name}`);
      }),
    );

    it.effect(`is recorded with ${what} like a durable run, once the store is back`, () =>
      Effect.gen(function* () {
        const record = (fault: Parameters<typeof bench>[0]["fault"], more: S.More) =>
          Effect.gen(function* () {
            const it = yield* bench({ script, guarded: false, more, fault });
            yield* TestClock.adjust("5 minutes");
            return plain(yield* it.record);
          }).pipe(Effect.scoped);
        const durable = yield* record(() => undefined, {});
        assert.deepStrictEqual(yield* record(() => undefined, behind), durable);
        const awayFor = between(0, 60_000);
        assert.deepStrictEqual(
          yield* record((write, now) => (Number.isNaN(now) ? undefined : awayFor(write, now)), behind),
          durable,
        );
      }),
    );
  }

  it.effect("continues if another process considers its own dead, and is neither lost nor stopped (L8)", () =>
    Effect.gen(function* () {
      const script = scripts["a call that no guard holds"] ?? [];
      const fault = (_write: number, _now: number, entries: ReadonlyArray<Entry>) =>
        has(entries, "RunStarted") ? undefined : failing("fenced");
      const it = yield* bench({ script, guarded: false, more: behind, fault });
      yield* TestClock.adjust(500);
      it.store.loses("r");
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual(it.lines, ["attempt 1 first", "start", "a", "bash:ready", "done", "completed"]);
    }).pipe(Effect.scoped),
  );

  it.effect("starts a guarded tool only once its dispatch is on record, and not after the limit (L8)", () =>
    Effect.gen(function* () {
      const script = [S.start, S.text("a"), S.wait(1_000), S.callReady("bash"), S.wait(60_000), S.done];
      const back = yield* bench({ script, more: behind, fault: between(500, 3_000) });
      yield* TestClock.adjust(2_900);
      assert.deepStrictEqual(back.ran, []);
      assert.include(back.lines, "bash:ready", "the call itself waits for nothing");
      yield* TestClock.adjust(3_000);
      assert.deepStrictEqual(back.ran, ["bash"]);
      assert.isTrue(
        back.store.taken.some((it) => it._tag === "FactsRaised" && it.facts.tools[0]?.phase === "dispatched"),
      );
      const gone = yield* bench({ script, more: behind, fault: between(500, 500 + 3 * storeWaitMs) });
      yield* TestClock.adjust(2 * storeWaitMs);
      assert.deepStrictEqual(gone.ran, ["refused"]);
    }).pipe(Effect.scoped),
  );

  it.effect("returns the outcome of a guarded tool only once it is on record (L8)", () =>
    Effect.gen(function* () {
      const script = [S.start, S.callReady("bash"), S.wait(30_000), S.done];
      const settled = (entries: ReadonlyArray<Entry>) =>
        entries.some((it) => it._tag === "FactsRaised" && it.facts.tools.some(({ phase }) => phase === "settled"));
      const told: Array<boolean> = [];
      const it = yield* bench({
        script,
        more: behind,
        busyMs: (line) => (line === "bash" ? 500 : 0),
        fault: (_write, _now, entries) => {
          if (settled(entries)) told.push(true);
          return undefined;
        },
      });
      yield* TestClock.adjust("2 seconds");
      assert.deepStrictEqual([it.ran, told.length > 0], [["bash"], true]);
      assert.isTrue(settled(it.store.taken));
    }).pipe(Effect.scoped),
  );
});

describe("A question of a volatile run", () => {
  const script = [S.start, S.text("a"), S.wait(1_000), S.reset];

  const asked = (fault: Parameters<typeof faulty>[1]) =>
    Effect.gen(function* () {
      const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
      const store = faulty(memory, fault);
      const known: Array<ReadonlyArray<string>> = [];
      const ask = () =>
        Effect.sync(() => {
          known.push(store.taken.map(({ _tag }) => _tag));
          return "retry" as const;
        });
      const services = yield* S.servicesOver(store.recorder, Layer.succeed(UserDecisions, { ask }));
      const lines: Array<string> = [];
      const provider = S.scripted(script, [S.start, S.text("b"), S.done]);
      const answeredAt: Array<boolean> = [];
      const attempt: typeof provider.attempt = (context) => {
        answeredAt.push(has(store.taken, "QuestionAnswered"));
        return provider.attempt(context);
      };
      const options = S.options({ attempt }, { runId: "r", ...behind });
      const consumed = Stream.runForEach(Context.get(services, StreamProcessor).run(options), (event) =>
        Effect.sync(() => void lines.push(S.line(event))),
      );
      yield* Effect.forkScoped(
        Effect.map(Effect.exit(consumed), (exit) => {
          if (Exit.isFailure(exit)) lines.push(`end ${S.errorOf(exit)?.rule}`);
        }),
        { startImmediately: true },
      );
      yield* TestClock.adjust("1 minute");
      return { lines, known, store, record: yield* memory.run("r"), attempts: provider.attempts.length, answeredAt };
    }).pipe(Effect.scoped);

  it.effect(
    "is on record with everything before it when it is asked, and its answer before it is carried out (L8)",
    () =>
      Effect.gen(function* () {
        const it = yield* asked(() => undefined);
        assert.lengthOf(it.known, 1);
        for (const tag of ["RunStarted", "AttemptStarted", "FactsRaised", "IncidentOpened", "QuestionAsked"])
          assert.include(it.known[0] ?? [], tag);
        assert.strictEqual(it.attempts, 2);
        assert.deepStrictEqual(it.answeredAt, [false, true], "the answer is on record before the retry is sent");
        assert.deepInclude(it.record?.questions[0], { answer: "retry" });
        const tags = it.store.taken.map(({ _tag }) => _tag);
        assert.isBelow(tags.indexOf("QuestionAnswered"), tags.lastIndexOf("AttemptStarted"));
      }),
  );

  it.effect(
    "is not asked if the store does not accept it in time: its default applies, and is recorded later (L8)",
    () =>
      Effect.gen(function* () {
        const it = yield* asked((_write, now) => (now >= 500 && now < 30_000 ? away : undefined));
        assert.deepStrictEqual(it.known, []);
        assert.strictEqual(it.attempts, 1);
        assert.match(it.lines.at(-1) ?? "", /^end /);
        assert.deepInclude(it.record?.questions[0], { answer: "stop", answered_by: "expiry" });
        assert.strictEqual(it.record?.end?.state, "stopped");
      }),
  );
});

describe("A volatile run's read of its store", () => {
  const started = (runId: string, run: RunRecorder["Service"]["run"], more: S.More = behind) =>
    Effect.gen(function* () {
      const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
      const { recorder } = faulty(memory, () => undefined);
      const services = yield* S.servicesOver({ ...recorder, run });
      const lines: Array<string> = [];
      const provider = S.scripted([S.start, S.text("a"), S.done]);
      const options = S.options(provider, { runId, ...more });
      yield* Effect.forkScoped(
        Effect.map(
          Effect.exit(
            Stream.runForEach(Context.get(services, StreamProcessor).run(options), (event) =>
              Effect.sync(() => void lines.push(S.line(event))),
            ),
          ),
          (exit) => void lines.push(S.errorOf(exit)?.reason ?? "well"),
        ),
        { startImmediately: true },
      );
      // A run that waits forever for its read must not block the end of a failed test.
      yield* Effect.addFinalizer(() => TestClock.adjust("1 minute"));
      return { lines, provider };
    });

  it.effect("finds a caller's id that is on record, which is refused before anything is sent", () =>
    Effect.gen(function* () {
      const it = yield* started("r", () => Effect.succeed(E.folded([E.begun("r")])));
      yield* TestClock.adjust(1);
      assert.deepStrictEqual([it.lines, it.provider.attempts.length], [["refused"], 0]);
    }).pipe(Effect.scoped),
  );

  it.effect("refuses an id whose run has ended here and is not on record yet, for a volatile and a durable run", () =>
    Effect.gen(function* () {
      const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
      const { recorder } = faulty(memory, () => undefined);
      const services = yield* S.servicesOver(recorder);
      const played = (more: S.More) =>
        Effect.gen(function* () {
          const provider = S.scripted([S.start, S.text("a"), S.done]);
          const run = Context.get(services, StreamProcessor).run(S.options(provider, { runId: "r", ...more }));
          const exit = yield* Effect.exit(Stream.runDrain(run));
          return [S.errorOf(exit)?.reason ?? "well", provider.attempts.length];
        });
      assert.deepStrictEqual(yield* played(behind), ["well", 1]);
      assert.isUndefined(yield* memory.run("r"));
      assert.deepStrictEqual(yield* played(behind), ["refused", 0]);
      assert.deepStrictEqual(yield* played({}), ["refused", 0]);
      yield* TestClock.adjust("1 second");
      assert.strictEqual((yield* memory.run("r"))?.end?.state, "completed");
    }).pipe(Effect.scoped),
  );

  it.effect("is waited for a quarter of a second at most, and is skipped for an id that was drawn just now", () =>
    Effect.gen(function* () {
      const it = yield* started("r", () => Effect.never);
      yield* TestClock.adjust(readsMsMax - 1);
      assert.lengthOf(it.provider.attempts, 0);
      yield* TestClock.adjust(1);
      assert.deepStrictEqual(it.lines.at(-1), "well");
      const drawn = yield* started("r", () => Effect.die("read"), { ...behind, isNewId: true });
      yield* TestClock.adjust(1);
      assert.deepStrictEqual(drawn.lines.at(-1), "well");
    }).pipe(Effect.scoped),
  );

  it.effect("is not waited for at all once the store counts as away", () =>
    Effect.gen(function* () {
      const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
      const { recorder } = faulty(memory, () => hangs);
      const services = yield* S.servicesOver({ ...recorder, run: () => Effect.never });
      const sent = (runId: string, ms: number) =>
        Effect.gen(function* () {
          const provider = S.scripted([S.start, S.text("a"), S.done]);
          const run = Context.get(services, StreamProcessor).run(S.options(provider, { runId, ...behind }));
          yield* Effect.forkScoped(Stream.runDrain(run), { startImmediately: true });
          yield* TestClock.adjust(ms);
          return provider.attempts.length;
        });
      yield* Effect.addFinalizer(() => TestClock.adjust("1 minute"));
      assert.strictEqual(yield* sent("first", readsMsMax), 1);
      yield* TestClock.adjust("20 seconds");
      assert.strictEqual(yield* sent("second", 0), 1);
    }).pipe(Effect.scoped),
  );
});
