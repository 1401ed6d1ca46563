/**
 * A run that another process has taken over while its response flows to a caller to whom nobody else can show it: its text goes on to its
 * end. Nothing else of the run does: no call, no attempt, no question and no completion (L6, L7, L8).
 */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Deferred, Effect } from "effect";
import { TestClock } from "effect/testing";
import * as Observation from "../../../src/domain/Observation.ts";
import { isFlowedOn, type RunRecord } from "../../../src/recorder/RunRecord.ts";
import { Presence } from "../../../src/runtime/contract/Presence.ts";
import * as S from "../Scripted.ts";
import type { Fault } from "./FaultyStore.ts";
import { away, bench, between, failing, has } from "./StoreBench.ts";

type More = S.More;

const relayed: More = { discardable: false, flowsOn: () => true };

interface Played {
  readonly script: ReadonlyArray<S.Step>;
  readonly more?: More;
  /** When the run is taken over, in virtual milliseconds. */
  readonly lostAt?: number;
  readonly busyMs?: (line: string) => number;
  readonly before?: Parameters<typeof bench>[0]["fault"];
}

/** Plays a run that is taken over, as its process hears at once; every write from then on is refused. */
const played = ({ before = () => undefined, busyMs, lostAt = 500, more = {}, script }: Played) =>
  Effect.gen(function* () {
    const begun = yield* Clock.currentTimeMillis;
    let isLost = false;
    const it = yield* bench({
      script,
      guarded: false,
      more: { ...relayed, ...more },
      fault: (write, now, entries) => (isLost ? failing("fenced") : before(write, now - begun, entries)),
      ...(busyMs === undefined ? {} : { busyMs }),
    });
    yield* TestClock.adjust(lostAt);
    isLost = true;
    it.store.loses("r");
    yield* TestClock.adjust("2 minutes");
    return it;
  }).pipe(Effect.scoped);

/** What its caller saw, with the rule of its end. */
const told = ({ lines, rules }: { readonly lines: ReadonlyArray<string>; readonly rules: ReadonlyArray<string> }) =>
  rules.length === 0 ? lines : [...lines.slice(0, -1), `${lines.at(-1)} ${rules.join()}`];

const started = ["attempt 1 first", "start", "a"];
const whole = "end taken_over already_complete";
const stopped = "end taken_over lifecycle_closed";

describe("A response that flows when its run is taken over", () => {
  it.effect("goes on to its end, which is no completion: the record has the other process's", () =>
    Effect.gen(function* () {
      const it = yield* played({ script: [S.start, S.text("a"), S.wait(1_000), S.text("c"), S.wait(1_000), S.done] });
      assert.deepStrictEqual(told(it), [...started, "c", "done", whole]);
      assert.isFalse(has(it.store.taken, "RunEnded"));
      assert.lengthOf(it.attempts, 1);
    }),
  );

  it.effect("goes on where its text begins behind its reasoning, which no write can say any more", () =>
    Effect.gen(function* () {
      const script = [S.start, S.reasoning("a"), S.wait(1_000), S.text("c"), S.done];
      const it = yield* played({ script, more: { discardable: true } });
      assert.deepStrictEqual(told(it), ["attempt 1 first", "start", "(a)", "c", "done", whole]);
    }),
  );

  it.effect("is whole where only its end finds the loss", () =>
    Effect.gen(function* () {
      const fault = (_write: number, _now: number, entries: Parameters<typeof has>[0]) =>
        has(entries, "RunEnded") ? failing("fenced") : undefined;
      const it = yield* bench({ script: [S.start, S.text("a"), S.done], guarded: false, more: relayed, fault });
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual(told(it), [...started, "done", whole]);
    }).pipe(Effect.scoped),
  );

  it.effect("is whole behind its marker, however the connection breaks there", () =>
    Effect.gen(function* () {
      const it = yield* played({ script: [S.start, S.text("a"), S.done, S.wait(1_000), S.reset] });
      assert.deepStrictEqual(told(it), [...started, "done", whole]);
    }),
  );

  it.effect("keeps what a slow caller has not taken, and takes its completion back", () =>
    Effect.gen(function* () {
      const script = [S.start, S.text("a"), S.wait(10), S.text("c"), S.wait(10), S.done];
      const busyMs = (line: string) => (line === "a" ? 10_000 : 0);
      // The end came while the store was away, and the run was taken over before it was back.
      const before = (_write: number, _now: number, entries: Parameters<typeof has>[0]) =>
        has(entries, "RunEnded") ? away : undefined;
      for (const lostAt of [15, 500, 9_000]) {
        const it = yield* played({ script, busyMs, before, lostAt });
        assert.deepStrictEqual(told(it), [...started, "c", "done", whole], `at ${lostAt}`);
      }
    }),
  );

  it.effect("says what became of it on the record, once the other process has ended the run", () =>
    Effect.gen(function* () {
      const fault = (_write: number, now: number, entries: Parameters<typeof has>[0]) =>
        now >= 500 && !has(entries, "EvidenceNoted") ? failing("fenced") : undefined;
      const script = [S.start, S.text("a"), S.wait(1_000), S.done];
      const it = yield* bench({ script, guarded: false, more: relayed, fault });
      yield* TestClock.adjust(600);
      it.store.loses("r");
      yield* TestClock.adjust(1_000);
      assert.strictEqual(told(it).at(-1), whole);
      const noted = ((yield* it.record)?.evidence.first ?? []).flatMap(({ detail, event }) =>
        detail ? `${event} ${detail}` : [],
      );
      assert.include(noted, "end flowed_on");
    }).pipe(Effect.scoped),
  );
});

describe("A response whose end was told before its run was known to be lost", () => {
  const noted = (record: RunRecord | undefined) =>
    [...(record?.evidence.first ?? []), ...(record?.evidence.last ?? [])].some(isFlowedOn);

  it.effect(
    "is noted where the store was away for its end, and another process had the run by the time it was back",
    () =>
      Effect.gen(function* () {
        let isBack = false;
        const fault = (_write: number, now: number, entries: Parameters<typeof has>[0]) => {
          // The note is the only write of one step alone.
          if (now < 50 || (has(entries, "EvidenceNoted") && entries.length === 1)) return undefined;
          return isBack ? failing("fenced") : has(entries, "RunEnded") ? away : undefined;
        };
        const script = [S.start, S.text("a"), S.wait(100), S.text("c"), S.done];
        const it = yield* bench({ script, guarded: false, more: relayed, fault });
        yield* TestClock.adjust(150);
        assert.deepStrictEqual(told(it), [...started, "c", "done", "completed"]);
        assert.isFalse(noted(yield* it.record));
        isBack = true;
        it.store.loses("r");
        yield* TestClock.adjust("2 minutes");
        assert.isTrue(noted(yield* it.record));
      }).pipe(Effect.scoped),
  );

  it.effect("is not noted where its own end is on record", () =>
    Effect.gen(function* () {
      const fault = (_write: number, _now: number, entries: Parameters<typeof has>[0]): Fault | undefined =>
        has(entries, "RunEnded") ? (made) => Effect.tap(made, () => Effect.delay(Effect.void, 100)) : undefined;
      const it = yield* bench({ script: [S.start, S.text("a"), S.done], guarded: false, more: relayed, fault });
      yield* TestClock.adjust(50);
      it.store.loses("r");
      yield* TestClock.adjust("1 minute");
      const record = yield* it.record;
      assert.deepStrictEqual([record?.end?.state, noted(record)], ["completed", false]);
    }).pipe(Effect.scoped),
  );
});

describe("A run that is taken over while its response flows", () => {
  const text = [S.start, S.text("a"), S.wait(1_000)];

  it.effect("hands no call over: it stops there, with what is shown (L6)", () =>
    Effect.gen(function* () {
      const calls = [S.callStarts("bash"), S.callComplete("bash"), S.callReady("bash")];
      const behind = yield* played({ script: [...text, S.text("c"), ...calls, S.done] });
      assert.deepStrictEqual(told(behind), [...started, "c", stopped]);
      // A caller that can discard would be handed a call as it comes.
      for (const discardable of [true, false]) {
        for (const call of calls) {
          const it = yield* played({ script: [...text, call, S.text("c"), S.done], more: { discardable } });
          assert.deepStrictEqual(told(it), [...started, stopped], `discardable ${discardable}`);
        }
      }
    }),
  );

  it.effect("hands a call over neither where its write was under way, nor where its parts wait for a slow caller", () =>
    Effect.gen(function* () {
      const script = [S.start, S.text("a"), S.wait(10), S.callReady("bash"), S.done, S.wait(1_000), S.text("c")];
      const slow = yield* played({ script, busyMs: (line) => (line === "a" ? 5_000 : 0) });
      assert.deepStrictEqual(told(slow), [...started, stopped]);
      // The write of the call waits for a store that is away, and the run is lost meanwhile.
      const held = yield* played({ script, before: between(5, 500) });
      assert.deepStrictEqual(told(held), [...started, stopped]);
    }),
  );

  it.effect("hands no call over that was put on record for a reader who has to drain first", () =>
    Effect.gen(function* () {
      const presence = new Presence(() => 0);
      const [freed, held] = [Deferred.makeUnsafe<void>(), { isFree: true }];
      const room = { isFree: () => held.isFree, freed: Deferred.await(freed) };
      const it = yield* bench({
        script: [S.start, S.text("a"), S.wait(10), S.callReady("bash"), S.done, S.wait(5_000)],
        guarded: false,
        more: { ...relayed, taps: { presence, room } },
        fault: (_write, _now, entries) =>
          has(entries, "CallHandedOver") ? (made) => Effect.delay(made, 100) : undefined,
      });
      yield* TestClock.adjust(50);
      presence.leaves();
      yield* TestClock.adjust(200);
      held.isFree = false;
      presence.returns();
      yield* TestClock.adjust(50);
      it.store.loses("r");
      held.isFree = true;
      yield* Deferred.succeed(freed, undefined);
      yield* TestClock.adjust("1 minute");
      assert.isTrue(has(it.store.taken, "CallHandedOver"));
      assert.deepStrictEqual(told(it), [...started, stopped]);
    }).pipe(Effect.scoped),
  );

  it.effect("goes on with a read-only call as little as with any other", () =>
    Effect.gen(function* () {
      const tools = [{ name: "look", executor: "runtime", effect: "read_only" } as const];
      const it = yield* played({ script: [...text, S.callReady("look"), S.done], more: { tools } });
      assert.deepStrictEqual(told(it), [...started, stopped]);
    }),
  );

  it.effect("stops at a call that runs at its provider: one of a kind that is not known may be its caller's", () =>
    Effect.gen(function* () {
      const it = yield* played({ script: [...text, S.providerCall("search"), S.text("c"), S.done] });
      assert.deepStrictEqual(told(it), [...started, stopped]);
      const before = [S.start, S.text("a"), S.providerCall("search"), S.wait(1_000), S.text("c"), S.done];
      const seen = yield* played({ script: before });
      assert.deepStrictEqual(told(seen), [...started, stopped]);
    }),
  );

  it.effect("asks for nothing again and puts no question, however its response breaks (L7)", () =>
    Effect.gen(function* () {
      const breaks = [
        S.reset,
        S.errorEvent({ kind: "overloaded" }),
        S.fail({ kind: "rejected", reason: "auth", status: 401 }),
      ];
      for (const broken of breaks) {
        for (const continueText of ["ask", "auto"] as const) {
          const more: More = { continueText, canContinue: true, asks: "always" };
          const it = yield* played({ script: [...text, broken], more });
          assert.deepStrictEqual(told(it).at(-1), stopped);
          assert.lengthOf(it.attempts, 1);
          assert.isFalse(has(it.store.taken, "QuestionAsked"));
        }
      }
    }),
  );

  it.effect("stops at once where its caller has nothing of it yet", () =>
    Effect.gen(function* () {
      const held = { script: [...text, S.done], more: { reveal: "on_complete" } as const };
      for (const given of [{ script: [S.start, S.wait(1_000), S.text("a"), S.done] }, held]) {
        const it = yield* played(given);
        assert.deepStrictEqual(told(it), ["attempt 1 first", stopped]);
      }
    }),
  );

  it.effect("stops where its reader goes away, or has gone", () =>
    Effect.gen(function* () {
      for (const leavesAt of [200, 700]) {
        const presence = new Presence(() => 0);
        const leave = S.wait(leavesAt);
        const script = [
          S.start,
          S.text("a"),
          leave,
          { run: Effect.sync(() => presence.leaves()) },
          S.wait(1_000),
          S.done,
        ];
        const it = yield* played({ script, more: { taps: { presence } } });
        assert.deepStrictEqual(told(it), [...started, stopped], `at ${leavesAt}`);
      }
    }),
  );

  it.effect("stops where its user stops it", () =>
    Effect.gen(function* () {
      const signal = new AbortController();
      const abort = { run: Effect.sync(() => signal.abort()) };
      const it = yield* played({ script: [...text, abort, S.wait(1_000), S.done], more: { signal: signal.signal } });
      assert.deepStrictEqual(told(it), [...started, "end taken_over user_cancelled"]);
    }),
  );

  it.effect("stops where its id is another run's, or its caller may be shown it elsewhere", () =>
    Effect.gen(function* () {
      const script = [...text, S.text("c"), S.done];
      const elsewhere = yield* played({ script, more: { flowsOn: () => false } });
      assert.deepStrictEqual(told(elsewhere), [...started, stopped]);
      // Its text has to be put on record behind its reasoning, and the store knows the id as another run's.
      const reasoning = [S.start, S.reasoning("a"), S.wait(1_000), S.text("c"), S.done];
      const fault = (_write: number, _now: number, entries: Parameters<typeof has>[0]) =>
        entries.some((it) => it._tag === "FactsRaised" && it.facts.shown === "text")
          ? failing("run_exists")
          : undefined;
      const more = { ...relayed, discardable: true };
      const refused = yield* bench({ script: reasoning, guarded: false, more, fault });
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual(told(refused), ["attempt 1 first", "start", "(a)", "end refused lifecycle_closed"]);
    }).pipe(Effect.scoped),
  );

  it.effect("stops where a finish of its own says that it failed", () =>
    Effect.gen(function* () {
      const filtered = S.part("filtered", Observation.terminal("content_filter"));
      const more: More = { finishFailures: ["refused"] };
      const it = yield* played({ script: [...text, filtered], more });
      assert.strictEqual(told(it).at(-1), stopped);
      assert.lengthOf(it.attempts, 1);
    }),
  );
});
