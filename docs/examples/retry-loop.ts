/**
 * The policy in a loop that already retries: it maps what happened to facts and a failure, and obeys the decision.
 */
import { Result } from "effect";
import { DecisionInput, decide } from "effect-stream-recovery/policy";

/** What your runtime knows about an attempt that broke. */
interface Broken {
  readonly shown: "nothing" | "reasoning" | "text";
  readonly tools: ReadonlyArray<{
    readonly name: string;
    readonly effect: "read_only" | "mutating" | "unknown"; // the worst that it can do
    readonly phase: "handed_over" | "dispatched" | "outcome_unknown" | "settled"; // given to you, started, lost, done
  }>;
  readonly retries: number; // made so far for this request
  readonly error: { readonly code?: string; readonly status?: number; readonly retryAfterMs?: number };
}

const failureOf = ({ code, retryAfterMs, status }: Broken["error"]) => {
  const wait = retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs };
  if (status === 429) return { kind: "rate_limited", ...wait };
  if (status === 529) return { kind: "overloaded", ...wait };
  if (status === 401) return { kind: "rejected", reason: "auth" };
  if (status !== undefined)
    return status >= 500 || status === 408
      ? { kind: "server_error", ...wait }
      : { kind: "rejected", reason: "invalid_request" };
  return { kind: "transport", ...(code === undefined ? {} : { code }) }; // also: stalled, truncated, cancelled { by: "user" }
};

const nextStep = (broken: Broken) => {
  const facts = {
    delivery: "accepted", // "not_sent" needs proof that no byte was written
    progress:
      broken.shown === "text" || broken.tools.length > 0
        ? "output"
        : broken.shown === "reasoning"
          ? "reasoning"
          : "none",
    shown: broken.shown,
    tools: broken.tools.map(({ effect, name, phase }, at) => ({
      call: `0.${at}`,
      tool: name,
      executor: "runtime",
      effect,
      phase,
    })),
  };
  // `parse` names the first field that is wrong. Omitted fields get their defaults.
  const input = DecisionInput.parse({ facts, failure: failureOf(broken.error), run: { auto_retries: broken.retries } });
  const { action, choices = [], delay_ms, rule } = decide(Result.getOrThrow(input));
  return { action, rule, delay_ms, choices }; // auto_retry_once: this retry now; ask_user: one of `choices`; do_not_retry
};

const reset = { code: "ECONNRESET" };
const bash = { name: "bash", effect: "unknown", phase: "outcome_unknown" } as const;
const broken: ReadonlyArray<Broken> = [
  { shown: "nothing", tools: [], retries: 0, error: reset },
  { shown: "text", tools: [], retries: 0, error: reset },
  { shown: "nothing", tools: [bash], retries: 0, error: reset },
  { shown: "nothing", tools: [], retries: 0, error: { status: 429, retryAfterMs: 20_000 } },
  { shown: "nothing", tools: [], retries: 3, error: reset },
];
for (const each of broken) console.log(JSON.stringify(nextStep(each)));
