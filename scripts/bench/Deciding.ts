/**
 * Measures `RecoveryPolicy.decide` over a mix of failures and facts.
 */
import { Result } from "effect";
import * as DecisionInput from "../../src/policy/DecisionInput.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { median } from "./Median.ts";

/** The size of a measurement in one process. */
export interface DecidingSize {
  /** Number of times that the whole mix is decided in one round. */
  readonly times: number;
  readonly rounds: number;
}

/** CPU time of one decision, in microseconds: the mean over the mix, and the slowest input. */
export interface Deciding {
  readonly inputs: number;
  readonly mean_us: number;
  readonly slowest_us: number;
}

const warmUpRounds = 2;

/** Decides the mix in rounds, then each input separately. */
export const measure = ({ rounds, times }: DecidingSize): Deciding => {
  const mix = inputs();
  const all = (): number => cpuUs(times, mix) / mix.length;
  const means = Array.from({ length: rounds + warmUpRounds }, all).slice(warmUpRounds);
  const single = mix.map((input) => median(Array.from({ length: rounds }, () => cpuUs(times, [input]))));
  return { inputs: mix.length, mean_us: median(means), slowest_us: Math.max(...single) };
};

/** CPU time of one pass, in microseconds. */
const cpuUs = (times: number, mix: ReadonlyArray<DecisionInput.DecisionInput>): number => {
  let retried = 0;
  const before = process.cpuUsage();
  for (let time = 0; time < times; time += 1) {
    for (const input of mix) if (RecoveryPolicy.decide(input).action === "auto_retry_once") retried += 1;
  }
  const { system, user } = process.cpuUsage(before);
  if (retried > times * mix.length) throw new Error("more retries than decisions");
  return (user + system) / times;
};

/** Every failure combined with every state of an attempt: nothing yet, text shown, an open call, a call that may have run. */
const inputs = (): ReadonlyArray<DecisionInput.DecisionInput> =>
  failures.flatMap((failure) =>
    facts.map((it) => Result.getOrThrowWith(DecisionInput.parse({ failure, facts: it, run }), (error) => error)),
  );

const run = { can_continue: true };

const failures = [
  { kind: "transport", code: "ECONNRESET" },
  { kind: "truncated" },
  { kind: "stalled", clock: "idle" },
  { kind: "rate_limited", status: 429, retry_after_ms: 2_000 },
  { kind: "rejected", status: 400, reason: "invalid_request" },
  { kind: "cancelled", by: "user" },
  { kind: "unknown" },
];

const tool = { call: "0.0", tool: "bash", executor: "runtime", effect: "mutating" };
const begun = { delivery: "accepted", progress: "output", shown: "text", text_through: 1 };
const guarded = {
  guarded: true,
  complete: true,
  reason: "all_classified",
  runtime: { read_only: 1, mutating: 1, unknown: 0 },
  provider: { read_only: 0, mutating: 0, unknown: 0 },
};

const facts = [
  {},
  begun,
  { ...begun, call_through: 2, tools: [{ ...tool, phase: "input_started" }], side_effects: guarded },
  {
    ...begun,
    call_through: 2,
    tools: [
      { ...tool, phase: "outcome_unknown" },
      { ...tool, call: "0.1", phase: "settled" },
    ],
    side_effects: guarded,
  },
];
