/**
 * Protects a run from errors of its policy. A caller's own policy may retry too much, return an invalid value or throw, and none of that
 * may keep a run from its end.
 */
import * as Schema from "effect/Schema";
import { Decision } from "../../domain/Decision.ts";
import { label } from "../../domain/Limits.ts";
import type { DecisionInput } from "../../policy/DecisionInput.ts";
import * as RecoveryPolicy from "../../policy/RecoveryPolicy.ts";

const isDecision = Schema.is(Decision);

/**
 * Returns a policy that can be called for any run.
 *
 * - After a stop the policy is not called: `user_cancelled`, `lifecycle_closed` and `caller_interrupted` are final.
 * - A result that is not a decision, or a policy that throws, stops the run, because that is the safest of the three actions.
 *
 * @param policy the run's policy; the default policy if undefined
 * @param report called with the first error that the policy throws
 */
export const make = (
  policy: RecoveryPolicy.RecoveryPolicy | undefined,
  report: (error: unknown) => void,
): Pick<RecoveryPolicy.RecoveryPolicy, "name" | "decide"> => {
  if (policy === undefined || policy === RecoveryPolicy.default) return RecoveryPolicy.default;
  let reported = false;
  const version = label(String(policy.version));
  const stop = (why: string): Decision => ({
    action: "do_not_retry",
    rule: "not_retryable",
    delay_ms: 0,
    policy_version: version,
    because: [`decision=${why}`],
  });
  return {
    name: policy.name,
    decide: (input) => {
      if (isStopped(input)) return { ...RecoveryPolicy.decide(input), policy_version: version };
      try {
        const decision = policy.decide(input);
        return isDecision(decision) ? decision : stop("unreadable");
      } catch (error) {
        // Reported once per run, because the policy may be called several times for one attempt.
        if (!reported) report(error);
        reported = true;
        return stop("threw");
      }
    },
  };
};

/** Returns true if the run was stopped by its user, a close, an interrupt, or its caller's own failure or limit. */
const isStopped = ({ failure, run }: DecisionInput): boolean =>
  run.user_cancelled ||
  run.lifecycle_closed ||
  (failure.retryable !== true &&
    (failure.kind === "caller_failed" || (failure.kind === "stalled" && failure.clock === "run"))) ||
  (failure.kind === "cancelled" && failure.by !== "provider");
