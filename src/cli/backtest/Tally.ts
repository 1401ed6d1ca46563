/**
 * Adds up the results of deciding stored incidents again, in bounded memory.
 */
import type { Decision } from "../../domain/Decision.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import { type Check, type Consequence, consequences, consequencesOf, isSameDecision } from "./Redecision.ts";

/** Maximum violations kept in detail; the rest are only counted. */
const violationsMax = 100;

/** Maximum example runs per group. */
const examplesMax = 3;

/** The parts of a decision that identify it in a report. */
export type DecisionSummary = Pick<Decision, "action" | "rule" | "mode">;

/** Incidents with the same stored decision and the same new decision. */
export interface Group {
  readonly before: DecisionSummary;
  readonly now: DecisionSummary;
  readonly incidents: number;
  readonly consequences: Readonly<Record<Consequence, number>>;
  /** Ids of the first runs with such an incident, at most `examplesMax`. */
  readonly examples: ReadonlyArray<string>;
}

/** A stored decision that its own policy does not reproduce. */
export interface Violation {
  readonly run_id: string;
  readonly incident: string;
  readonly policy: string;
  readonly policy_version: string;
  readonly stored: DecisionSummary;
  readonly again: DecisionSummary;
}

/** The results of a backtest. Incidents are counted twice: by the check of the stored decision, and by the new decision. */
export interface Totals {
  readonly runs: number;
  readonly incidents: number;
  readonly same: number;
  /** Number of incidents that another version of the rules decided differently; `versions` lists the stored versions. */
  readonly other_version: number;
  readonly versions: ReadonlyArray<string>;
  /** Number of incidents whose policy is the caller's own and not available here. */
  readonly unknown_policy: number;
  readonly violations: number;
  readonly violations_named: ReadonlyArray<Violation>;
  readonly unchanged: number;
  readonly changed: number;
  readonly consequences: Readonly<Record<Consequence, number>>;
  /** Sorted by number of incidents, largest first. */
  readonly groups: ReadonlyArray<Group>;
}

const zeroCounts = (): Record<Consequence, number> =>
  // `fromEntries` widens the literal keys to `string`.
  Object.fromEntries(consequences.map((consequence) => [consequence, 0])) as Record<Consequence, number>;

interface Growing {
  readonly before: DecisionSummary;
  readonly now: DecisionSummary;
  incidents: number;
  readonly consequences: Record<Consequence, number>;
  readonly examples: Array<string>;
}

/** Adds up incidents one at a time. The number of groups is limited by the number of possible pairs of decisions. */
export class Tally {
  #runs = 0;
  #incidents = 0;
  #unchanged = 0;
  readonly #checks = { same: 0, other_version: 0, unknown_policy: 0, violation: 0 };
  readonly #violations: Array<Violation> = [];
  readonly #versions = new Set<string>();
  readonly #consequences = zeroCounts();
  readonly #groups = new Map<string, Growing>();

  countRun(): void {
    this.#runs += 1;
  }

  /** Counts an incident, given the check by its own policy and the new decision. */
  add(incident: RunIncident, checked: Check, now: Decision): void {
    const { decision, id, policy, run_id } = incident;
    this.#incidents += 1;
    this.#checks[checked._tag] += 1;
    if (checked._tag === "other_version") this.#versions.add(decision.policy_version);
    if (checked._tag === "violation" && this.#violations.length < violationsMax) {
      this.#violations.push({
        run_id,
        incident: id,
        policy,
        policy_version: decision.policy_version,
        stored: summaryOf(decision),
        again: summaryOf(checked.again),
      });
    }
    if (isSameDecision(decision, now)) this.#unchanged += 1;
    else this.#change(incident, now);
  }

  get totals(): Totals {
    const { other_version, same, unknown_policy, violation } = this.#checks;
    return {
      runs: this.#runs,
      incidents: this.#incidents,
      same,
      other_version,
      versions: [...this.#versions],
      unknown_policy,
      violations: violation,
      violations_named: this.#violations,
      unchanged: this.#unchanged,
      changed: this.#incidents - this.#unchanged,
      consequences: this.#consequences,
      groups: [...this.#groups.values()].sort((a, b) => b.incidents - a.incidents),
    };
  }

  #change(incident: RunIncident, now: Decision): void {
    const before = summaryOf(incident.decision);
    const key = [before, summaryOf(now)].flatMap(({ action, mode, rule }) => [action, rule, mode ?? ""]).join(" ");
    const group: Growing = this.#groups.get(key) ?? {
      before,
      now: summaryOf(now),
      incidents: 0,
      consequences: zeroCounts(),
      examples: [],
    };
    this.#groups.set(key, group);
    group.incidents += 1;
    if (group.examples.length < examplesMax && !group.examples.includes(incident.run_id)) {
      group.examples.push(incident.run_id);
    }
    for (const consequence of consequencesOf(incident, now)) {
      group.consequences[consequence] += 1;
      this.#consequences[consequence] += 1;
    }
  }
}

const summaryOf = ({ action, mode, rule }: Decision): DecisionSummary => ({
  action,
  rule,
  ...(mode === undefined ? {} : { mode }),
});
