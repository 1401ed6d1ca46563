import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Metric } from "effect";
import { TestClock } from "effect/testing";
import { fresh as freshRun } from "../../../src/domain/RunFacts.ts";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry, RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CrashPlan from "../../../src/runtime/crash/CrashPlan.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { folded } from "../../recorder/Entries.ts";
import { heard } from "../../recorder/shared/Heard.ts";
import * as L from "./Lives.ts";

type Recorder = RunRecorder["Service"];

const memory = () => Layer.fresh(RunRecorder.layerMemory());

/** Stores a run whose process is dead. */
const orphan = (recorder: Recorder, life: L.Life, runId = L.runId) =>
  Effect.gen(function* () {
    for (const entries of life)
      yield* recorder.write(
        runId,
        entries.map((entry) => renamed(entry, runId)),
      );
    yield* recorder.release(runId);
  });

const renamed = (entry: Entry, run_id: string): Entry => (entry._tag === "RunStarted" ? { ...entry, run_id } : entry);

const known = (recorder: Recorder, runId = L.runId): Effect.Effect<RunRecord, RecorderError> =>
  Effect.filterOrElse(
    recorder.run(runId),
    (record) => record !== undefined,
    () => Effect.die(new Error("the run is lost")),
  );

const recovered = (life: L.Life, options?: CrashRecovery.RecoverOptions) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(1_000);
    const recorder = yield* RunRecorder;
    yield* orphan(recorder, life);
    const report = yield* CrashRecovery.recover(options);
    return { report, record: yield* known(recorder) };
  }).pipe(Effect.provide(memory()));

/** A record as one line: its state, its incidents by rule and status, its newest question or its end. */
const told = ({ end, incidents, parked, questions, state }: RunRecord): string => {
  const question = questions.at(-1);
  return [
    parked === undefined ? state : `${state} ${parked}`,
    ...incidents.map(({ decision, status }) => `${decision.rule} ${status}`),
    ...(question === undefined
      ? []
      : [`question ${question.revision} ${question.answer ?? question.choices.join("|")}`]),
    ...(end === undefined ? [] : [`${end.state} ${end.reason}`]),
  ].join(", ");
};

const outcomes: Readonly<Record<string, readonly [CrashRecovery.Outcome, string]>> = {
  "nothing was shown": ["offered", "parked recovered, nothing_shown open"],
  "reasoning was shown": ["offered", "parked recovered, only_reasoning_shown open"],
  "text was shown": ["asked", "asking question, text_shown open, question 1 retry|accept|stop"],
  "a tool was under way": [
    "asked",
    "asking question, tool_outcome_unknown open, question 1 retry|it_ran|it_did_not_run|stop",
  ],
  "a tool had settled": ["asked", "asking question, tool_ran open, question 1 retry|stop"],
  "a tool had settled, and the runtime can continue": ["offered", "parked recovered, tools_settled open"],
  // Parts that its process had not handed over are lost with it, so the run may not be called complete.
  "the marker had come": ["asked", "asking question, text_shown open, question 1 retry|accept|stop"],
  "a retry was decided": ["offered", "parked recovered, nothing_shown open"],
  "a resume was decided": ["offered", "parked recovered, resume_cursor superseded, nothing_shown open"],
  "a resumed response broke": [
    "asked",
    "asking question, resume_cursor acted_on, tool_outcome_unknown open, question 1 retry|it_ran|it_did_not_run|accept|stop",
  ],
  "the user had cancelled": ["stopped", "ended, user_cancelled final, stopped user_cancelled"],
  "its caller had left it": ["offered", "parked recovered, caller_interrupted superseded, nothing_shown open"],
  "its question was answered: stop": ["stopped", "ended, text_shown final, question 1 stop, stopped text_shown"],
  "its question was answered: accept": [
    "stopped",
    "ended, text_shown final, question 1 accept, stopped accepted_partial",
  ],
  "its question was answered: retry": ["answered", "parked answered, text_shown acted_on, question 1 retry"],
  "it was parked and answered: stop": ["stopped", "ended, text_shown final, question 1 stop, stopped text_shown"],
  "a tool's outcome was told: it ran": [
    "asked",
    "asking question, tool_outcome_unknown acted_on, tool_ran open, question 2 retry|stop",
  ],
  "a tool's outcome was told, and the runtime can continue": [
    "offered",
    "parked recovered, tool_outcome_unknown acted_on, tools_settled open, question 1 it_did_not_run",
  ],
  "a tool settled while its question was open": [
    "asked",
    "asking question, tool_outcome_unknown superseded, tool_ran open, question 2 retry|stop",
  ],
  "a question had expired": ["stopped", "ended, text_shown final, question 1 stop, stopped text_shown"],
  "a question had expired with the default accept": [
    "stopped",
    "ended, text_shown final, question 1 accept, stopped accepted_partial",
  ],
  "a question had expired with the default retry": ["answered", "parked answered, text_shown open, question 1 retry"],
  "its policy is of a program": ["asked", "asking question, nothing_shown open, question 1 retry|stop"],
  "it decides by the strict policy": ["asked", "asking question, text_shown open, question 1 retry|accept|stop"],
  "nothing was ever started": ["stopped", "ended, stopped not_started"],
  "it was taken over ten times": [
    "asked",
    "asking question, nothing_shown superseded, budget_exhausted open, question 1 retry|stop",
  ],
};

describe("A run whose process died", () => {
  for (const [name, [outcome, record]] of Object.entries(outcomes)) {
    it.effect(`when ${name}: ${outcome}`, () =>
      Effect.gen(function* () {
        const it = yield* recovered(L.lifeOf(name));
        assert.deepStrictEqual([it.report.runs.map((row) => row.outcome), told(it.record)], [[outcome], record]);
      }),
    );
  }

  it.effect("that waits for its answer, or for a program to take it up, is left alone", () =>
    Effect.gen(function* () {
      for (const name of ["its question was parked", "it was parked and answered: retry"]) {
        const it = yield* recovered(L.lifeOf(name));
        assert.deepStrictEqual(it.report.runs, [], name);
      }
    }),
  );

  it.effect("has its result on record: the rule, the question, and the outcome of its calls after the crash", () =>
    Effect.gen(function* () {
      const { record, report } = yield* recovered(L.lifeOf("a tool was under way"));
      assert.deepStrictEqual(report.runs, [
        { run_id: L.runId, outcome: "asked", rule: "tool_outcome_unknown", revision: 1 },
      ]);
      assert.deepStrictEqual(report.counts.asked, 1);
      assert.deepStrictEqual(
        record.attempts.map(({ facts }) => facts.tools.map(({ phase }) => phase)),
        [["outcome_unknown"]],
      );
      assert.deepInclude(record.incidents[0], { id: "r.1", attempt: 1, at: 1_000, policy: "default" });
      assert.match(
        record.incidents[0]?.message ?? "",
        /^The process ended in the middle of the answer; a tool had started/,
      );
      assert.deepInclude(record.questions[0], { attempt: 1, asked_at: 1_000, default_choice: "stop" });
      assert.deepStrictEqual(
        record.evidence.first.map(({ detail, event }) => [event, detail]),
        [
          ["failure", "crashed"],
          ["decision", "tool_outcome_unknown"],
        ],
      );
    }),
  );

  it.effect("also has calls of earlier attempts on record as unknown, and no others", () =>
    Effect.gen(function* () {
      const reading = L.facts({ delivery: "not_sent", tools: [L.call("dispatched", "0.0", "read_only")] });
      const { record } = yield* recovered([
        [L.begun(), L.attempt(1)],
        [L.raised(1, reading), L.attempt(2, { mode: "replay" })],
      ]);
      const [first, second] = record.attempts;
      assert.deepInclude(first?.facts, { delivery: "not_sent" });
      assert.deepStrictEqual(first?.facts.tools[0]?.phase, "outcome_unknown");
      assert.deepInclude(second?.facts, { delivery: "ambiguous" });
    }),
  );

  it.effect("keeps the terms of its questions: an expiry, and a default if it is offered", () =>
    Effect.gen(function* () {
      const terms = { expiryMs: 60_000, defaults: { text_shown: "accept", tool_ran: "continue" } } as const;
      const shown = yield* recovered(L.lifeOf("text was shown"), { terms });
      assert.deepInclude(shown.record.questions[0], { default_choice: "accept", expires_at: 61_000 });
      const ran = yield* recovered(L.lifeOf("a tool had settled"), { terms });
      assert.deepInclude(ran.record.questions[0], { default_choice: "stop", expires_at: 61_000 });
    }),
  );

  it.effect("has no expiry if no record can hold it, for example a huge one", () =>
    Effect.gen(function* () {
      for (const expiryMs of [Number.NaN, Number.POSITIVE_INFINITY, -1, 1e300]) {
        const { record } = yield* recovered(L.lifeOf("text was shown"), { terms: { expiryMs } });
        assert.deepStrictEqual(
          record.questions.map((question) => "expires_at" in question),
          [false],
        );
      }
    }),
  );

  it.effect("is decided by its own policy if that is known", () =>
    Effect.gen(function* () {
      const ours = RecoveryPolicy.make({ name: "our own", stricter: { nothing_shown: "do_not_retry" } });
      const { record } = yield* recovered(L.lifeOf("its policy is of a program"), { policies: [ours] });
      assert.strictEqual(told(record), "ended, nothing_shown final, stopped nothing_shown");
      assert.strictEqual(record.incidents[0]?.policy, "our own");
    }),
  );
});

describe("A run that needs no recovery", () => {
  const means = { now: 1_000, jitter: 0.5, policy: RecoveryPolicy.default };
  for (const [reason, name] of [
    ["recovered", "a retry was decided"],
    ["question", "its question was parked"],
  ] as const) {
    it(`parked as ${reason}, gets no further entries`, () => {
      const record = folded([...L.lifeOf(name).flat(), L.parked(reason)]);
      assert.strictEqual(CrashPlan.planNext(record, means)._tag, "keep");
    });
  }
});

describe("recover", () => {
  it.effect("recovers thousands in bounded batches, and reports its progress", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      const count = 1_234;
      for (let index = 0; index < count; index += 1) {
        yield* orphan(recorder, L.lifeOf(index % 2 === 0 ? "nothing was shown" : "text was shown"), `r${index}`);
      }
      const progress: Array<number> = [];
      const onProgress = (runs: number) => Effect.sync(() => void progress.push(runs));
      const report = yield* CrashRecovery.recover({ onProgress });
      assert.deepInclude(report.counts, { offered: count / 2, asked: count / 2 });
      assert.deepStrictEqual([report.more, new Set(report.runs.map(({ run_id }) => run_id)).size], [false, count]);
      assert.deepStrictEqual([progress.length, progress[0], progress.at(-1)], [13, CrashRecovery.batchRuns, count]);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("stops at its limit and reports that there are more", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      for (let index = 0; index < 5; index += 1) yield* orphan(recorder, L.lifeOf("nothing was shown"), `r${index}`);
      const reports = [yield* CrashRecovery.recover({ limit: 3 }), yield* CrashRecovery.recover({ limit: 3 })];
      assert.deepStrictEqual(
        reports.map(({ more, runs }) => [more, runs.length]),
        [
          [true, 3],
          [false, 2],
        ],
      );
    }).pipe(Effect.provide(memory())),
  );

  it.effect("skips a run that another process has taken over meanwhile, and finds later ones", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      for (let index = 0; index < 150; index += 1) {
        yield* orphan(recorder, L.lifeOf("its caller had left it"), `r${index}`);
      }
      const owned = new RecorderError({ reason: "owned", run_id: "", message: "owned" });
      const report = yield* Effect.provideService(CrashRecovery.recover(), RunRecorder, {
        ...recorder,
        claim: (runId) => (Number(runId.slice(1)) < 120 ? Effect.fail(owned) : recorder.claim(runId)),
      });
      assert.deepInclude(report.counts, { skipped: 120, offered: 30 });
    }).pipe(Effect.provide(memory())),
  );

  it.effect("recovers a run once if two processes do so at the same time", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* orphan(recorder, L.lifeOf("text was shown"));
      const reports = yield* Effect.all([CrashRecovery.recover(), CrashRecovery.recover()], { concurrency: 2 });
      assert.strictEqual(
        reports.reduce((count, { counts }) => count + counts.asked, 0),
        1,
      );
      assert.strictEqual((yield* known(recorder)).questions.length, 1);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("fails if the store does, and releases the runs it held", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* orphan(recorder, L.lifeOf("text was shown"));
      const full = new RecorderError({ reason: "disk_full", run_id: "", message: "the disk is full" });
      const failing = { ...recorder, write: () => Effect.fail(full) };
      const error = yield* Effect.flip(Effect.provideService(CrashRecovery.recover(), RunRecorder, failing));
      assert.strictEqual(error, full);
      yield* recorder.claim(L.runId);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("does not touch live runs", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* recorder.write(L.runId, [L.begun(), L.attempt(1), L.raised(1, L.dispatched)]);
      const before = yield* known(recorder);
      assert.deepStrictEqual([(yield* CrashRecovery.recover()).runs, yield* known(recorder)], [[], before]);
    }).pipe(Effect.provide(memory())),
  );
});

describe("answer", () => {
  const asking = (life: L.Life, choice: Parameters<typeof CrashRecovery.answer>[0]["choice"], driven = false) =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      for (const entries of life) yield* recorder.write(L.runId, entries);
      if (!driven) yield* recorder.release(L.runId);
      return yield* CrashRecovery.answer({ run_id: L.runId, revision: 1, choice, by: "person" });
    }).pipe(Effect.provide(memory()));
  const text = L.questioned(L.facts(L.text));
  const tool = L.questioned(L.dispatched);

  it.effect("stop and accept end a run without an owner", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        told(yield* asking(text, "stop")),
        "ended, text_shown final, question 1 stop, stopped text_shown",
      );
      assert.strictEqual(
        told(yield* asking([...text, [L.parked("question")]], "accept")),
        "ended, text_shown final, question 1 accept, stopped accepted_partial",
      );
    }),
  );

  it.effect("retry waits until the run is taken up", () =>
    Effect.gen(function* () {
      const record = yield* asking(text, "retry");
      assert.strictEqual(told(record), "parked answered, text_shown open, question 1 retry");
      assert.deepInclude(record.incidents[0], { answer: "retry" });
    }),
  );

  for (const verdict of ["it_ran", "it_did_not_run"] as const) {
    it.effect(`${verdict} settles every call of unknown outcome on the person's word and decides again`, () =>
      Effect.gen(function* () {
        const two = L.facts({
          ...L.dispatched,
          text_through: 5,
          tools: [L.call("dispatched"), L.call("dispatched", "0.1")],
        });
        const record = yield* asking(L.questioned(two), verdict);
        assert.deepStrictEqual(
          record.calls.map(({ call, verdict, verdict_by }) => [call, verdict, verdict_by]),
          [
            ["0.0", verdict, "person"],
            ["0.1", verdict, "person"],
          ],
        );
        const [attempt] = record.attempts;
        assert.deepStrictEqual([attempt?.facts.settled_through, attempt?.facts.text_through], [7, 5]);
        assert.isTrue(attempt?.facts.tools.every(({ effect, phase }) => phase === "settled" && effect === "mutating"));
        assert.match(told(record), /^asking question, tool_outcome_unknown acted_on, tool_ran open, question 2/);
      }),
    );
  }

  it.effect("a word that settles nothing ends the run instead of asking forever", () =>
    Effect.gen(function* () {
      const folded = L.facts({ ...L.dispatched, tools: [L.call("outcome_unknown", "folded.runtime")] });
      const record = yield* asking(L.questioned(folded), "it_ran");
      assert.match(
        told(record),
        /^ended, tool_outcome_unknown final, question 1 it_ran, stopped tool_outcome_unknown$/,
      );
    }),
  );

  it.effect("is left to the owner of the run", () =>
    Effect.gen(function* () {
      assert.strictEqual(told(yield* asking(text, "stop", true)), "live, text_shown open, question 1 stop");
    }),
  );

  it.effect("answers what `questions` lists, with or without an owner", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      assert.deepStrictEqual(yield* CrashRecovery.questions(), []);
      for (const entries of tool) yield* recorder.write(L.runId, entries);
      const [owned] = yield* CrashRecovery.questions();
      assert.deepInclude(owned ?? {}, { run_id: L.runId, revision: 1, rule: "tool_outcome_unknown" });
      assert.deepStrictEqual(owned?.may_repeat, owned?.decision.may_repeat ?? []);
      yield* recorder.release(L.runId);
      assert.deepStrictEqual((yield* CrashRecovery.questions())[0], owned);
      assert.deepStrictEqual(yield* CrashRecovery.questions({ text: "another run" }), []);
      yield* CrashRecovery.answer({ run_id: L.runId, revision: 1, choice: "stop", by: "program" });
      assert.deepStrictEqual(yield* CrashRecovery.questions(), []);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("is refused after the first one, and nothing is done", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* orphan(recorder, text);
      const given = { run_id: L.runId, revision: 1, choice: "retry", by: "person" } as const;
      yield* CrashRecovery.answer(given);
      const before = yield* known(recorder);
      const error = yield* Effect.flip(CrashRecovery.answer({ ...given, choice: "stop" }));
      assert.deepInclude(error, { _tag: "AnswerRefused", reason: "already_answered" });
      assert.deepStrictEqual(yield* known(recorder), before);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("is kept if it cannot be carried out, and the next recovery does so", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* orphan(recorder, [...tool, [L.parked("question")]]);
      const locked = new RecorderError({ reason: "locked", run_id: L.runId, message: "locked" });
      const given = { run_id: L.runId, revision: 1, choice: "stop", by: "person" } as const;
      const taken = yield* Effect.provideService(CrashRecovery.answer(given), RunRecorder, {
        ...recorder,
        write: () => Effect.fail(locked),
      });
      assert.strictEqual(taken.questions[0]?.answer, "stop");
      assert.deepStrictEqual((yield* CrashRecovery.recover()).counts.stopped, 1);
      assert.strictEqual((yield* known(recorder)).end?.reason, "tool_outcome_unknown");
    }).pipe(Effect.provide(memory())),
  );
});

describe("layer", () => {
  it.effect("sweeps at boot and then every 15 seconds, and reports what it did", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      const reports: Array<ReadonlyArray<string>> = [];
      const onSwept = ({ runs }: CrashRecovery.Report) =>
        Effect.sync(() => void reports.push(runs.map(({ outcome, run_id }) => `${run_id} ${outcome}`)));
      yield* orphan(recorder, L.lifeOf("nothing was shown"), "a");
      yield* Layer.build(CrashRecovery.layer({ onSwept }));
      yield* TestClock.adjust(0);
      assert.deepStrictEqual(reports, [["a offered"]]);
      yield* orphan(recorder, L.lifeOf("text was shown"), "b");
      yield* TestClock.adjust(CrashRecovery.sweepIntervalMsDefault - 1);
      assert.strictEqual(reports.length, 1);
      yield* TestClock.adjust(1);
      assert.deepStrictEqual(reports[1], ["b asked"]);
      yield* TestClock.adjust("1 minute");
      assert.strictEqual(reports.length, 2);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("interrupts fibers that onSwept forked when the layer closes", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* orphan(recorder, L.lifeOf("nothing was shown"), "a");
      const log: Array<string> = [];
      const takeUp = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void log.push("interrupted")));
      const onSwept = () =>
        Effect.forkScoped(
          Effect.andThen(
            Effect.sync(() => void log.push("forked")),
            takeUp,
          ),
        );
      const built = Effect.andThen(Layer.build(CrashRecovery.layer({ onSwept })), TestClock.adjust("1 minute"));
      yield* Effect.scoped(built);
      assert.deepStrictEqual(log, ["forked", "interrupted"]);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("applies the default of a parked question when it expires", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      const life = L.lifeOf("a question had expired with the default accept");
      yield* orphan(recorder, life);
      yield* TestClock.setTime(0);
      yield* Layer.build(CrashRecovery.layer({ intervalMs: 5 }));
      yield* TestClock.adjust(15);
      assert.strictEqual((yield* known(recorder)).state, "asking");
      yield* TestClock.adjust(5);
      assert.strictEqual((yield* known(recorder)).end?.reason, "accepted_partial");
    }).pipe(Effect.provide(memory())),
  );

  it.effect("looks at parked runs no more often than configured, and at orphans each time", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      const asked: Array<string> = [];
      let fails = false;
      const locked = new RecorderError({ reason: "locked", run_id: "", message: "locked" });
      const watched: Recorder = {
        ...recorder,
        orphans: (limit) =>
          Effect.andThen(
            Effect.sync(() => asked.push("orphans")),
            recorder.orphans(limit),
          ),
        runs: (query) =>
          Effect.suspend(() => {
            asked.push(query?.state ?? "all");
            return fails ? Effect.fail(locked) : recorder.runs(query);
          }),
      };
      const looks = (ms: number) =>
        Effect.map(TestClock.adjust(ms), () =>
          asked
            .splice(0)
            .map((it) => (it === "orphans" ? "o" : "p"))
            .join(""),
        );
      yield* Layer.build(CrashRecovery.layer({ intervalMs: 10, parkedMs: 35 })).pipe(
        Effect.provideService(RunRecorder, watched),
      );
      assert.strictEqual(yield* looks(35), "opp" + "o" + "o" + "o");
      fails = true;
      assert.strictEqual(yield* looks(10), "op");
      fails = false;
      assert.strictEqual(yield* looks(10), "opp", "a look that failed is made up for");
      assert.strictEqual(yield* looks(30), "ooo");
    }).pipe(Effect.provide(memory())),
  );

  it.effect("survives a store that fails, and counts it", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* orphan(recorder, L.lifeOf("nothing was shown"));
      const locked = new RecorderError({ reason: "locked", run_id: "", message: "locked" });
      let broken = 2;
      const failing: Recorder = {
        ...recorder,
        orphans: (limit) => Effect.suspend(() => (broken-- > 0 ? Effect.fail(locked) : recorder.orphans(limit))),
      };
      const before = (yield* Metric.value(CrashRecovery.sweepFailures)).count;
      yield* Layer.build(CrashRecovery.layer({ intervalMs: 10 })).pipe(Effect.provideService(RunRecorder, failing));
      yield* TestClock.adjust(15);
      assert.strictEqual((yield* known(recorder)).state, "live");
      yield* TestClock.adjust(10);
      assert.strictEqual((yield* known(recorder)).parked, "recovered");
      assert.strictEqual((yield* Metric.value(CrashRecovery.sweepFailures)).count, before + 2);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("logs that the store is away, once a minute without a stack, and that it is back", () =>
    Effect.gen(function* () {
      const { log, said } = heard();
      const recorder = yield* RunRecorder;
      const away = new RecorderError({ reason: "unavailable", run_id: "", message: "runs cannot be reached" });
      let isAway = true;
      const failing: Recorder = {
        ...recorder,
        orphans: (limit) => Effect.suspend(() => (isAway ? Effect.fail(away) : recorder.orphans(limit))),
      };
      yield* Layer.build(CrashRecovery.layer({ intervalMs: 1_000 })).pipe(
        Effect.provideService(RunRecorder, failing),
        Effect.provide(log),
      );
      yield* TestClock.adjust("90 seconds");
      isAway = false;
      yield* TestClock.adjust("90 seconds");
      assert.deepStrictEqual(said, [
        "WARN cannot look for orphaned runs; every sweep retries: runs cannot be reached",
        "WARN cannot look for orphaned runs; every sweep retries: runs cannot be reached away_ms=60000 failures=61",
        "INFO looking for orphaned runs again away_ms=91000 failures=91",
      ]);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("logs once where a recorder died", () =>
    Effect.gen(function* () {
      const { log, said } = heard();
      const recorder = yield* RunRecorder;
      const onSwept = () => Effect.die(new Error("thrown"));
      yield* orphan(recorder, L.lifeOf("nothing was shown"));
      yield* Layer.build(CrashRecovery.layer({ intervalMs: 1_000, onSwept })).pipe(Effect.provide(log));
      yield* TestClock.adjust("1 millis");
      assert.match(said[0] ?? "", /^ERROR a sweep for orphaned runs failed with a defect cause="Error: thrown/);
    }).pipe(Effect.provide(memory())),
  );

  it.effect("ends with its scope", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* Effect.scoped(Layer.build(CrashRecovery.layer({ intervalMs: 10 })));
      yield* orphan(recorder, L.lifeOf("nothing was shown"));
      yield* TestClock.adjust(100);
      assert.strictEqual((yield* known(recorder)).state, "live");
    }).pipe(Effect.provide(memory())),
  );
});

it("a run with fewer options is never decided more loosely: an unknown policy retries nothing automatically", () => {
  const input = {
    facts: L.facts(),
    failure: L.reset,
    run: freshRun,
    budget: L.incident(1, L.facts()).budget,
    jitter: 0.5,
  };
  const facts = [L.facts(), L.facts({ delivery: "not_sent" }), L.facts(L.text), L.dispatched, L.settled];
  const failures = [
    L.reset,
    { kind: "rate_limited" },
    { kind: "crashed" },
    { kind: "rejected", reason: "auth" },
  ] as const;
  for (const its of facts) {
    for (const failure of failures) {
      const run = { ...freshRun, can_refresh_credentials: true };
      const decision = CrashRecovery.policyNamed("strict+ask", [])?.decide({ ...input, facts: its, failure, run });
      assert.notStrictEqual(decision?.action, "auto_retry_once");
    }
  }
});
