/**
 * Lists the mutants of the policy of paths and routes, of tokens and of groups.
 */
import type { Mutant } from "./Mutant.ts";

const runLaws = "test/policy/RunLaws.test.ts";
const moves = "test/policy/Moves.test.ts";

/** Mutants whose proofs stand in the tests of the policy, of tokens and of groups. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a continuation moves by the table",
    breaks: "no continuation crosses (design, 14)",
    within: "moveRows",
    find: 'fits: ({ run }) => (run.mode === "continue" || run.mode === "resume" ? false : undefined),',
    replace: "fits: () => undefined,",
    proofs: [{ test: moves, named: "a continuation that its provider cuts" }],
  },
  {
    name: "a failure that is not retryable moves by any row",
    breaks: "row 7 lets a move pass, and no other failure",
    within: "moves",
    find: "if (verdict !== undefined) return verdict && (passes === true || s.resolved.retryable);",
    replace: "if (verdict !== undefined) return verdict;",
    proofs: [{ test: moves, named: "the run's own clock while the path is down" }],
  },
  {
    name: "a veto makes a question of what is not retryable",
    breaks: "a failure that is not retryable becomes no question by a route",
    within: "fromPlan",
    find: "if (vetoed !== undefined) return Decisions.make(s, settled(s, plan.tighten(rulings[vetoed])), version);",
    replace: "if (vetoed !== undefined) return Decisions.make(s, plan.tighten(rulings[vetoed]), version);",
    proofs: [{ test: moves, named: "stops where a veto forbids it" }],
  },
  {
    name: "what waits for its path is counted all the same",
    breaks: "a wait spends nothing (design, 13)",
    within: "spent",
    find: "if (moves || isWaited(s)) return false;",
    replace: "if (moves) return false;",
    proofs: [{ test: "test/policy/Cases.test.ts", named: "what waits for it costs none" }],
  },
  {
    name: "the same words before a break end no retries",
    breaks: "two identical partial responses are a deterministic failure",
    within: "staysSo",
    find: "run.same_partial ||",
    replace: "false ||",
    proofs: [{ test: "test/policy/StaysSo.test.ts", named: "behind the same words as before" }],
  },
  {
    name: "a cut call is handed over to a caller that cannot discard it",
    breaks: "a call that cannot be read never leaves the gateway",
    within: "question",
    find: "const isWithheld = !s.run.discardable && leavesIncompleteCall(s.failure);",
    replace: "const isWithheld = false;",
    proofs: [{ test: "test/policy/StaysSo.test.ts", named: "withholds it from a caller that cannot" }],
  },
  {
    name: "a server that sends a finish with every chunk is over after a pause",
    breaks: "L5",
    within: "Attempt",
    find: "if (this.#terminalAtEnd && isProgress(observation)) this.#finishRecurs = true;",
    replace: "if (this.#terminalAtEnd && isProgress(observation)) this.#finishRecurs = false;",
    proofs: [{ test: "test/field/Cases.test.ts", named: "STOP in every chunk" }],
  },
  {
    name: "a path of a word that is not known spares its run the counters",
    breaks: "L2",
    within: "readRun",
    find: "elapsed_ms: isPathKnown ? run.elapsed_ms : worstRun.elapsed_ms };",
    replace: "elapsed_ms: run.elapsed_ms };",
    proofs: [{ test: "test/policy/InputReading.test.ts", named: "L2 fails closed over path" }],
  },
  {
    name: "the tokens that the next attempt would repeat are not asked for",
    breaks: "never over budget (design, 15)",
    within: "vetoes",
    find: "(run.wasted_tokens + run.next_tokens > (budget.max_wasted_tokens ?? Number.POSITIVE_INFINITY) ||",
    replace: "(run.wasted_tokens > (budget.max_wasted_tokens ?? Number.POSITIVE_INFINITY) ||",
    proofs: [{ test: "test/policy/Cases.test.ts", named: "tokens that one more attempt would spend" }],
  },
  {
    name: "the throttle is asked of a run that waits for its path",
    breaks: "throttled (not with wait_for)",
    within: "vetoes",
    find: "!moves && waitFor(s) === undefined && s.run.throttle_wait_ms > s.budget.max_retry_after_ms,",
    replace: "!moves && s.run.throttle_wait_ms > s.budget.max_retry_after_ms,",
    proofs: [{ test: runLaws, named: "ask of the throttle nothing" }],
  },
  {
    name: "a retry of a group is not taken in the step that decides",
    breaks: "a group at its limit never gets one retry too many",
    within: "record",
    find: "if (RetryBudget.isCounted(decision, input)) run.shared.groups.take(member, run.now());",
    replace: "if (false as boolean) run.shared.groups.take(member, run.now());",
    proofs: [{ test: "test/runtime/run/Groups.test.ts", named: "never one more: all were cut" }],
  },
  {
    name: "a retry that has not gone stands against its own run",
    breaks: "no needless question",
    within: "Groups",
    find: "place === undefined ? found.retries : Math.min(place, found.retries - 1);",
    replace: "found.retries;",
    proofs: [{ test: "test/runtime/run/Groups.test.ts", named: "from the step that takes it" }],
  },
  {
    name: "a retry that waits gives its place to those behind it",
    breaks: "no needless question",
    within: "Groups",
    find: "Math.min(place, found.retries - 1)",
    replace: "found.retries - 1",
    proofs: [{ test: "test/runtime/run/Groups.test.ts", named: "leaves a retry its place" }],
  },
  {
    name: "groups of two credentials are one",
    breaks: "a group is one of a credential (design, 15)",
    within: "groupKey",
    find: 'JSON.stringify([credential ?? "", id]);',
    replace: 'JSON.stringify(["", id]);',
    proofs: [{ test: "test/runtime/run/Groups.test.ts", named: "of two credentials are two groups" }],
  },
  {
    name: "a gateway's token shares its group with other tokens",
    breaks: "a group is one of a token",
    within: "groupOf",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    find: "{ group: tenant === undefined ? group : `${tenant} ${group}` };",
    replace: "{ group };",
    proofs: [{ test: "test/gateway/proxy/Groups.test.ts", named: "stands apart for each token" }],
  },
  {
    name: "an output that was told as it began is taken for the whole",
    breaks: "never over budget (design, 15)",
    within: "ofResponse",
    find: "output: isWhole ? told : Math.max(told, read),",
    replace: "output: told > 0 ? told : read,",
    proofs: [{ test: "test/facts/Tokens.test.ts", named: "no more than a lower bound" }],
  },
  {
    name: "a request that was not processed is paid for",
    breaks: "an attempt that was not processed costs nothing",
    within: "isUnpaid",
    find: '(failure !== undefined && resolve(failure).not_processed && (progress === "none" || progress === "started"));',
    replace: "false;",
    proofs: [{ test: "test/facts/Tokens.test.ts", named: "is nothing for what was not sent" }],
  },
];
