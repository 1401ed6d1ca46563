/**
 * Reads the words of every failure at every point of an attempt: none claims something that did not happen.
 */
import { assert, describe, it } from "@effect/vitest";
import { type AttemptFacts, Delivery, Progress, Shown } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import type { RunIncident } from "../../src/domain/RunIncident.ts";
import { describeChoice, failureWord, stopWords } from "../../src/story/FailureWords.ts";
import { runStory } from "../../src/story/RunStory.ts";
import * as Runs from "../gateway/page/PageRuns.ts";
import * as E from "../recorder/Entries.ts";

const failures: ReadonlyArray<Failure> = [
  { kind: "transport", operation: "connect", code: "ECONNREFUSED" },
  { kind: "transport", operation: "write", code: "EPIPE" },
  { kind: "transport", operation: "body", code: "ECONNRESET" },
  { kind: "transport" },
  { kind: "truncated" },
  ...(["connect", "first_progress", "idle", "silence", "attempt", "run"] as const).map(
    (clock): Failure => ({ kind: "stalled", clock }),
  ),
  { kind: "rate_limited", status: 429 },
  { kind: "overloaded", status: 529 },
  { kind: "server_error", status: 500 },
  ...(["auth", "quota", "context_overflow", "content_policy", "not_found"] as const).map(
    (reason): Failure => ({ kind: "rejected", reason, status: 400 }),
  ),
  { kind: "protocol", reason: "damaged_frame" },
  { kind: "protocol", reason: "oversize" },
  { kind: "invalid_tool_input" },
  { kind: "empty" },
  ...(["user", "lifecycle", "caller", "provider"] as const).map((by): Failure => ({ kind: "cancelled", by })),
  { kind: "caller_failed" },
  { kind: "crashed" },
  { kind: "unknown" },
];

/** Consistent facts: an unsent request has no response, and content that has not arrived was not shown. */
const points: ReadonlyArray<AttemptFacts> = Delivery.literals.flatMap((delivery) =>
  Progress.literals.flatMap((progress) =>
    Shown.literals.flatMap((shown) => {
      const fits =
        (delivery === "accepted" || progress === "none") &&
        (shown === "nothing" || progress === "output" || (progress === "reasoning" && shown === "reasoning"));
      return fits ? [Runs.facts({ delivery, progress, shown })] : [];
    }),
  ),
);

const incidents = (runId = "run_a"): ReadonlyArray<RunIncident> =>
  failures.flatMap((failure) =>
    points.map((facts) => Runs.broken(runId, 1, 10, { provider: Runs.gpt, facts, failure })),
  );

const wordsOf = (incident: RunIncident): string => {
  const { title, word } = failureWord(incident);
  return `${title}. ${word}. ${incident.message}`;
};

const isRefusedOrOurs = new Set(["rejected", "rate_limited", "overloaded", "cancelled", "caller_failed", "empty"]);

describe("the words of a failure", () => {
  it("are never empty, and short enough for a chip", () => {
    for (const incident of incidents()) {
      const { title, word } = failureWord(incident);
      assert.match(title, /^[A-Z][a-z ]+$/);
      assert.isTrue(word.length > 3 && word.length < 16, word);
    }
  });

  it("say that nothing broke or was lost if nothing was sent", () => {
    const unsent = incidents().filter(
      ({ facts, failure }) => facts.delivery === "not_sent" && failure.kind === "transport",
    );
    assert.isAbove(unsent.length, 2);
    for (const it of unsent) {
      assert.include(wordsOf(it), "It did not reach the provider");
      assert.include(wordsOf(it), "could not be established");
      assert.notMatch(wordsOf(it), /broke|was lost|middle/);
    }
  });

  it("do not mention the middle of an answer that had not begun", () => {
    for (const it of incidents().filter(({ facts }) => facts.progress === "none")) {
      assert.notMatch(
        `${failureWord(it).title} ${it.message.split(";")[0]}`,
        /middle|ended early, |It ended early/,
        it.failure.kind,
      );
    }
  });

  it("call a refusal no break, and a cancel nothing bad", () => {
    for (const it of incidents().filter(({ failure }) => isRefusedOrOurs.has(failure.kind))) {
      assert.notMatch(wordsOf(it), /\bbroke\b|connection/);
      if (it.failure.kind === "cancelled" && it.failure.by !== "provider") {
        assert.strictEqual(failureWord(it).tone, "quiet");
      }
    }
  });

  it("say of a gateway's run, and of no other, that its client left", () => {
    const titles = (runId: string) =>
      incidents(runId)
        .filter(({ failure }) => failure.kind === "cancelled" && failure.by === "user")
        .map((it) => failureWord(it).title);
    assert.deepStrictEqual(new Set(titles("gw_a")), new Set(["Its client left"]));
    assert.deepStrictEqual(new Set(titles("run_a")), new Set(["It was cancelled"]));
  });
});

describe("a choice", () => {
  it("withdraws shown parts, if there are any", () => {
    for (const it of incidents()) {
      assert.strictEqual(describeChoice("retry", it).includes("withdrawn"), it.facts.shown !== "nothing");
    }
    assert.include(describeChoice("retry", undefined), "withdrawn");
  });

  it("continues after text that was shown last, and says if that has to be proven", () => {
    for (const it of incidents()) {
      const does = describeChoice("continue", it);
      assert.strictEqual(does.includes("after the shown text"), it.facts.shown === "text");
      const joined = describeChoice("continue", { ...it, run: { ...it.run, continue_text: "auto" } });
      assert.strictEqual(joined.includes("proven"), it.facts.shown === "text");
    }
    assert.include(describeChoice("continue", undefined), "settled");
  });
});

describe("the end of a run", () => {
  const stoppedBy = (
    reason: string,
    incident?: RunIncident,
    more: ReadonlyArray<Parameters<typeof E.folded>[0][number]> = [],
  ) =>
    E.folded([
      Runs.begun("run_a", Runs.gpt, 0),
      Runs.attempted(1, Runs.facts(), 0),
      ...(incident === undefined ? [] : [{ _tag: "IncidentOpened", incident } as const]),
      ...more,
      {
        _tag: "RunEnded",
        end: {
          state: "stopped",
          reason,
          attempts: 1,
          at: 20,
          ...(incident === undefined ? {} : { incident: incident.id }),
        },
      },
    ]);

  it("has words for every reason without a rule", () => {
    const reasons = [
      "accepted_partial",
      "record_failed",
      "consumer_finished",
      "not_started",
      "not_resumable",
      "client_gone",
    ];
    for (const reason of [...reasons, "taken_over", "defect"]) {
      assert.include(runStory(stoppedBy(reason), 20).end, `Stopped by ${reason} after one attempt and 20 ms: `);
    }
  });

  it("names the person who answered, says that no one did, or gives the basis of the decision", () => {
    const asks = Runs.broken("run_a", 1, 10, {
      provider: Runs.gpt,
      facts: Runs.facts({ shown: "text", text_through: 1 }),
    });
    const question = E.questionOf(asks);
    const answered = (by: "person" | "expiry") =>
      stoppedBy(asks.decision.rule, asks, [question, { _tag: "QuestionAnswered", revision: 1, answer: "stop", by }]);
    const why = (record: ReturnType<typeof stoppedBy>) => record.end && stopWords(record, record.end);
    assert.strictEqual(why(answered("person")), "a person answered “Stop”");
    assert.strictEqual(why(answered("expiry")), "its question expired unanswered, and its default “Stop” applied");
    assert.strictEqual(why(stoppedBy(asks.decision.rule, asks)), "it needed an answer, and there was no one to ask");
    const noted = { attempt: 1, at_ms: 10, event: "answer", detail: "no_choice_matters" } as const;
    const unasked = stoppedBy(asks.decision.rule, asks);
    const evidence = { ...unasked.evidence, last: [...unasked.evidence.last, noted] };
    assert.strictEqual(
      why({ ...unasked, evidence }),
      "no answer could have changed what its client received, so we asked no question",
    );
    const failure: Failure = { kind: "rejected", reason: "quota", status: 429 };
    const refused = Runs.broken("run_a", 1, 10, {
      provider: Runs.gpt,
      facts: Runs.facts({ progress: "none" }),
      failure,
    });
    assert.strictEqual(why(stoppedBy(refused.decision.rule, refused)), "the same request would fail again");
    assert.isUndefined(runStory(E.folded(Runs.calm("run_a", 0)), 20).why);
  });

  it("is shown with every failure that a rule stops, and names the failure's code", () => {
    for (const it of incidents().filter(({ decision }) => decision.action === "do_not_retry")) {
      const story = runStory(stoppedBy(it.decision.rule, it), 20);
      assert.isTrue((story.why ?? "").length > 10, it.message);
      assert.notMatch(story.why ?? "", /^[A-Z]|\.$/);
    }
    const [refused] = incidents();
    assert.strictEqual(
      refused && runStory(stoppedBy("not_sent", refused), 20).incidents[0]?.failure,
      "transport · connect · ECONNREFUSED",
    );
  });
});
