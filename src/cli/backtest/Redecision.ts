/** Decides a stored incident again: by its own policy, which must reproduce the stored decision (law L9), and by another policy. */
import { isDeepStrictEqual } from "node:util";
import type { Decision } from "../../domain/Decision.ts";
import type { Budget } from "../../domain/RunFacts.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import { ofIncident } from "../../policy/DecisionInput.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import { policyNamed } from "../../runtime/crash/CrashRecovery.ts";

/**
 * Result of deciding an incident again by its stored policy. `same`: the stored decision. `other_version`: a different decision
 * by a different version of the rules. `violation`: a different decision by the same version. `unknown_policy`: the policy is the
 * caller's own and is not available here.
 */
export type Check =
  | { readonly _tag: "same" | "unknown_policy" }
  | { readonly _tag: "violation" | "other_version"; readonly again: Decision };

/** Decides an incident again by its own policy, and compares the result with the stored decision. */
export const check = (incident: RunIncident): Check => {
  const policy = policyNamed(incident.policy, []);
  if (policy === undefined) return { _tag: "unknown_policy" };
  const again = policy.decide(ofIncident(incident));
  if (isDeepStrictEqual(withoutVersion(again), withoutVersion(incident.decision))) return { _tag: "same" };
  return { _tag: again.policy_version === incident.decision.policy_version ? "violation" : "other_version", again };
};

/** Removes the version, because a new version number alone does not change a decision. */
const withoutVersion = ({ policy_version: _, ...decision }: Decision): object => decision;

/**
 * Decides an incident by another policy or budget.
 *
 * @param limits limits that replace those of the incident's budget
 */
export const decideBy = (incident: RunIncident, policy: RecoveryPolicy, limits: Partial<Budget>): Decision =>
  policy.decide({ ...incident, budget: { ...incident.budget, ...limits } });

/** Every consequence that a different decision could have had for an incident. */
export const consequences = [
  "tool_may_repeat",
  "text_twice",
  "question_saved",
  "question_added",
  "recovery_added",
  "recovery_lost",
] as const;

/** A consequence that a different decision could have had. */
export type Consequence = (typeof consequences)[number];

/** Compares action, rule and mode. Waits and reasons may differ. */
export const isSameDecision = (a: Decision, b: Decision): boolean =>
  a.action === b.action && a.rule === b.rule && a.mode === b.mode;

/** Lists the consequences that a new decision could have had; empty if it matches the stored one. */
export const consequencesOf = (incident: RunIncident, now: Decision): ReadonlyArray<Consequence> => {
  const { decision: before, facts } = incident;
  if (isSameDecision(before, now)) return [];
  const found: Array<Consequence> = [];
  // Only a replay can repeat an effect. If the stored decision was a replay too, the risk is not new.
  const replays = now.action === "auto_retry_once" && now.mode === "replay" && before.mode !== "replay";
  if (replays && facts.tools.some((row) => mayHaveRun(row, facts.side_effects?.guarded === true))) {
    found.push("tool_may_repeat");
  }
  if (replays && facts.shown === "text") found.push("text_twice");
  if (before.action === "ask_user" && now.action !== "ask_user") found.push("question_saved");
  if (before.action !== "ask_user" && now.action === "ask_user") found.push("question_added");
  if (before.action !== "auto_retry_once" && now.action === "auto_retry_once") found.push("recovery_added");
  if (before.action === "auto_retry_once" && now.action !== "auto_retry_once") found.push("recovery_lost");
  return found;
};

/** True if a call may have had an effect. Without a guard, we cannot prove that a call did not run. Read-only calls are excluded. */
const mayHaveRun = (row: RunIncident["facts"]["tools"][number], guarded: boolean): boolean =>
  row.effect !== "read_only" && (!guarded || row.executor === "provider" || ran.has(row.phase));

const ran: ReadonlySet<string> = new Set(["dispatched", "outcome_unknown", "settled"]);
