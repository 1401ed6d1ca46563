/** Checks the table of moves: every row by cases, and the properties of a move. */
import { assert, describe, it } from "@effect/vitest";
import { fresh as freshFacts, Progress } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import type { RunFacts } from "../../src/domain/RunFacts.ts";
import { moveRows } from "../../src/policy/Moves.ts";
import { moveMarkdown, moveTable } from "../../src/policy/PolicyTable.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import * as Situation from "../../src/policy/Situation.ts";
import { auth, type Case, cut, guarded, inputOf, limited, row, sent, spoken } from "./Case.ts";

/** A case of a row, with its decision if another route is up, and without another route. */
interface MoveCase extends Omit<Case, "is"> {
  /** Number of the row in the table, from 1. */
  readonly row: number;
  /** The decision if a route is up: `next`, or the decision on the same route. */
  readonly is: "next" | Case["is"];
  /** The decision without another route. */
  readonly alone: Case["is"];
}

const up: Partial<RunFacts> = { next_route: "up" };
const own: Partial<RunFacts> = { own_route: true };
const again: Partial<RunFacts> = { route_failures: 1 };
const accepted = { delivery: "accepted" } as const;
const ended = { ...accepted, progress: "started", terminal_seen: true } as const;
const invalid: Failure = { kind: "rejected", reason: "invalid_request", status: 400 };
const absent: Failure = { kind: "rejected", reason: "not_found", status: 404 };
const quota: Failure = { kind: "rejected", reason: "quota", status: 429 };
const silent: Failure = { kind: "stalled", clock: "first_progress" };
const broken: Failure = { kind: "server_error", status: 500 };
const refusal: Failure = { kind: "refused" };
const nameless: Failure = { kind: "transport", code: "ENOTFOUND", operation: "connect" };

const cases: ReadonlyArray<MoveCase> = [
  {
    row: 1,
    name: "a continuation that its provider cuts",
    facts: accepted,
    run: { mode: "continue", path: "down" },
    is: "replay nothing_shown",
    alone: "replay nothing_shown",
  },
  {
    row: 1,
    name: "a continuation that is refused",
    facts: accepted,
    failure: quota,
    run: { mode: "continue" },
    is: "ask recovery_refused",
    alone: "ask recovery_refused",
  },
  {
    row: 1,
    name: "a resume that breaks",
    facts: accepted,
    failure: silent,
    run: { mode: "resume" },
    is: "replay nothing_shown",
    alone: "replay nothing_shown",
  },
  {
    row: 2,
    name: "a user's cancel",
    failure: { kind: "cancelled", by: "user" },
    run: { path: "down" },
    is: "stop user_cancelled",
    alone: "stop user_cancelled",
  },
  {
    row: 2,
    name: "the caller's own failure",
    failure: { kind: "caller_failed" },
    run: { path: "down", ...own },
    is: "stop not_retryable",
    alone: "stop not_retryable",
  },
  {
    row: 3,
    name: "a 400 of an own route",
    facts: accepted,
    failure: invalid,
    run: own,
    is: "next",
    alone: "stop not_retryable",
  },
  {
    row: 3,
    name: "a 401 of an own route",
    facts: accepted,
    failure: auth,
    run: own,
    is: "next",
    alone: "stop not_retryable",
  },
  {
    row: 3,
    name: "a 404 of an own route",
    facts: accepted,
    failure: absent,
    run: own,
    is: "next",
    alone: "stop not_retryable",
  },
  {
    row: 3,
    name: "a 401 of an own route whose credentials can be refreshed",
    facts: accepted,
    failure: auth,
    run: { ...own, can_refresh_credentials: true },
    is: "replay credentials_refreshed",
    alone: "replay credentials_refreshed",
  },
  {
    row: 3,
    name: "a 401 of an own route whose credentials were refreshed",
    facts: accepted,
    failure: auth,
    run: { ...own, can_refresh_credentials: true, credential_refreshes: 1 },
    is: "next",
    alone: "stop not_retryable",
  },
  { row: 4, name: "a bill that is not paid", facts: accepted, failure: quota, is: "next", alone: "stop not_retryable" },
  {
    row: 4,
    name: "a model that is not there",
    facts: accepted,
    failure: absent,
    is: "next",
    alone: "stop not_retryable",
  },
  {
    row: 4,
    name: "a model that is not permitted",
    facts: accepted,
    failure: { kind: "rejected", reason: "permission" },
    is: "next",
    alone: "stop not_retryable",
  },
  {
    row: 5,
    name: "the client's own credential",
    facts: accepted,
    failure: auth,
    run: { path: "down" },
    is: "stop not_retryable",
    alone: "stop not_retryable",
  },
  {
    row: 5,
    name: "the client's own mistake",
    facts: accepted,
    failure: invalid,
    is: "stop not_retryable",
    alone: "stop not_retryable",
  },
  {
    row: 5,
    name: "a prompt that is too long, on an own route",
    facts: accepted,
    failure: { kind: "rejected", reason: "context_overflow" },
    run: own,
    is: "stop not_retryable",
    alone: "stop not_retryable",
  },
  {
    row: 6,
    name: "a refusal that was not shown",
    facts: ended,
    failure: refusal,
    is: "next",
    alone: "stop already_complete",
  },
  {
    row: 6,
    name: "a refusal that was shown",
    facts: { ...ended, shown: "text", text_through: 1 },
    failure: refusal,
    is: "stop already_complete",
    alone: "stop already_complete",
  },
  {
    row: 6,
    name: "reasoning that was shown, and then a refusal",
    facts: { ...ended, shown: "reasoning" },
    failure: refusal,
    is: "stop already_complete",
    alone: "stop already_complete",
  },
  {
    row: 6,
    name: "an empty response",
    facts: ended,
    failure: { kind: "empty" },
    is: "next",
    alone: "replay nothing_shown",
  },
  {
    row: 6,
    name: "the model's length, not shown",
    facts: ended,
    failure: { kind: "model_length" },
    is: "next",
    alone: "stop already_complete",
  },
  {
    row: 6,
    name: "a refusal without the marker",
    facts: accepted,
    failure: refusal,
    is: "next",
    alone: "stop not_retryable",
  },
  {
    row: 7,
    name: "a name that does not resolve, of a host never reached",
    failure: nameless,
    is: "next",
    alone: "stop not_retryable",
  },
  {
    row: 7,
    name: "a wrong certificate",
    failure: { kind: "transport", code: "CERT_HAS_EXPIRED" },
    is: "next",
    alone: "stop not_retryable",
  },
  {
    row: 8,
    name: "a method that is not implemented",
    facts: accepted,
    failure: { kind: "server_error", status: 501 },
    is: "next",
    alone: "stop not_retryable",
  },
  { row: 9, name: "a path that is down", run: { path: "down" }, is: "next", alone: "replay not_sent" },
  {
    row: 9,
    name: "a path that is down behind reasoning",
    facts: { ...sent, shown: "reasoning" },
    run: { path: "down" },
    is: "next",
    alone: "replay only_reasoning_shown",
  },
  {
    row: 9,
    name: "the run's own clock while the path is down",
    facts: accepted,
    failure: { kind: "stalled", clock: "run" },
    run: { path: "down" },
    is: "stop not_retryable",
    alone: "stop not_retryable",
  },
  {
    row: 10,
    name: "a cooldown of more than 5 s",
    facts: accepted,
    failure: limited,
    run: { cooldown_ms: 5_001 },
    is: "next",
    alone: "replay not_processed",
  },
  {
    row: 10,
    name: "a Retry-After of more than 5 s",
    facts: accepted,
    failure: { ...limited, retry_after_ms: 5_001 },
    is: "next",
    alone: "replay not_processed",
  },
  {
    row: 10,
    name: "a Retry-After of an hour",
    facts: accepted,
    failure: { ...limited, retry_after_ms: 3_600_000 },
    is: "next",
    alone: "ask retry_after_too_long",
  },
  {
    row: 10,
    name: "the caller's limit of an attempt during a cooldown",
    facts: accepted,
    failure: { kind: "stalled", clock: "attempt" },
    run: { cooldown_ms: 9_000 },
    is: "stop not_retryable",
    alone: "stop not_retryable",
  },
  {
    row: 11,
    name: "a stall before progress",
    facts: { ...accepted, progress: "started" },
    failure: silent,
    is: "next",
    alone: "replay nothing_shown",
  },
  {
    row: 11,
    name: "a stall after progress",
    facts: { ...accepted, progress: "reasoning" },
    failure: { kind: "stalled", clock: "idle" },
    run: again,
    is: "replay nothing_shown",
    alone: "replay nothing_shown",
  },
  {
    row: 12,
    name: "a server error",
    facts: accepted,
    failure: broken,
    is: "replay nothing_shown",
    alone: "replay nothing_shown",
  },
  {
    row: 12,
    name: "a second server error",
    facts: accepted,
    failure: broken,
    run: again,
    is: "next",
    alone: "replay nothing_shown",
  },
  {
    row: 12,
    name: "a second overload",
    facts: accepted,
    failure: { kind: "overloaded", status: 529 },
    run: again,
    is: "next",
    alone: "replay not_processed",
  },
  {
    row: 12,
    name: "a wait of 5 s",
    facts: accepted,
    failure: { ...limited, retry_after_ms: 5_000 },
    is: "replay not_processed",
    alone: "replay not_processed",
  },
  {
    row: 12,
    name: "a second wait of 5 s",
    facts: accepted,
    failure: { ...limited, retry_after_ms: 5_000 },
    run: again,
    is: "next",
    alone: "replay not_processed",
  },
  {
    row: 13,
    name: "a reset before output",
    facts: accepted,
    is: "replay nothing_shown",
    alone: "replay nothing_shown",
  },
  {
    row: 13,
    name: "a second reset before output",
    facts: { ...accepted, progress: "reasoning" },
    run: again,
    is: "next",
    alone: "replay nothing_shown",
  },
  {
    row: 13,
    name: "a second end before output",
    facts: accepted,
    failure: { kind: "truncated" },
    run: again,
    is: "next",
    alone: "replay nothing_shown",
  },
  {
    row: 13,
    name: "a second cancel of the provider's",
    facts: accepted,
    failure: { kind: "cancelled", by: "provider" },
    run: again,
    is: "next",
    alone: "replay nothing_shown",
  },
  {
    row: 14,
    name: "a second reset in output that nobody saw",
    facts: sent,
    run: again,
    is: "replay nothing_shown",
    alone: "replay nothing_shown",
  },
  {
    row: 14,
    name: "a tool call that cannot be read, twice",
    facts: ended,
    failure: { kind: "invalid_tool_input" },
    run: again,
    is: "replay nothing_shown",
    alone: "replay nothing_shown",
  },
];

const moved = (one: Omit<Case, "is">, policy = RecoveryPolicy.default) => {
  const input = inputOf({ ...one, run: { ...one.run, ...up } });
  return { input, decision: policy.decide(input) };
};

describe("The table of moves", () => {
  for (const one of cases) {
    it(`row ${one.row}, ${one.name}: ${one.is}`, () => {
      const { decision, input } = moved(one);
      if (one.is === "next") assert.deepInclude(decision, { mode: "replay", route: "next", delay_ms: 0 });
      else assert.strictEqual(spoken(decision), one.is);
      if (one.is !== "next") assert.notStrictEqual(decision.route, "next");
      assert.strictEqual(spoken(RecoveryPolicy.decide(inputOf(one))), one.alone);
      const situation = Situation.make(input);
      const first = moveRows.findIndex((candidate) => candidate.match(situation) !== undefined);
      assert.strictEqual(first + 1, one.row, "the row that says so");
    });
  }

  it("has a case that each row decides, and two for the rows with a condition", () => {
    assert.deepStrictEqual(
      [...new Set(cases.map(({ row: number }) => number))].sort((a, b) => a - b),
      moveRows.map((_, index) => index + 1),
    );
  });

  it("is printed row by row, and is empty for the strict policy, which never moves", () => {
    assert.deepStrictEqual(
      moveTable().map(({ failure }) => failure),
      moveRows.map(({ failure }) => failure),
    );
    assert.strictEqual(moveMarkdown().split("\n").length, moveRows.length + 2);
    assert.deepStrictEqual(moveTable(RecoveryPolicy.strict), []);
    assert.strictEqual(moveMarkdown(RecoveryPolicy.strict), "");
    for (const one of cases) {
      const { decision, input } = moved(one, RecoveryPolicy.strict);
      const alone = RecoveryPolicy.strict.decide({ ...input, run: { ...input.run, next_route: "none" } });
      assert.strictEqual(spoken(decision), spoken(alone), one.name);
      assert.notStrictEqual(decision.route, "next", one.name);
    }
  });
});

describe("A move", () => {
  const down = { run: { path: "down", ...up } } as const;

  it("needs a route that is up and untried, and stays within the run's own limit of moves", () => {
    const decide = (moves: number, max_moves: number) =>
      RecoveryPolicy.decide(inputOf({ run: { ...down.run, moves }, budget: { max_moves } })).route;
    assert.deepStrictEqual([decide(0, 1), decide(1, 1), decide(1, 2), decide(0, 0)], ["next", "same", "next", "same"]);
    assert.notProperty(RecoveryPolicy.decide(inputOf({ run: { path: "down" } })), "route");
  });

  it("waits for nothing and costs no retry: exhausted counters, a throttle and a wait of the old route do not count", () => {
    const spent = { auto_retries: 3, not_processed_retries: 5, retries_after_stall: 1, throttle_wait_ms: 90_000 };
    const failures: ReadonlyArray<Failure> = [cut, silent, { ...limited, retry_after_ms: 3_600_000 }];
    for (const failure of failures) {
      const run = { ...down.run, ...spent, waited_ms: 120_000, cooldown_ms: 90_000, group_retries: 9 };
      const decision = RecoveryPolicy.decide(inputOf({ failure, run, budget: { max_group_retries: 9 } }));
      assert.deepInclude(decision, { route: "next", delay_ms: 0 });
      assert.notProperty(decision, "wait_for");
    }
  });

  it("does not exceed the time of the run, nor its tokens", () => {
    const decide = (run: Partial<RunFacts>) =>
      RecoveryPolicy.decide(inputOf({ run: { ...down.run, ...run }, budget: { max_wasted_tokens: 10 } })).rule;
    assert.strictEqual(decide({ elapsed_ms: 300_000 }), "budget_exhausted");
    assert.strictEqual(decide({ wasted_tokens: 8, next_tokens: 3 }), "token_budget");
    assert.strictEqual(decide({ wasted_tokens: 8, next_tokens: 2 }), "not_sent");
  });

  it("after a failure that is not retryable stops if a veto forbids it, without a question about another route", () => {
    const failures: ReadonlyArray<Failure> = [quota, absent, refusal, { kind: "server_error", status: 501 }];
    for (const failure of failures) {
      const facts = failure === refusal ? ended : accepted;
      for (const run of [{ elapsed_ms: 300_000 }, { wasted_tokens: 11 }]) {
        const one = { facts, failure, run: { ...up, ...run }, budget: { max_wasted_tokens: 10 } };
        const { action, rule } = RecoveryPolicy.decide(inputOf(one));
        assert.deepStrictEqual(
          [action, rule],
          ["do_not_retry", failure === refusal ? "already_complete" : "not_retryable"],
        );
      }
    }
    const careful = RecoveryPolicy.make({ stricter: RecoveryPolicy.everyRetryAsks });
    assert.strictEqual(careful.decide(inputOf({ facts: accepted, failure: quota, run: up })).rule, "not_retryable");
    assert.strictEqual(careful.decide(inputOf({ facts: accepted, run: { ...down.run } })).action, "ask_user");
  });

  it("is forbidden by everything that forbids a replay", () => {
    const forbidden: ReadonlyArray<Omit<Case, "name" | "is">> = [
      { facts: { ...sent, tools: [row("mutating", "outcome_unknown")] } },
      { facts: { ...sent, tools: [row("mutating", "dispatched")], side_effects: guarded } },
      { facts: { ...sent, tools: [row("mutating", "settled")] } },
      { facts: { ...sent, tools: [row("mutating", "handed_over")] } },
      { facts: { ...sent, shown: "text", text_through: 1 } },
      { facts: { ...accepted, side_effects: null }, failure: broken },
      { facts: accepted, failure: { kind: "unknown" } },
      { facts: { ...ended } },
      { facts: accepted, run: { user_cancelled: true } },
      { facts: accepted, run: { lifecycle_closed: true } },
    ];
    for (const one of forbidden) {
      const run = { ...one.run, ...again, ...own, path: "down" } as const;
      const alone = RecoveryPolicy.decide(inputOf({ ...one, run }));
      assert.notStrictEqual(alone.action, "auto_retry_once");
      assert.deepStrictEqual(RecoveryPolicy.decide(inputOf({ ...one, run: { ...run, ...up } })), alone);
    }
  });

  it("is neither a resume nor a continuation, which stay on their route", () => {
    const text = { ...sent, shown: "text", text_through: 1 } as const;
    const decide = (run: Partial<RunFacts>) =>
      RecoveryPolicy.decide(inputOf({ facts: text, run: { ...down.run, ...run } }));
    assert.deepInclude(decide({ resumable: true }), { mode: "resume", route: "same", wait_for: "path" });
    const goesOn = decide({ can_continue: true, continue_text: "auto" });
    assert.deepInclude(goesOn, { mode: "continue", route: "same", wait_for: "path" });
  });

  it("depends on the attempt's own progress: with more progress, no failure moves that stayed with less", () => {
    for (const { failure } of cases.filter(({ is }) => is === "next")) {
      const moves = Progress.literals.map(
        (progress) =>
          moved({ name: "", facts: { ...freshFacts, ...accepted, progress }, ...(failure && { failure }), run: again })
            .decision.route === "next",
      );
      assert.deepStrictEqual(
        moves,
        [...moves].sort((a, b) => Number(b) - Number(a)),
      );
    }
  });
});
