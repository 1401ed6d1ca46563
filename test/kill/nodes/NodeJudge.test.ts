/**
 * Shows the judge of three nodes what is right, and each thing that it must find.
 */
import { assert, describe, it } from "@effect/vitest";
import { missed, type NodeRemains, problems } from "../../../scripts/kill/nodes/NodeJudge.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import * as E from "../../recorder/Entries.ts";

const recordOf = (...entries: Parameters<typeof E.folded>[0]): RunRecord => {
  const record = E.folded([E.begun("held"), E.attempt(1), ...entries]);
  if (record === undefined) throw new Error("it was begun");
  return record;
};

const crashed = E.opened("held", 1, { failure: { kind: "crashed" } });
const saw = (attempt: number) => ({ saw: "text", attempt }) as const;
const well = { end: "Success" } as const;

/** A held run whose node was killed, and that another node asked for again. */
const good: NodeRemains = {
  run: "held",
  fault: "kill -9",
  record: recordOf(crashed, E.attempt(2, "replay"), E.ended()),
  diaries: [[], [saw(2), well], []],
  marks: ["start", "done"],
  asked: [2, 0],
  lateMs: 2_000,
  slowness: 1,
  wasIn: true,
  hasMet: true,
};

/** What tells nothing of a run under its fault. */
const nothing: Readonly<Record<string, readonly [Partial<NodeRemains>, RegExp]>> = {
  "a run that was over before its node was killed": [{ wasIn: false }, /kill -9, held: missed: .*had left its state/],
  "a signal that no process got": [{ hasMet: false }, /the fault hit nothing/],
  "a killed node's run that no other one has taken": [{ record: recordOf(E.ended()) }, /no other node took/],
  "a node that went on before its lease was over": [
    { fault: "stopped", record: recordOf(E.ended()) },
    /no other node took/,
  ],
  "connections that were not there to be reset": [
    { fault: "reset", record: recordOf(E.ended()), hasMet: false },
    /reset, held: missed: the fault hit nothing/,
  ],
};

const bad: Readonly<Record<string, readonly [Partial<NodeRemains>, RegExp]>> = {
  "a tool that ran twice": [{ marks: ["start", "done", "start"] }, /the tool ran twice/],
  "a request too many": [{ asked: [3, 0] }, /received 3 requests$/],
  "a continuation too many": [{ asked: [2, 1] }, /received 1 requests to continue/],
  "a run that is lost": [{ record: undefined }, /lost/],
  "a run without an end": [{ record: recordOf(E.attempt(2, "replay")) }, /no end: live/],
  "a run that is decided late": [{ lateMs: 7_001 }, /decided after 7001 ms/],
  "two answers on one screen": [{ diaries: [[saw(1)], [saw(2), well], []] }, /text of 2 answers/],
  "two completions": [{ diaries: [[well], [saw(2), well], []] }, /2 completions/],
  "a run that a clock took from its living node": [
    { fault: "clock ahead", record: recordOf(crashed, E.ended()) },
    /a live node lost it/,
  ],
};

describe("The judge of three nodes", () => {
  it("accepts a run that another node continued, also if withdrawn text was on the first node's screen", () => {
    assert.deepStrictEqual(problems(good), []);
    const withdrawn = [[saw(1)], [{ discard: 1, keep: 0 }, saw(2), well], []];
    assert.deepStrictEqual(problems({ ...good, diaries: withdrawn }), []);
  });

  it("accepts output that a partitioned node has shown to its own reader", () => {
    assert.deepStrictEqual(problems({ ...good, fault: "cut off", diaries: [[saw(1), well], [saw(2), well], []] }), []);
  });

  it("misses nothing of a run that another node took, nor of a question that stands on record", () => {
    assert.isUndefined(missed(good));
    assert.isUndefined(missed({ ...good, fault: "reset", record: recordOf(E.ended()) }));
    assert.isUndefined(missed({ ...good, run: "asking", record: recordOf(E.ended()) }));
    assert.isUndefined(missed({ ...good, run: "parked", record: recordOf(E.ended()) }));
  });

  for (const [name, [more, why]] of Object.entries(nothing)) {
    it(`misses ${name}`, () => assert.match(missed({ ...good, ...more }) ?? "nothing", why));
  }

  for (const [name, [more, problem]] of Object.entries(bad)) {
    it(`finds ${name}`, () => {
      const found = problems({ ...good, ...more });
      assert.lengthOf(found, 1, found.join());
      assert.match(found[0] ?? "", problem);
    });
  }
});
