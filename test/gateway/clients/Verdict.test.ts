/**
 * The verdict of `npm run agents`, which names turns through the gateway that are worse or cost more than permitted.
 */
import { assert, describe, it } from "@effect/vitest";
import { gatewayOrigin } from "../../../scripts/agents/Agent.ts";
import { agents } from "../../../scripts/agents/Agents.ts";
import type { Measure } from "../../../scripts/agents/Faults.ts";
import type { Letter } from "../../../scripts/agents/Letter.ts";
import { merge, type Played } from "../../../scripts/agents/Table.ts";
import type { Way } from "../../../scripts/agents/Turn.ts";
import { findWorse } from "../../../scripts/agents/Verdict.ts";

const turn = (way: Way, letter: Letter, requests: number, more: Partial<Played> = {}): Played => ({
  ...{ agent: "codex", way, measure: "once", fault: "text cut" },
  cells: [{ letter, requests, note: "" }],
  ...more,
});

/** A turn and its direct counterpart, with the number of faults found in it. */
const cases: ReadonlyArray<readonly [string, Measure, Played, Played, number]> = [
  ["as without the gateway", "once", turn("direct", "E", 1), turn("live", "E", 1), 0],
  ["better", "once", turn("direct", "T", 1), turn("live", "E", 1), 0],
  ["an error where there was none", "once", turn("direct", "R", 2), turn("live", "E", 1), 1],
  ["text twice where there was an error", "once", turn("direct", "E", 1), turn("live", "D", 2), 1],
  ["as bad as without the gateway, and never right", "once", turn("direct", "X", 2), turn("live", "X", 2), 1],
  ["an error of what had not been shown", "once", turn("direct", "E", 1), turn("on_complete", "E", 1), 1],
  ["a reason", "always", turn("direct", "E", 30), turn("live", "E", 4), 0],
  ["no reason", "always", turn("direct", "E", 30), turn("live", "Q", 4), 1],
  ["a request too many", "always", turn("direct", "E", 30), turn("live", "E", 5), 1],
  ["no end", "always", turn("direct", "H", 30), turn("live", "H", 3), 1],
  ["a held answer that is lost", "held", turn("direct", "R", 1), turn("live", "E", 1), 1],
  ["a held answer that is shown twice", "held", turn("direct", "D", 2), turn("on_complete", "D", 1), 1],
  ["a held answer that is asked for again", "held", turn("direct", "R", 2), turn("on_complete", "R", 2), 1],
  ["a held answer", "held", turn("direct", "R", 1), turn("live", "R", 1), 0],
];

describe("the verdict on the agents' turns", () => {
  for (const [what, measure, direct, through, faults] of cases) {
    it(`${measure}: ${what}`, () => {
      const turns = [direct, through].map((it) => ({ ...it, measure }));
      assert.strictEqual(findWorse(turns, agents).length, faults);
    });
  }

  it("an agent without its own limit may cost as much as directly", () => {
    const of = (way: Way, requests: number) => turn(way, "E", requests, { agent: "cline", measure: "always" });
    assert.deepStrictEqual(findWorse([of("direct", 7), of("live", 7)], agents), []);
    assert.strictEqual(findWorse([of("direct", 7), of("live", 8)], agents).length, 1);
    // The gateway's own tries are no repeats of the agent.
    assert.deepStrictEqual(findWorse([of("direct", 1), of("live", 4)], agents), []);
    assert.strictEqual(findWorse([of("direct", 1), of("live", 5)], agents).length, 1);
  });

  it("a fault that is refused every time costs no more requests than any other fault", () => {
    const of = (requests: number) => turn("live", "E", requests, { fault: "429", measure: "always" });
    assert.deepStrictEqual(findWorse([of(4)], agents), []);
    assert.strictEqual(findWorse([of(5)], agents).length, 1);
  });

  it("a later play of a turn replaces an earlier one", () => {
    const earlier = [turn("live", "E", 1), turn("direct", "R", 2)];
    const later = [turn("live", "R", 2), turn("live", "R", 2, { measure: "always" })];
    const letters = merge(earlier, later).map((it) => `${it.way} ${it.measure} ${it.cells[0].letter}`);
    assert.deepStrictEqual(letters.sort(), ["direct once R", "live always R", "live once R"]);
  });

  it("every agent has a setup line with the gateway's address and its program", () => {
    for (const { name, program, setup } of agents) {
      assert.include(setup, gatewayOrigin, name);
      assert.match(setup, new RegExp(`(?:^|\\s)${program}(?:\\s|$)`), name);
      assert.notInclude(setup, "`", name);
    }
  });

  it("every agent has a unique name, and a tool whose call is distinguishable from another's", () => {
    assert.strictEqual(new Set(agents.map(({ name }) => name)).size, agents.length);
    for (const { shell } of agents) assert.isTrue(shell.tool !== "" && shell.parameter !== "");
  });
});
