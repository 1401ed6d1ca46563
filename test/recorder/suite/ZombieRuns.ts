/**
 * Fences a process in the middle of what its run records before it acts, over each store: it starts nothing more. No attempt is
 * opened, no tool starts, and no completion is told that the store did not take before the fence (L6, L7, L8).
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Layer, Stream } from "effect";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import * as RunRecord from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../../runtime/Scripted.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "./Bench.ts";
import type { Held, Meeting, Two } from "./Zombies.ts";

/** What a process did of its run. */
interface Deeds {
  readonly attempts: () => number;
  readonly ran: ReadonlyArray<string>;
  readonly lines: ReadonlyArray<string>;
}

/** Something that a run does once it is on record. */
interface Act {
  readonly script: ReadonlyArray<S.Step>;
  /** The write that has to be on record before. */
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

/** Fences a process at each point of a store at which its write is not taken yet. */
export const zombieRuns = <E>(name: string, { points, two }: Meeting<E>): void => {
  const before = Object.entries(points).filter(([, side]) => side === "before");
  describe.each(before)(`${name}, whose process stands still %s and is fenced`, (point) => {
    for (const [title, act] of Object.entries(acts)) {
      it.live(title, () => Effect.scoped(Effect.flatMap(two, (both) => fencedIn(both, act, point))));
    }
  });
};

/** Fences a process whose response flows to a caller, and lets the other one end the run, or not. */
export const flowingZombies = <E>(name: string, { two }: Pick<Meeting<E>, "two">): void => {
  describe(`${name}, whose process is fenced while its text flows to a caller`, () => {
    for (const isEnded of [true, false]) {
      const title = isEnded
        ? "has the note of it on the record that the other one has ended"
        : "leaves the record alone";
      it.live(`hands all of it over, and ${title}`, () =>
        Effect.scoped(Effect.flatMap(two, (both) => flowedOn(both, isEnded))),
      );
    }

    it.live("may say nothing else of a run that is not its own, and that only of one that has ended", () =>
      Effect.scoped(Effect.flatMap(two, lastWords)),
    );
  });
};

const noted = (detail: string, event: "end" | "shown" = "end"): Entry => ({
  _tag: "EvidenceNoted",
  evidence: { at_ms: 1, attempt: 1, event, detail },
});

const word = noted(RunRecord.flowedOn);

const evidenceOf = (it: Recorder) =>
  Effect.map(it.run("r"), (record) => [...(record?.evidence.first ?? []), ...(record?.evidence.last ?? [])]);

const flowedOn = (both: Two, isEnded: boolean) =>
  Effect.gen(function* () {
    const gate = Deferred.makeUnsafe<void>();
    const script = [S.start, S.text("a"), { run: Deferred.await(gate) }, S.text("c"), S.done];
    const deeds = yield* played(both.slow, { script }, { discardable: false, flowsOn: () => true });
    while (!deeds.lines.includes("a")) yield* Effect.yieldNow;
    yield* both.quick.processEnded?.("slow") ?? Effect.void;
    yield* both.quick.claim("r");
    if (isEnded) yield* both.quick.write("r", [E.ended({ state: "stopped", reason: "lifecycle_closed" })]);
    yield* Deferred.succeed(gate, undefined);
    yield* deeds.ended;
    assert.deepStrictEqual(deeds.lines, ["attempt 1 first", "start", "a", "c", "done", "end taken_over"]);
    const record = yield* both.quick.run("r");
    assert.strictEqual(record?.state, isEnded ? "ended" : "live");
    // The note is written behind the end of the stream.
    const found = Effect.map(evidenceOf(both.quick), (it) => it.some(RunRecord.isFlowedOn));
    if (isEnded) yield* Effect.repeat(Effect.delay(found, 5), { until: (is) => is });
    else assert.isFalse(yield* Effect.delay(found, 50));
  });

const lastWords = (both: Two) =>
  Effect.gen(function* () {
    const outcome = (entries: ReadonlyArray<Entry>) =>
      Effect.match(both.slow.write("r", entries), { onSuccess: () => "ok", onFailure: ({ reason }) => reason });
    yield* both.slow.write("r", [E.begun("r"), E.attempt(1)]);
    yield* both.quick.processEnded?.("slow") ?? Effect.void;
    yield* both.quick.claim("r");
    assert.strictEqual(yield* outcome([word]), "fenced", "while another one drives the run");
    yield* both.quick.write("r", [E.parked("interrupted")]);
    assert.strictEqual(yield* outcome([word]), "fenced", "while nobody drives it");
    yield* both.quick.claim("r");
    yield* both.quick.write("r", [E.ended({ state: "stopped", reason: "lifecycle_closed" })]);
    const before = yield* evidenceOf(both.quick);
    for (const entries of [
      [noted("other")],
      [noted(RunRecord.flowedOn, "shown")],
      [word, noted("other")],
      [E.attempt(2)],
    ])
      assert.strictEqual(yield* outcome(entries), "fenced", JSON.stringify(entries));
    assert.deepStrictEqual(yield* evidenceOf(both.quick), before);
    assert.strictEqual(yield* outcome([word]), "ok");
    assert.deepStrictEqual(yield* evidenceOf(both.quick), [
      ...before,
      { at_ms: 1, attempt: 1, event: "end", detail: RunRecord.flowedOn },
    ]);
    assert.strictEqual((yield* both.quick.run("r"))?.end?.reason, "lifecycle_closed");
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

/** The slow one's recorder, which is held at the point by its first write that an act rests on. */
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
