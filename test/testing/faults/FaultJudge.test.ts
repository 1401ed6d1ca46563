import { assert, describe, it } from "@effect/vitest";
import { FaultJudge, type RequestLog } from "../../../src/testing/index.ts";
import { row } from "./Requests.ts";

const broken = { terminal: false, outcome: "broken" } as const;
const call = (serial: string) => ({
  serial,
  name: "bash",
  executor: "runtime" as const,
  input: JSON.stringify({ serial, cmd: "ls", end: `${serial}·` }),
});
const input = (serial: string): unknown => JSON.parse(call(serial).input);

const judge = (transcript: string, log: ReadonlyArray<RequestLog>, more: Partial<FaultJudge.Evidence> = {}) =>
  FaultJudge.judge({ transcript, log, completed: true, ...more });

describe("FaultJudge", () => {
  it("accepts a recovered run whose first answer was withdrawn", () => {
    const verdict = judge("r2.0·r2.1·", [row(1, broken), row(2)]);
    assert.isTrue(FaultJudge.isClean(verdict), JSON.stringify(verdict));
  });

  it("accepts a continuation, whose request differs", () => {
    const verdict = judge("r1.0·r1.1·r2.0·r2.1·", [row(1, broken), row(2, { body_hash: "other" })]);
    assert.isTrue(FaultJudge.isClean(verdict), JSON.stringify(verdict));
  });

  it("finds text of a replay duplicated when the broken answer stays visible", () => {
    assert.deepStrictEqual(judge("r1.0·r2.0·r2.1·", [row(1, broken), row(2)]).duplicates, ["r1.0·"]);
  });

  it("reports a delta that appears twice", () => {
    assert.deepStrictEqual(judge("r1.0·r1.0·r1.1·", [row(1)]).duplicates, ["r1.0·"]);
  });

  it("finds a delta lost, but not in a run that was stopped", () => {
    assert.deepStrictEqual(judge("r1.0·", [row(1)]).lost, ["r1.1·"]);
    assert.deepStrictEqual(judge("r1.0·", [row(1)], { completed: false }).lost, []);
  });

  it("finds invented and misplaced deltas", () => {
    const verdict = judge("r1.1·r1.0·r9.0·", [row(1)]);
    assert.deepStrictEqual(verdict.invented, ["r9.0·"]);
    assert.deepStrictEqual(verdict.out_of_order, ["r1.0·"]);
  });

  it("finds a false success", () => {
    assert.isTrue(judge("r1.0·r1.1·", [row(1, { terminal: false, outcome: "broken" })]).false_success);
    assert.isFalse(judge("r1.0·r1.1·", [row(1, broken)], { completed: false }).false_success);
  });

  it("finds a call that ran twice, also in two answers to one request", () => {
    const twice = [row(1, { calls: [call("r1.t1")] })];
    assert.deepStrictEqual(judge("r1.0·r1.1·", twice, { tools: [input("r1.t1"), input("r1.t1")] }).repeated_tools, [
      "r1.t1",
    ]);
    const replayed = [row(1, { ...broken, calls: [call("r1.t1")] }), row(2, { calls: [call("r2.t1")] })];
    assert.deepStrictEqual(judge("r2.0·r2.1·", replayed, { tools: [input("r1.t1"), input("r2.t1")] }).repeated_tools, [
      "r2.t1",
    ]);
  });

  it("does not mind the order of an input's fields", () => {
    const tools = [{ end: "r1.t1·", cmd: "ls", serial: "r1.t1" }];
    assert.isTrue(FaultJudge.isClean(judge("r1.0·r1.1·", [row(1, { calls: [call("r1.t1")] })], { tools })));
  });

  it("finds cut inputs, as objects, as text and of a call that never came whole", () => {
    const log = [row(1, { calls: [call("r1.t1")] })];
    assert.deepStrictEqual(judge("r1.0·r1.1·", log, { tools: [{ serial: "r1.t1", cmd: "l" }] }).truncated_tool_inputs, [
      "r1.t1",
    ]);
    assert.deepStrictEqual(judge("r1.0·r1.1·", log, { tools: ['{"serial":"r1.t1","cm'] }).truncated_tool_inputs, [
      "r1.t1",
    ]);
    assert.deepStrictEqual(judge("r1.0·r1.1·", [row(1)], { tools: [{ serial: "r1.t1" }] }).truncated_tool_inputs, [
      "r1.t1",
    ]);
    assert.deepStrictEqual(judge("r1.0·r1.1·", [row(1)], { tools: [{}] }).truncated_tool_inputs, ["{}"]);
  });

  it("finds a call lost and one that was not sent", () => {
    const log = [row(1, { calls: [call("r1.t1")] })];
    assert.deepStrictEqual(judge("r1.0·r1.1·", log, { tools: [] }).lost_tools, ["r1.t1"]);
    assert.deepStrictEqual(judge("r1.0·r1.1·", log, { tools: [input("r1.t1"), input("r9.t1")] }).invented, ["r9.t1"]);
  });
});
