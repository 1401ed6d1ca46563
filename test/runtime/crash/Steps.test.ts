/**
 * A process dies between each pair of steps of a run, one by one, and the next one continues from the record.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer } from "effect";
import { isAtMost, Shown } from "../../../src/domain/AttemptFacts.ts";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as S from "../Scripted.ts";
import { type Crash, type Lived, live, onScreen, type Scenario } from "./Crashes.ts";

const toolThenCut = [S.start, S.callReady("bash"), S.wait(10), S.reset];
const textThenCut = [S.start, S.text("a"), S.wait(10), S.reset];

const scenarios: Readonly<Record<string, Scenario>> = {
  "nothing shown, replayed": {
    scripts: [
      [S.start, S.reset],
      [S.start, S.text("b"), S.done],
    ],
  },
  "text shown, a question, retried": { scripts: [textThenCut, [S.start, S.text("b"), S.done]], answer: () => "retry" },
  "text shown, a question, stopped": { scripts: [textThenCut] },
  "text shown, a question, accepted": { scripts: [textThenCut], answer: () => "accept" },
  "a tool ran, continued": {
    scripts: [toolThenCut, [S.start, S.text("b"), S.done]],
    more: { canContinue: true },
  },
  "a tool ran, a question, stopped": { scripts: [toolThenCut] },
  "text, a tool, text, whole": {
    scripts: [[S.start, S.text("a"), S.callReady("bash"), S.wait(10), S.text("b"), S.done]],
  },
  "a tool that can say that it ran": {
    scripts: [toolThenCut, [S.start, S.text("b"), S.done]],
    more: { canContinue: true },
    verify: () => Effect.succeed("it_ran"),
  },
};

const lived = (scenario: Scenario, crash: Crash) =>
  live(scenario, crash).pipe(Effect.provide(Layer.fresh(RunRecorder.layerMemory())));

describe("A process that dies between any two steps loses nothing and repeats nothing", () => {
  for (const [name, scenario] of Object.entries(scenarios)) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const whole = yield* lived(scenario, { at: Number.POSITIVE_INFINITY, side: "before" });
        assert.isAbove(whole.writes, 1);
        for (let at = 1; at <= whole.writes; at++) {
          for (const side of ["before", "after"] as const) {
            const it = yield* lived(scenario, { at, side });
            const where = `${name}, ${side} write ${at} of ${whole.writes}`;
            assert.isTrue(it.died, where);
            holds(it, scenario, where);
          }
        }
      }),
    );
  }
});

const holds = (it: Lived, scenario: Scenario, where: string): void => {
  const { record, world } = it;
  assert.isAtMost(world.started, 1, `${where}: the tool ran twice`);
  const shown = onScreen(world);
  assert.deepStrictEqual([...new Set(shown)], shown, `${where}: shown twice`);
  // It died before its first write: nothing was shown, and nothing is known.
  if (it.left === undefined) {
    assert.deepStrictEqual([shown, world.started], [[], 0], where);
    return;
  }
  assert.strictEqual(record.state, "ended", `${where}: neither an end nor a question: ${JSON.stringify(it.exit)}`);
  for (const incident of record.incidents) {
    assert.deepStrictEqual(RecoveryPolicy.decide(incident), incident.decision, `${where}: ${incident.id} (L9)`);
  }
  const revisions = record.questions.map(({ revision }) => revision);
  assert.deepStrictEqual([...new Set(revisions)], revisions, where);
  assert.strictEqual(record.incidents.filter(({ status }) => status === "open").length, 0, where);
  weaker(it, where);
  if (scenario.verify !== undefined && world.started === 1) {
    assert.notInclude(it.asked, "tool_outcome_unknown", `${where}: asked although the tool could say`);
  }
};

/** Checks that the recorded facts are never weaker than what the caller was shown. */
const weaker = ({ left, world }: Lived, where: string): void => {
  if (left === undefined) return;
  for (const { attempt, name } of world.screen) {
    const facts = left.attempts.find((it) => it.attempt === attempt)?.facts;
    if (facts === undefined || name === "start" || name === "done") continue;
    if (name.startsWith("bash:")) assert.isAbove(facts.tools.length, 0, `${where}: ${name} is not on record`);
    else assert.isTrue(isAtMost(Shown, "text", facts.shown), `${where}: ${name} was shown and is not on record`);
  }
};
