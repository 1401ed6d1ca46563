import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CrashPlan from "../../../src/runtime/crash/CrashPlan.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import * as L from "./Lives.ts";

/** The record of a life after each of some recoveries. */
const behind = (life: L.Life, recoveries: ReadonlyArray<CrashRecovery.RecoverOptions>) =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    yield* TestClock.setTime(1_000);
    for (const entries of life) yield* recorder.write(L.runId, entries);
    yield* recorder.release(L.runId);
    for (const options of recoveries) {
      yield* CrashRecovery.recover(options);
      yield* TestClock.adjust("365 days");
    }
    const record = yield* recorder.run(L.runId);
    return record ?? assert.fail("the run is lost");
  }).pipe(Effect.provide(RunRecorder.layerMemory()));

/** Returns true if no program may continue it before a person has answered. */
const waitsForAPerson = (record: RunRecord): boolean =>
  record.state === "ended" ||
  (record.parked === "question" &&
    record.questions.at(-1)?.answer === undefined &&
    !CrashPlan.canContinueUnasked(record));

/** Removes values that are random each time. */
const undrawn = ({ incidents, ...rest }: RunRecord) => ({
  ...rest,
  incidents: incidents.map((it) => ({ ...it, jitter: 0 })),
});

const restored = { restored: true };

const shown = L.facts(L.text);
const broken = L.incident(1, shown);
const lives: Readonly<Record<string, L.Life>> = {
  ...L.lives,
  "a question expires later with the default retry": [
    [L.begun(), L.attempt(1)],
    [L.raised(1, shown), L.opened(broken), L.asked(broken, { expires_at: 5_000, default_choice: "retry" })],
  ],
};

describe("an open run in a restored store", () => {
  for (const [name, life] of Object.entries(lives)) {
    it.effect(`is not continued by an earlier answer: ${name}`, () =>
      Effect.gen(function* () {
        const first = yield* behind(life, [restored]);
        assert.isTrue(waitsForAPerson(first), JSON.stringify(first, null, 1));
        // The operator has forgotten the flag, and a sweep came first.
        assert.isTrue(waitsForAPerson(yield* behind(life, [{}, restored])));
        // Nothing is asked twice, and no later sweep accepts a question's default as an answer.
        assert.deepStrictEqual(undrawn(yield* behind(life, [restored, restored, {}])), undrawn(first));
      }),
    );
  }

  it.effect("raises a question if it would have continued by itself, or by an earlier answer", () =>
    Effect.gen(function* () {
      for (const name of [
        "nothing was shown",
        "a retry was decided",
        "its question was answered: retry",
        "it was parked and answered: retry",
        "a question had expired with the default retry",
        "a question expires later with the default retry",
      ]) {
        const before = yield* behind(lives[name] ?? [], [{}]);
        assert.isFalse(waitsForAPerson(before), name);
        const { incidents, questions, state } = yield* behind(lives[name] ?? [], [restored]);
        assert.strictEqual(state, "asking", name);
        assert.strictEqual(incidents.at(-1)?.policy, "strict+ask", name);
        assert.isTrue(questions.at(-1)?.choices.includes("stop"), name);
        assert.isUndefined(questions.at(-1)?.expires_at, name);
      }
    }),
  );
});
