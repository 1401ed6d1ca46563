/** Judges the end of a run: its error, its cancel and its budget (I9, I10, I15). */

import { isDeepStrictEqual } from "node:util";
import { Exit } from "effect";
import type { Rule } from "../../../src/domain/Decision.ts";
import { defaultBudget } from "../../../src/domain/RunFacts.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry, Trace } from "../Journal.ts";
import { ProviderBroke } from "../world/Provider.ts";
import { interruptedOf } from "./Events.ts";
import { against, type Violation } from "./Invariants.ts";

/** I9 */
export const originalError = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I9");
  const interrupted = interruptedOf(trace);
  if (interrupted === undefined || interrupted.reason === "refused") return violations;
  const { cause, failure } = interrupted;
  // If an observer breaks its type, the caller has failed, and the error that says so is ours.
  if (failure.kind === "caller_failed" && trace.scenario.world.edges.length > 0) return violations;
  const objects = trace.journal.flatMap(originals);
  const interrupts = trace.journal.some((it) => it.what === "source_ended" && it.end.how === "interrupted");
  // A durable run that cannot record a call fails its own attempt (L8).
  const isUnrecorded = trace.scenario.world.record === "first" && cause instanceof RecorderError;
  if (isUnrecorded && trace.journal.some((it) => it.what === "written" && !it.ok)) return violations;
  if (cause !== undefined) {
    const own =
      objects.includes(cause) || (interrupts && failure.kind === "cancelled") || trace.scenario.classifyThrows;
    holds(own || interrupts, () => `the cause is no object of the provider's: ${String(cause)}`);
  }
  // A run that has moved ends with the failure of its first route (I26).
  if (new Set(trace.journal.flatMap((it) => (it.what === "opened" ? [it.context.route] : []))).size > 1)
    return violations;
  // If the final failure is the one that the provider's error was classified as, that error must be the cause.
  const last = trace.journal.findLast((it) => it.what === "source_ended" && it.end.how === "failed");
  const opened = trace.journal.findLast((it) => it.what === "opened");
  if (last?.what !== "source_ended" || last.end.how !== "failed" || opened?.what !== "opened") return violations;
  const { error } = last.end;
  if (last.attempt !== opened.context.attempt || !(error instanceof ProviderBroke)) return violations;
  const script = trace.scenario.attempts[last.attempt - 1];
  // A source with a slow finalizer fails only after it, so a watchdog or a stop may come first.
  if (script?.closes !== 0 || !isDeepStrictEqual(error.failure, failure)) return violations;
  holds(cause !== undefined, () => "the provider's error is not the cause");
  return violations;
};

const originals = (entry: Entry): ReadonlyArray<unknown> => {
  if (entry.what === "emitted") return entry.parts;
  return entry.what === "source_ended" && "error" in entry.end ? [entry.end.error] : [];
};

/** I10: a rule that names a stopper requires one. */
export const whoseCancel = (trace: Pick<Trace, "journal" | "record">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I10");
  const before =
    (...kinds: ReadonlyArray<string>) =>
    (at: number) =>
      trace.journal.slice(0, at).some((it) => it.what === "outside" && kinds.includes(it.kind));
  const needs: Partial<Record<Rule, (at: number) => boolean>> = {
    user_cancelled: before("cancel", "signed_user"),
    lifecycle_closed: before("close", "signed_lifecycle", "layer_closed"),
    caller_interrupted: before("interrupt"),
  };
  for (const [at, entry] of trace.journal.entries()) {
    if (entry.what !== "writing") continue;
    for (const it of entry.entries) {
      if (it._tag !== "IncidentOpened") continue;
      const { rule } = it.incident.decision;
      holds(needs[rule]?.(at) ?? true, () => `${rule}, and it was not done`);
    }
  }
  return [...violations, ...plainInterrupts(trace)];
};

/** An unsigned interrupt never becomes a success, and an interrupted caller sees no error of ours. */
const plainInterrupts = (trace: Pick<Trace, "journal">) => {
  const { holds, violations } = against("I10");
  const outside = trace.journal.flatMap((it) => (it.what === "outside" && it.kind !== "layer_closed" ? [it.kind] : []));
  const exit = trace.journal.find((it) => it.what === "ended");
  if (exit?.what !== "ended" || Exit.isSuccess(exit.exit)) return violations;
  const interruptedOnly = exit.exit.cause.reasons.every((reason) => reason._tag === "Interrupt");
  holds(
    !interruptedOnly || outside.some((kind) => kind !== "cancel" && kind !== "close"),
    () => "the caller was interrupted without an interrupt",
  );
  return violations;
};

/** I15: counts the automatic retries carried out since the budget was last renewed. */
export const withinBudget = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I15");
  const budget = { ...defaultBudget, ...trace.scenario.options.budget, ...trace.scenario.world.outage?.budget };
  const most = trace.scenario.options.policy === "strict" ? 1 : budget.max_auto_retries + budget.max_not_processed;
  let retries = 0;
  let automatic = false;
  /** Attempts whose retry waits for the path with nothing sent, which is free. A slow consumer sees them late. */
  const free = new Set<number>();
  const note = (entry: Entry): void => {
    if (entry.what !== "writing") return;
    for (const it of entry.entries)
      if (it._tag === "IncidentOpened" && it.incident.decision.wait_for === "path")
        if (it.incident.facts.delivery === "not_sent") free.add(it.incident.attempt);
  };
  // A volatile run writes its incident after the retry.
  if (trace.scenario.world.record === "behind") for (const entry of trace.journal) note(entry);
  let route: string | undefined;
  for (const entry of trace.journal) {
    note(entry);
    if (entry.what !== "seen") continue;
    const { event } = entry;
    // Moves have their own limit: no route is tried twice (I25).
    if (event._tag === "AttemptStarted" && event.route !== route) automatic = false;
    if (event._tag === "AttemptStarted") route = event.route;
    if (event._tag === "RetryScheduled") automatic = !free.has(event.attempt);
    if (event._tag === "QuestionAsked") automatic = false;
    if (event._tag === "QuestionAnswered" && event.choice === "retry") retries = 0;
    if (event._tag === "AttemptStarted" && automatic) retries += 1;
    if (event._tag === "AttemptStarted") automatic = false;
    holds(retries <= most, () => `${retries} automatic retries of ${most}`);
  }
  return violations;
};

/** Maximum decisions about one attempt within a virtual second. */
const decisionsMax = 16;

/** I28 */
export const decisionsLead = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I28");
  const counts = new Map<string, number>();
  // If the store is away, every try offers it the same incident.
  const known = new Set<string>();
  for (const entry of trace.journal) {
    if (entry.what !== "writing") continue;
    for (const it of entry.entries) {
      if (it._tag !== "IncidentOpened" || it.incident.status === "late" || known.has(it.incident.id)) continue;
      known.add(it.incident.id);
      const key = `attempt ${it.incident.attempt} in second ${Math.floor(entry.at / 1_000)}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  for (const [key, count] of counts) holds(count <= decisionsMax, () => `${count} decisions about ${key}`);
  return violations;
};

/** I29 */
export const goesOnceAfterItsWait = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I29");
  let waited: number | undefined;
  for (const entry of trace.journal) {
    if (entry.what === "opened") waited = undefined;
    if (entry.what === "seen" && entry.event._tag === "QuestionAnswered") waited = undefined;
    if (entry.what !== "writing") continue;
    for (const it of entry.entries) {
      if (it._tag !== "IncidentOpened") continue;
      const { attempt, decision, facts } = it.incident;
      holds(
        attempt !== waited || decision.rule !== "budget_exhausted",
        () => `attempt ${attempt} waited for its path, and then its budget was spent`,
      );
      waited = decision.wait_for === "path" && facts.delivery === "not_sent" ? attempt : undefined;
    }
  }
  return violations;
};
