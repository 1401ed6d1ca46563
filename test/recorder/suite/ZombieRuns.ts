/**
 * Fences a process during a write that its run makes before it acts, over each store: it starts nothing more. No attempt is
 * opened, no tool starts, and no completion is reported that the store did not accept before the fence (L6, L7, L8).
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Layer, Stream } from "effect";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../../runtime/Scripted.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "./Bench.ts";
import type { Held, Meeting, Two } from "./Zombies.ts";

/** Acts of a process in its run. */
interface Deeds {
  readonly attempts: () => number;
  readonly ran: ReadonlyArray<string>;
  readonly lines: ReadonlyArray<string>;
}

/** An act that a run performs once it is on record. */
interface Act {
  readonly script: ReadonlyArray<S.Step>;
  /** Matches the entry that must be on record first. */
  readonly records: (entry: Entry) => boolean;
  readonly done: (deeds: Deeds) => boolean;
}

const dispatched = (entry: Entry): boolean =>
  entry._tag === "FactsRaised" && entry.facts.tools.some(({ phase }) => phase === "dispatched");

const acts: Readonly<Record<string, Act>> = {
  "a retry opens no attempt": {
    script: [S.start, S.reset],
    records: (entry) => entry._tag === "AttemptStarted" && entry.attempt === 2,
    done: ({ attempts }) => attempts() > 1,
  },
  "a tool does not start": {
    script: [S.start, S.callReady("bash"), S.wait(100), S.done],
    records: dispatched,
    done: ({ ran }) => ran.length > 0,
  },
  "a call is not handed over": {
    script: [S.start, S.callReady("bash"), S.done],
    records: ({ _tag }) => _tag === "CallHandedOver",
    done: ({ lines }) => lines.includes("bash:ready"),
  },
  "a whole response is not said to be complete": {
    script: [S.start, S.text("a"), S.done],
    records: ({ _tag }) => _tag === "RunEnded",
    done: ({ lines }) => lines.includes("completed"),
  },
};

/** Fences a process at each point of a store at which its write is not accepted yet. */
export const zombieRuns = <E>(name: string, { points, two }: Meeting<E>): void => {
  const before = Object.entries(points).filter(([, side]) => side === "before");
  describe.each(before)(`${name}, whose process is frozen %s and fenced`, (point) => {
    for (const [title, act] of Object.entries(acts)) {
      it.live(title, () => Effect.scoped(Effect.flatMap(two, (both) => fencedIn(both, act, point))));
    }
  });
};

/** Fences the owner of a volatile run: nothing in the run stops, and its own entries about the run count (L8). */
export const volatileZombies = <E>(name: string, { two }: Pick<Meeting<E>, "two">): void => {
  describe(`${name}, volatile, whose process is fenced`, () => {
    it.live("shows its text, hands its call over and completes, and its own end replaces the assumed one", () =>
      Effect.scoped(Effect.flatMap(two, completesThough)),
    );

    it.live("ends as assumed if its process never returns, whatever was asked, and no later process decides it", () =>
      Effect.scoped(Effect.flatMap(two, endsAsAssumed)),
    );

    it.live("accepts the entries that its process spilled, in any order of the two ends", () =>
      Effect.scoped(Effect.flatMap(two, takesSpilled)),
    );
  });
};

const volatile = (run_id: string): Entry => {
  const start = E.begun(run_id);
  return start._tag === "RunStarted" ? { ...start, volatile: true, started_by: "slow.1" } : start;
};

const swept = (both: Two) => Effect.provideService(CrashRecovery.recover(), RunRecorder, both.quick);

const completesThough = (both: Two) =>
  Effect.gen(function* () {
    const gate = Deferred.makeUnsafe<void>();
    const script = [S.start, S.text("a"), { run: Deferred.await(gate) }, S.callReady("pay"), S.done];
    const pay = { name: "pay", executor: "runtime", effect: "mutating" } as const;
    const deeds = yield* played(both.slow, { script }, { record: "behind", discardable: false, tools: [pay] });
    while (!deeds.lines.includes("a")) yield* Effect.yieldNow;
    // The queue writes a moment later.
    yield* Effect.repeat(Effect.delay(both.quick.run("r"), 20), { until: (record) => record !== undefined });
    yield* both.quick.processEnded?.("slow") ?? Effect.void;
    yield* swept(both);
    assert.deepInclude((yield* both.quick.run("r"))?.end, { reason: "process_lost", assumed: true });
    yield* Deferred.succeed(gate, undefined);
    yield* deeds.ended;
    assert.deepStrictEqual(deeds.lines, [
      "attempt 1 first",
      "start",
      "a",
      "pay:ready",
      "done",
      "completed",
      "end well",
    ]);
    const record = yield* Effect.repeat(Effect.delay(both.quick.run("r"), 20), {
      until: (it) => it?.end?.state === "completed",
      times: 250,
    });
    assert.isUndefined(record?.end?.assumed);
    assert.deepStrictEqual(
      record?.calls.map(({ tool }) => tool),
      ["pay"],
    );
  });

const endsAsAssumed = (both: Two) =>
  Effect.gen(function* () {
    const facts = E.raised(1, { shown: "text" });
    yield* both.slow.write("r", [volatile("r"), E.attempt(1), facts]);
    yield* both.slow.write("asked", [volatile("asked"), E.attempt(1), E.opened("asked", 1), E.asked("asked", 1)]);
    yield* both.slow.write("durable", [E.begun("durable"), E.attempt(1)]);
    yield* both.quick.processEnded?.("slow") ?? Effect.void;
    const { runs } = yield* swept(both);
    assert.deepStrictEqual(
      runs.flatMap(({ outcome, run_id }) => (run_id === "durable" ? [] : [`${run_id} ${outcome}`])).sort(),
      ["asked stopped", "r stopped"],
    );
    for (const id of ["r", "asked"]) {
      const record = yield* both.quick.run(id);
      assert.deepInclude(record?.end, { state: "stopped", reason: "process_lost", assumed: true }, id);
      assert.lengthOf(record?.incidents ?? [], id === "r" ? 0 : 1, "nothing is decided");
    }
    const record = yield* both.quick.run("r");
    assert.deepStrictEqual(record?.attempts[0]?.facts, facts._tag === "FactsRaised" ? facts.facts : undefined);
    assert.isNotEmpty((yield* both.quick.run("durable"))?.incidents ?? []);
    assert.lengthOf((yield* swept(both)).runs, 0);
  });

const takesSpilled = (both: Two) =>
  Effect.gen(function* () {
    const started = volatile("r");
    yield* both.slow.write("r", [started, E.attempt(1)]);
    yield* both.quick.processEnded?.("slow") ?? Effect.void;
    yield* swept(both);
    const spilled = [started, E.attempt(1), E.raised(1, { shown: "text" }), E.attempt(2, "replay")];
    yield* both.quick.write("r", spilled);
    assert.strictEqual((yield* both.quick.run("r"))?.state, "live");
    yield* both.quick.write("r", [E.ended({ state: "completed", reason: "stop" })]);
    const record = yield* both.quick.run("r");
    assert.deepInclude(record?.end, { state: "completed", reason: "stop" });
    assert.lengthOf(record?.attempts ?? [], 2);
    // Late entries of the run change nothing, and no process drives it.
    yield* both.quick.write("r", spilled);
    assert.deepStrictEqual(yield* both.quick.run("r"), record);
    assert.strictEqual(
      yield* Effect.flip(Effect.map(both.quick.claim("r"), () => "claimed")).pipe(Effect.map((error) => error.reason)),
      "run_ended",
    );
  });

const fencedIn = (both: Two, act: Act, point: string) =>
  Effect.gen(function* () {
    const reached = Deferred.makeUnsafe<Held>();
    const deeds = yield* played(armed(both, act, point, reached), act);
    const gate = yield* Deferred.await(reached);
    yield* gate.reached;
    assert.isFalse(act.done(deeds));
    yield* both.quick.processEnded?.("slow") ?? Effect.void;
    yield* both.quick.claim("r");
    yield* gate.release;
    yield* deeds.ended;
    assert.isFalse(act.done(deeds), deeds.lines.join());
    assert.match(deeds.lines.at(-1) ?? "", /^end taken_over/);
    const record = yield* both.quick.run("r");
    assert.notStrictEqual(record?.state, "ended");
  });

/** The slow process's recorder, which is held at the point by the first write that precedes an act. */
const armed = ({ hold, slow }: Two, { records }: Act, point: string, reached: Deferred.Deferred<Held>): Recorder => ({
  ...slow,
  write: (id, entries) =>
    Effect.suspend(() => {
      if (entries.some(records) && !Deferred.isDoneUnsafe(reached)) {
        Deferred.doneUnsafe(reached, Effect.succeed(hold(point)));
      }
      return slow.write(id, entries);
    }),
});

const played = (recorder: Recorder, { script }: Pick<Act, "script">, more: S.More = {}) =>
  Effect.gen(function* () {
    const services = yield* Layer.build(
      StreamProcessor.layer.pipe(
        Layer.provide(Layer.succeed(RunRecorder, recorder)),
        Layer.provide(Layer.succeed(UserDecisions, { ask: () => Effect.succeed("parked" as const) })),
      ),
    );
    const [ran, lines]: [Array<string>, Array<string>] = [[], []];
    const bash = Context.get(services, ToolGuard).mutating("bash", () => Effect.sync(() => void ran.push("bash")));
    const provider = S.scripted(script, [S.start, S.text("b"), S.done]);
    const options = S.options(provider, { runId: "r", transcript: "t", tools: [bash], ...more });
    const consumed = Stream.runForEach(Context.get(services, StreamProcessor).run(options), (event) => {
      lines.push(S.line(event));
      const calls = event._tag === "Part" ? (event.calls ?? []) : [];
      return Effect.forEach(calls, (call) => Effect.ignore(bash.run(call, undefined)), { discard: true });
    });
    const ended = Deferred.makeUnsafe<void>();
    const told = Effect.map(Effect.exit(consumed), (exit) => {
      lines.push(`end ${S.errorOf(exit)?.reason ?? "well"}`);
      Deferred.doneUnsafe(ended, Effect.void);
    });
    yield* Effect.forkDetach(told, { startImmediately: true });
    return { ran, lines, attempts: () => provider.attempts.length, ended: Deferred.await(ended) };
  });
