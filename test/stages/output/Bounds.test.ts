/** What is kept and held for a reader that comes back has limits, and is given back (L11); what was thrown away was never shown (L4). */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Stream } from "effect";
import { Handoff } from "../../../src/runtime/attempt/Handoff.ts";
import type { Stopper } from "../../../src/runtime/contract/InterruptSignature.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Linger from "../../../src/stages/output/Linger.ts";
import * as S from "../../runtime/Scripted.ts";
import * as R from "./Readers.ts";

const lingerMs = 30_000;
const MiB = 1024 * 1024;
const big = (count: number) => Array.from({ length: count }, (_, at) => S.text(String(at)));

/** Every text of the run weighs one MiB. */
const run = (runId: string, script: ReadonlyArray<S.Step>, ...more: ReadonlyArray<ReadonlyArray<S.Step>>) => {
  const provider = S.scripted(script, ...more);
  const sizeOf = (_: S.ScriptedPart, it: { readonly shows: string }) => (it.shows === "nothing" ? 1 : MiB);
  const options = S.options(provider, { runId, linger: Linger.of(lingerMs), sizeOf });
  return { provider, events: Stream.unwrap(Effect.map(StreamProcessor, (it) => it.run(options))) };
};
const attached = (runId: string) =>
  Stream.unwrap(Effect.map(StreamProcessor, (it) => it.attach<S.ScriptedPart>(runId)));
const refusal = (runId: string) =>
  Effect.gen(function* () {
    const reading = yield* R.reads(attached(runId));
    yield* R.settled;
    const end = reading.end();
    if (end === undefined) yield* reading.leave;
    return end;
  });
const endOf = (runId: string) => Effect.map(S.recordOf(runId), ({ end }) => `${end?.state} ${end?.reason}`);

describe("L11 bounded: a run whose events do not fit", () => {
  it.effect("is read to its end by the reader that is there, and refuses any other", () =>
    Effect.gen(function* () {
      const { events } = run("r", [S.start, ...big(9), S.wait(1_000), ...big(9), S.done]);
      const first = yield* R.reads(events);
      yield* R.settled;
      assert.strictEqual(yield* refusal("r"), "AttachRefused evicted");
      yield* R.passed(1_000);
      assert.strictEqual(R.kept(first.events).length, 20);
      assert.strictEqual(first.end(), "done");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("runs to its end without a reader, and discarded parts do not count as shown", () =>
    Effect.gen(function* () {
      const { events, provider } = run("r", [S.start, S.wait(1_000), ...big(9), S.wait(1_000), ...big(9), S.done]);
      const first = yield* R.reads(events);
      yield* R.settled;
      yield* first.leave;
      yield* R.passed(1_000);
      assert.strictEqual(yield* refusal("r"), "AttachRefused evicted");
      yield* R.passed(1_000);
      assert.strictEqual(yield* endOf("r"), "completed stop");
      const { attempts, evidence } = yield* S.recordOf("r");
      assert.strictEqual(attempts[0]?.facts?.shown ?? "nothing", "nothing");
      assert.include(
        [...evidence.first, ...evidence.last].map((it) => `${it.event} ${it.detail}`),
        "reader evicted",
      );
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is asked for again by nobody: a break ends it, although nothing was shown", () =>
    Effect.gen(function* () {
      const { events, provider } = run("r", [S.start, S.wait(1_000), ...big(9), S.wait(1_000), S.reset], S.hello);
      const first = yield* R.reads(events);
      yield* R.settled;
      yield* first.leave;
      yield* R.passed(5_000);
      assert.strictEqual(yield* endOf("r"), "stopped user_cancelled");
      assert.deepStrictEqual(
        (yield* S.recordOf("r")).incidents.map((it) => it.facts.shown),
        ["nothing"],
      );
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("has one limit for what has left and what is held together", () =>
    Effect.gen(function* () {
      const { events } = run("r", [S.start, ...big(5), S.wait(1_000), ...big(3), S.wait(1_000), ...big(1), S.never]);
      const first = yield* R.reads(events);
      yield* R.settled;
      yield* first.leave;
      yield* R.passed(1_000);
      yield* R.passed(1_000);
      assert.strictEqual(yield* refusal("r"), "AttachRefused evicted");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("does not throw away what its reader has still to take: a run comes back, and goes on behind it", () =>
    Effect.gen(function* () {
      const { events } = run("r", [S.start, ...big(4), S.wait(1_000), ...big(3), S.wait(1_000), ...big(5), S.done]);
      const first = yield* R.reads(events);
      yield* R.settled;
      yield* first.leave;
      yield* R.passed(1_000);
      const second = yield* R.reads(attached("r"));
      yield* R.passed(1_000);
      assert.strictEqual(R.kept(second.events).length, 14);
      assert.strictEqual(second.end(), "done");
      assert.strictEqual(yield* refusal("r"), "AttachRefused evicted");
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("a process with many such runs", () => {
  it.effect("holds at most 256 MiB for all runs together, and releases them", () =>
    Effect.gen(function* () {
      for (let at = 0; at < 37; at += 1) yield* R.reads(run(`r${at}`, [S.start, ...big(7), S.done]).events);
      yield* R.settled;
      assert.strictEqual(yield* refusal("r35"), "done");
      assert.strictEqual(yield* refusal("r36"), "AttachRefused evicted");
      yield* R.passed(lingerMs);
      yield* R.passed(lingerMs);
      yield* R.reads(run("later", [S.start, ...big(7), S.done]).events);
      yield* R.settled;
      assert.strictEqual(yield* refusal("later"), "done");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("lists 1,024 of them: one more is read by its own reader, until one has ended", () =>
    Effect.gen(function* () {
      const living = [S.start, S.never];
      const first = yield* R.reads(run("first", [S.start, S.wait(1_000), S.done]).events);
      const unread = yield* R.reads(run("unread", living).events);
      yield* R.settled;
      yield* unread.leave;
      for (let at = 2; at < Linger.lingeringRunsMax; at += 1) yield* R.reads(run(`r${at}`, living).events);
      const more = yield* R.reads(run("more", [S.start, S.wait(500), S.text("a"), S.done]).events);
      assert.strictEqual(yield* refusal("more"), "AttachRefused evicted");
      yield* R.passed(500);
      assert.strictEqual(more.end(), "done");
      yield* R.passed(500);
      assert.strictEqual(first.end(), "done");
      yield* R.reads(run("newest", living).events);
      assert.isUndefined(yield* refusal("newest"));
      assert.strictEqual(yield* refusal("first"), "AttachRefused unknown");
      assert.isUndefined(yield* refusal("unread"), "a live run keeps its place while nobody reads it");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("has nothing left of a run whose time is over", () =>
    Effect.gen(function* () {
      const runs = new Linger.LingeringRuns();
      const readers = runs.open<S.ScriptedPart>({ ms: lingerMs }, {});
      if (readers === undefined) return assert.fail("no linger");
      const handoff = new Handoff<S.ScriptedPart>(readers.taps.tee);
      const ledger = { ended: false };
      const services = Context.empty();
      const take = readers.begin({
        runId: "r",
        attempts: 1,
        handoff,
        ledger,
        stopper: undefined,
        stop: () => undefined,
        services,
      });
      handoff.push({ _tag: "AttemptStarted", run_id: "r", attempt: 1, mode: "first" });
      yield* take;
      assert.isAbove(runs.bytes, 0);
      assert.strictEqual(runs.size, 1);
      readers.retire();
      assert.strictEqual(runs.size, 0);
      readers.leave(yield* Effect.exit(Effect.interrupt));
      assert.strictEqual(runs.bytes, 0);
    }),
  );

  it.effect("has its first reader's consumer wait only for a run that stops, has ended or never began", () =>
    Effect.gen(function* () {
      const left = yield* Effect.exit(Effect.interrupt);
      const wanted = Exit.void;
      const leave = (exit: Exit.Exit<unknown, unknown>, begins = true, ended = false) => {
        const readers = new Linger.LingeringRuns().open<S.ScriptedPart>({ ms: lingerMs }, {});
        if (readers === undefined) return assert.fail("no linger");
        const { taps } = readers;
        const host = {
          ...{ runId: "r", attempts: 1, handoff: new Handoff<S.ScriptedPart>(taps.tee), ledger: { ended } },
          ...{ stopper: undefined as Stopper | undefined, services: Context.empty() },
          stop: (by: Stopper) => {
            host.stopper = by;
          },
        };
        assert.strictEqual(begins ? readers.begin(host) !== undefined : false, begins);
        const waits = readers.leave(exit);
        readers.retire();
        return waits;
      };
      assert.isFalse(leave(left), "the run continues");
      assert.isTrue(leave(wanted), "a consumer that has taken all that it wanted stops its run");
      assert.isTrue(leave(left, true, true), "the run has ended");
      assert.isTrue(leave(left, false), "the run never began");
    }),
  );
});
