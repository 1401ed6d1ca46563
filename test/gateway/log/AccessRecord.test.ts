import { assert, describe, it } from "@effect/vitest";
import { Access, pathCharactersMax } from "../../../src/gateway/log/AccessRecord.ts";
import { RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import { seeded } from "../../Seeded.ts";

const access = (): { readonly access: Access; readonly at: (ms: number) => void } => {
  let now = 1_000;
  return {
    access: new Access(() => now),
    at: (ms) => {
      now = 1_000 + ms;
    },
  };
};

const interrupted = new RunInterrupted({
  reason: "do_not_retry",
  run_id: "gw_1",
  rule: "budget_exhausted",
  failure: { kind: "transport", code: "ECONNREFUSED" },
  attempts: 1,
  message: "It failed.",
});

const cancelled = new RunInterrupted({
  reason: "do_not_retry",
  run_id: "gw_1",
  rule: "user_cancelled",
  failure: { kind: "cancelled", by: "user" },
  attempts: 1,
  message: "It was cancelled.",
});

describe("the record of a request", () => {
  it("counts how often shown text went on, and says nothing of it where it never did", () => {
    const { access: it } = access();
    assert.isUndefined(it.record.seams);
    for (const attempt of [2, 3]) it.recordEvent({ _tag: "Continued", attempt, at: 7, proof: "anchor" }, "gw_1");
    assert.strictEqual(it.record.seams, 2);
  });

  it("contains the upstream, the outcome and the duration of a request", () => {
    const { access: it, at } = access();
    it.recordRequest("POST", "/v1/chat/completions?key=secret");
    it.addFacts({ upstream: "openai", client: "codex", token: undefined });
    it.recordEvent({ _tag: "AttemptStarted", run_id: "gw_1", attempt: 1, mode: "first" }, "gw_1");
    it.recordEvent(
      { _tag: "RetryScheduled", attempt: 1, mode: "replay", rule: "clean_replay", delay_ms: 1, message: "" } as never,
      "gw_1",
    );
    it.recordEvent({ _tag: "AttemptStarted", run_id: "gw_1", attempt: 2, mode: "replay" }, "gw_1");
    at(20);
    it.recordHead(200);
    at(50);
    it.recordWrite(3);
    it.recordWrite(4);
    it.recordEnd("whole");
    at(70);
    assert.deepStrictEqual<unknown>(it.record, {
      method: "POST",
      path: "/v1/chat/completions",
      status: 200,
      outcome: "completed",
      upstream: "openai",
      client: "codex",
      run_id: "gw_1",
      attempts: 2,
      rule: "clean_replay",
      bytes: 7,
      head_ms: 20,
      first_ms: 50,
      ms: 70,
    });
  });

  it("names an outcome for each end", () => {
    const outcomeOf = (...plays: ReadonlyArray<(it: Access) => void>) => {
      const { access: it } = access();
      for (const play of plays) play(it);
      return it.record.outcome;
    };
    const ended = (how: "whole" | "left" | "broken") => (it: Access) => it.recordEnd(how);
    const refused = (reason: string) => (it: Access) => it.addFacts({ refused: reason });
    const gaveUp = (it: Access) => it.recordEvent(interrupted, "gw_1");
    const recalled = (it: Access) => it.addFacts({ memory_ms: 3 });
    assert.strictEqual(outcomeOf(ended("whole")), "completed");
    assert.strictEqual(outcomeOf(ended("broken")), "failed");
    assert.strictEqual(outcomeOf(), "failed");
    assert.strictEqual(outcomeOf(ended("left")), "cancelled");
    assert.strictEqual(outcomeOf(gaveUp), "given_up");
    assert.strictEqual(outcomeOf(gaveUp, refused("upstream_failed"), ended("whole")), "given_up");
    assert.strictEqual(outcomeOf(refused("token"), ended("whole")), "refused");
    assert.strictEqual(outcomeOf(refused("upstream_failed"), ended("whole")), "failed");
    assert.strictEqual(outcomeOf(refused("given_up"), recalled, ended("whole")), "from_memory");
    // A person ends the run, or its client does by leaving: both are told to the run as its user's cancel.
    const userCancelled = (it: Access) => it.recordEvent(cancelled, "gw_1");
    assert.strictEqual(outcomeOf(userCancelled, ended("broken")), "run_cancelled");
    assert.strictEqual(outcomeOf(userCancelled, refused("upstream_failed"), ended("whole")), "run_cancelled");
    const attached = (it: Access) => it.addFacts({ attached_at: 3 });
    assert.strictEqual(outcomeOf(attached, userCancelled, ended("broken")), "run_cancelled");
    // The worker that has the run tells another one, at which the client is, no more than the rule.
    assert.strictEqual(
      outcomeOf((it) => it.addFacts({ rule: "user_cancelled" }), ended("broken")),
      "run_cancelled",
    );
    assert.strictEqual(outcomeOf(ended("left"), userCancelled, ended("broken")), "cancelled");
    // The run notices later than the socket that its client has gone.
    assert.strictEqual(outcomeOf(ended("left"), gaveUp, ended("broken")), "cancelled");
  });

  it("has the code of what failed", () => {
    const { access: it } = access();
    it.recordEvent(interrupted, "gw_1");
    assert.deepInclude(it.record, { rule: "budget_exhausted", failure: "transport", code: "ECONNREFUSED" });
  });

  it("has no query, no token and no key in its path, which is bounded", () => {
    const pathOf = (target: string) => {
      const { access: it } = access();
      it.recordRequest("GET", target);
      return it.record.path;
    };
    assert.strictEqual(pathOf("/t/SECRET/v1/models?key=1#x"), "/t/…/v1/models");
    for (const spelling of [
      "/t/SECRET",
      "/t/SECRET?x",
      "//t/SECRET",
      "/t//SECRET",
      "/T/SECRET",
      "/%74/SECRET",
      "/%2574/SECRET/v1",
    ]) {
      assert.notInclude(pathOf(spelling), "SECRET");
    }
    for (const spelling of [
      "/live/t/SECRET",
      "/t%2fSECRET/v1",
      "/t;x/SECRET",
      "/./t/SECRET",
      "/t\\SECRET",
      "/t/%53ECRET",
    ])
      assert.notMatch(pathOf(spelling), /ECRET/);
    assert.strictEqual(pathOf("/sk-ant-REDACTED/v1/models"), "/…/v1/models");
    assert.strictEqual(pathOf("/v1/AIzaSyA0123456789abcdefghij"), "/v1/…");
    assert.strictEqual(pathOf("http://user:password@elsewhere/v1"), "");
    assert.strictEqual(pathOf("/?x"), "/");
    assert.lengthOf(pathOf(`/${"x".repeat(1_000)}`), pathCharactersMax);
    const random = seeded(11);
    for (let round = 0; round < 500; round += 1) {
      const path = Array.from({ length: 300 }, () => String.fromCharCode(33 + Math.floor(random() * 94))).join("");
      assert.isAtMost(pathOf(`/${path}`).length, pathCharactersMax);
      assert.notInclude(pathOf(`/v1/x?${path.slice(0, 20)}SECRET`), "SECRET");
      assert.notInclude(pathOf(`/t/SECRET/${path.slice(0, 20)}`), "SECRET");
    }
  });
});
