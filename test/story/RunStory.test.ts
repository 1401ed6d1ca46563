/**
 * Tells runs of every kind and checks the story: its status, its ends, its decisions and its questions.
 */
import { assert, describe, it } from "@effect/vitest";
import { describeRepeats, openQuestionOf } from "../../src/story/Question.ts";
import { statusOf } from "../../src/story/RunStatus.ts";
import { retryWords, runStory } from "../../src/story/RunStory.ts";
import { summaryOf } from "../../src/story/RunSummary.ts";
import { requestOf } from "../../src/story/Words.ts";
import * as S from "../cli/Stored.ts";
import * as Runs from "../gateway/page/PageRuns.ts";
import { folded } from "../recorder/Entries.ts";

const { now } = Runs;

describe("the state of a run", () => {
  const kinds = {
    recovered: S.recovered("r"),
    completed: Runs.calm("r", now - 60_000),
    stopped: S.stopped("r"),
    asking: S.asking("r"),
    parked: S.offered("r"),
    interrupted: S.interrupted("r"),
    live: S.halfway("r"),
  };

  it("has one word for each kind of record", () => {
    for (const [status, entries] of Object.entries(kinds)) assert.strictEqual(statusOf(folded(entries)), status);
  });

  it("is orphaned if no process drives the run, unless it has ended or asks", () => {
    const orphans = new Set(["r"]);
    const told = Object.entries(kinds).map(([kind, entries]) => [kind, statusOf(folded(entries), orphans)]);
    assert.deepStrictEqual(
      told.filter(([, status]) => status === "orphan").map(([kind]) => kind),
      ["parked", "interrupted", "live"],
    );
  });

  it("has a stable word in the list's JSON, for programs", () => {
    const standings = Object.values(kinds).map((entries) => summaryOf(folded(entries), new Set()).standing);
    assert.deepStrictEqual(standings, ["completed", "completed", "stopped", "asking", "parked", "parked", "live"]);
  });
});

describe("the story of a run", () => {
  it("says what each attempt sent, how it ended, and the decision", () => {
    const { attempts, end, head } = runStory(folded(Runs.recovered()), now);
    assert.deepStrictEqual(
      attempts.map(({ end, sent }) => [sent, end]),
      [
        ["the first request", "broke"],
        ["the same request again", "broke"],
        ["the same request again", "completed"],
      ],
    );
    const [first] = attempts[0]?.incidents ?? [];
    assert.deepInclude(first, {
      title: "It broke",
      failure: "transport · body · ECONNRESET",
      broke: "The connection to the model provider was lost",
      next: "the same request again after 375 ms",
      became: "It was carried out, and a later attempt completed the run.",
    });
    assert.strictEqual(end, "Completed (end_turn) after 3 attempts and 32.6 s.");
    const spent = "55\u202f806 tokens, 36\u202f824 of them wasted";
    assert.deepStrictEqual(head, ["3 attempts", spent, "policy default"]);
  });

  it("names the route of an attempt and of a retry, if it is not the first one", () => {
    assert.strictEqual(requestOf({ mode: "first", request: "first" }), "the first request");
    assert.strictEqual(
      requestOf({ mode: "replay", request: "first", route: "azure" }),
      "the same request again, by the route azure",
    );
    const [attempt] = runStory(folded(Runs.recovered()), now).attempts;
    const incident = attempt?.incidents[0]?.incident;
    assert.isDefined(incident);
    if (incident === undefined) return;
    const decision = { ...incident.decision, delay_ms: 0, route: "next" as const };
    assert.strictEqual(retryWords({ ...incident, decision }), "the same request again by the next route");
  });

  it("shows that a break with an open question waits for an answer", () => {
    const record = folded(S.asking("r"));
    const [attempt] = runStory(record, now).attempts;
    assert.deepInclude(attempt, { asks: true, answers: [] });
    assert.strictEqual(attempt?.incidents[0]?.became, "It waits for an answer.");
    const open = openQuestionOf(record);
    assert.strictEqual(open?.repeats === undefined ? "" : describeRepeats(open.repeats), "bash (0.0)");
  });

  it("names the source of an answer", () => {
    const { answers } = runStory(folded(S.stopped("r")), now);
    assert.deepStrictEqual(
      answers.map(({ by, question }) => [by, question.answer]),
      [["The program", "stop"]],
    );
  });
});

describe("a question whose incident was dropped from the record", () => {
  it("offers a retry that may run anything again", () => {
    const whole = folded(Runs.asking());
    assert.deepStrictEqual(openQuestionOf(whole)?.mayRepeat, ["0.0", "0.1"]);
    const open = openQuestionOf({ ...whole, incidents: [] });
    assert.deepStrictEqual(open?.mayRepeat, ["tools of unknown effect"]);
    assert.strictEqual(open?.repeats && describeRepeats(open.repeats), "tools of unknown effect");
  });
});
