/** Compares the record with the journal: the end, the order of record and act, replay and limits (I6, I7, I8, I12, I14). */
import { isDeepStrictEqual } from "node:util";
import { Schema } from "effect";
import { Shown, ToolPhase } from "../../../src/domain/AttemptFacts.ts";
import { atMost } from "../../../src/facts/Facts.ts";
import { apply, RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { Entry, HandlerCall, Trace } from "../Journal.ts";
import { policyOf } from "../world/Policies.ts";
import { against, type Violation } from "./Invariants.ts";

/** Returns true if a durable run was stopped without its user's word and left to another process, so that it has no end yet. */
export const isLeft = ({ journal, record, scenario }: Pick<Trace, "journal" | "record" | "scenario">): boolean =>
  scenario.world.record === "first" &&
  (record?.state === "parked" || record?.state === "asking") &&
  journal.some((it) => it.what === "outside" && it.kind !== "cancel" && it.kind !== "signed_user") &&
  !journal.some((it) => it.what === "outside" && (it.kind === "cancel" || it.kind === "signed_user"));

/** I6 */
export const everyRunEnds = (trace: Trace): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I6");
  holds(trace.ended, () => "the consumer's stream has not ended");
  holds(trace.closed, () => "the processor's scope has not closed");
  const writes = trace.journal.filter((it) => it.what === "writing");
  const ends = writes.flatMap(({ entries }) => entries.filter(({ _tag }) => _tag === "RunEnded"));
  // A store that did not confirm an end is offered the same one again.
  const different = new Set(ends.map((end) => JSON.stringify(end)));
  if (isLeft(trace)) return violations;
  if (writes.length > 0) holds(different.size === 1, () => `${different.size} ends were written`);
  const lost = trace.journal.some((it) => it.what === "written" && !it.ok);
  if (!lost && writes.length > 0)
    holds(
      trace.record?.end !== undefined && trace.record.state === "ended",
      () => `the record is ${trace.record?.state}`,
    );
  return violations;
};

/** I7 and I14: folds the record as it grows, and compares each act with the record at that time. */
export const recordThenAct = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const acts = against("I7");
  const growth = against("I14");
  let record: RunRecord | undefined;
  let lost = false;
  let isStopped = false;
  const { record: kind } = trace.scenario.world;
  const started = new Set<HandlerCall>();
  for (const entry of trace.journal) {
    if (entry.what === "outside") isStopped = true;
    if (entry.what === "handler_started") started.add(entry.call);
    // It was interrupted while it waited for the fence, so it never started.
    if (entry.what === "tool_returned" && !started.has(entry.call)) continue;
    if (entry.what === "written") {
      if (!entry.ok) lost = true;
      const before = record;
      if (entry.ok) record = entry.entries.reduce(fold, record);
      for (const it of before?.attempts ?? []) {
        const after = record?.attempts.find(({ attempt }) => attempt === it.attempt);
        growth.holds(
          after === undefined || atMost(it.facts, after.facts),
          () => `facts of attempt ${it.attempt} shrank: ${JSON.stringify([it.facts, after?.facts])}`,
        );
      }
      continue;
    }
    const unasked = kind === "memory" || isStopped ? undefined : unrecordedQuestion(entry, record);
    const found = unasked ?? unrecorded(entry, record, lost, kind === "behind");
    acts.holds(found === undefined, () => `${found}, at ${entry.at} ms`);
  }
  return [...acts.violations, ...growth.violations];
};

const fold = (record: RunRecord | undefined, entry: Parameters<typeof apply>[1]): RunRecord | undefined => {
  const next = apply(record, entry);
  return typeof next === "string" ? record : next;
};

/**
 * Describes an act that is not on record. After a lost write, hand-overs continue, but attempts and dispatches never do. A volatile
 * run waits only for its guarded tools and its questions.
 */
const unrecorded = (
  entry: Entry,
  record: RunRecord | undefined,
  lost: boolean,
  isVolatile: boolean,
): string | undefined => {
  switch (entry.what) {
    case "opened":
      if (isVolatile) return undefined;
      return entry.context.attempt === 1 ? undefined : unannounced(entry.context.attempt, entry.context.mode, record);
    case "handler_started": {
      const { attempt, call, guarded, vague } = entry.call;
      if (!guarded || vague) return undefined;
      return phaseOf(record, attempt, call, "dispatched")
        ? undefined
        : `${attempt}/${call} starts and is not on record`;
    }
    case "tool_returned": {
      const { attempt, call, guarded, vague } = entry.call;
      if (!guarded || vague || lost || entry.refused !== undefined) return undefined;
      return phaseOf(record, attempt, call, "outcome_unknown")
        ? undefined
        : `${attempt}/${call} returns and is not on record`;
    }
    case "seen":
    case "got": {
      const part = entry.what === "got" ? entry.part : entry.event._tag === "Part" ? entry.event.part : undefined;
      if (part === undefined || lost || isVolatile) return undefined;
      // Held parts of a resumed attempt are handed over by the attempt that resumes it.
      const shown = (record?.attempts ?? []).filter((it) => it.attempt >= part.attempt).map(({ facts }) => facts.shown);
      if (shown.length === 0) return `a part of attempt ${part.attempt} that is not on record`;
      if (!shown.some((it) => below(Shown, part.says.shows, it)))
        return `${part.says.shows} was handed over, on record is ${shown.join()}`;
      const row = part.says.calls.find(
        (it) =>
          it.executor === "runtime" &&
          it.phase === "ready" &&
          !phaseOf(record, part.attempt, `${it.choice}.${it.ordinal}`, "handed_over"),
      );
      return row === undefined
        ? undefined
        : `call ${row.ordinal} of attempt ${part.attempt} was handed over and is not on record`;
    }
    default:
      return undefined;
  }
};

/** Describes a question that is asked before a durable store has it, so that no other process could answer it. */
const unrecordedQuestion = (entry: Entry, record: RunRecord | undefined): string | undefined => {
  if (entry.what !== "seen" || entry.event._tag !== "QuestionAsked") return undefined;
  const { revision } = entry.event.question;
  return record?.questions.some((it) => it.revision === revision) === true
    ? undefined
    : `question ${revision} is asked and is not on record`;
};

/** An attempt opens only after a recorded incident that was marked as acted on, and after its own recorded start. */
const unannounced = (attempt: number, mode: string, record: RunRecord | undefined): string | undefined => {
  const own = record?.attempts.find((it) => it.attempt === attempt);
  if (own === undefined) return `attempt ${attempt} opens and its start is not on record`;
  if (own.mode !== mode) return `attempt ${attempt} opens as ${mode}, on record is ${own.mode}`;
  const acted = record?.incidents.findLast(({ status }) => status === "acted_on");
  if (acted === undefined || acted.attempt >= attempt)
    return `attempt ${attempt} opens without an incident that was acted on`;
  if (acted.decision.action === "do_not_retry") return `attempt ${attempt} opens against ${acted.decision.rule}`;
  if (
    acted.decision.action === "ask_user" &&
    acted.answer === undefined &&
    record?.questions.at(-1)?.answer === undefined
  ) {
    return `attempt ${attempt} opens without an answer to ${acted.decision.rule}`;
  }
  return undefined;
};

const below = <A extends string>(chain: { readonly literals: ReadonlyArray<A> }, a: A, b: A): boolean =>
  chain.literals.indexOf(a) <= chain.literals.indexOf(b);

const phaseOf = (record: RunRecord | undefined, attempt: number, call: string, least: ToolPhase): boolean => {
  const rows = (record?.attempts ?? []).filter((it) => it.attempt >= attempt).flatMap((it) => it.facts.tools);
  return rows.some((it) => it.call === call && below(ToolPhase, least, it.phase));
};

/** I8 */
export const decidedAgain = (trace: Pick<Trace, "record">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I8");
  if (trace.record === undefined) return violations;
  const read = throughJson(trace.record);
  if (typeof read === "string") holds(false, () => `the record is no record: ${read}`);
  else {
    for (const { budget, decision, facts, failure, id, jitter, policy, run } of read.incidents) {
      const again = policyOf(policy).decide({ facts, failure, run, budget, jitter });
      const told = () => `${id}: stored ${JSON.stringify(decision)}, again ${JSON.stringify(again)}`;
      holds(isDeepStrictEqual(again, decision), told);
    }
  }
  return violations;
};

/** The record after a round trip through JSON, or the reason why that fails. */
const throughJson = (record: RunRecord): RunRecord | string => {
  try {
    return Schema.decodeUnknownSync(RunRecord)(JSON.parse(JSON.stringify(Schema.encodeSync(RunRecord)(record))));
  } catch (error) {
    return String(error);
  }
};

/** Maximum lengths of a record's lists. The judge has its own numbers, so that a limit lifted in the source is still noticed. */
const [attemptsMax, evidenceFirstMax, evidenceLastMax, incidentsMax, toolRowsMax] = [64, 16, 48, 32, 256];

/** I12 */
export const bounded = ({ record }: Pick<Trace, "record">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I12");
  if (record === undefined) return violations;
  const sizes: ReadonlyArray<readonly [string, number, number]> = [
    ["attempts", record.attempts.length, attemptsMax],
    ["evidence.first", record.evidence.first.length, evidenceFirstMax],
    ["evidence.last", record.evidence.last.length, evidenceLastMax],
    ["incidents", record.incidents.length, incidentsMax],
    ["questions", record.questions.length, incidentsMax],
    ...record.attempts.map((it) => [`tools of attempt ${it.attempt}`, it.facts.tools.length, toolRowsMax] as const),
  ];
  for (const [name, size, most] of sizes) holds(size <= most, () => `${name}: ${size} of ${most}`);
  return violations;
};
