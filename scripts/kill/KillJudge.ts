/**
 * Judges runs whose processes were killed, by their record, their diary and the marks of their tool.
 */
import { isAtMost, Shown } from "../../src/domain/AttemptFacts.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import type { RunRecord } from "../../src/recorder/RunRecord.ts";
import type { Line } from "./Diary.ts";

/** The evidence that a run left. */
export interface Remains {
  readonly run: string;
  readonly record: RunRecord | undefined;
  readonly diary: ReadonlyArray<Line>;
  readonly marks: ReadonlyArray<string>;
}

/** Checks the rules that hold at every moment, even right after a kill. */
export const problemsNow = ({ diary, marks, record, run }: Remains): ReadonlyArray<string> => {
  const problems: Array<string> = [];
  if (marks.filter((it) => it === "start").length > 1) problems.push(`${run}: the tool ran twice`);
  if (record === undefined) return diary.length === 0 ? problems : [...problems, `${run}: seen, but not on record`];
  for (const line of diary) {
    if (!("saw" in line)) continue;
    const facts = record.attempts.find((it) => it.attempt === line.attempt)?.facts;
    if (facts === undefined) problems.push(`${run}: attempt ${line.attempt} was seen, but is not on record`);
    else if (line.saw === "text" && !isAtMost(Shown, "text", facts.shown))
      problems.push(`${run}: text is not on record`);
    else if (line.saw === "call" && facts.tools.length === 0) problems.push(`${run}: a call is not on record`);
  }
  const started = record.attempts.some(({ facts }) =>
    facts.tools.some(({ phase }) => phase === "dispatched" || phase === "outcome_unknown" || phase === "settled"),
  );
  if (marks.length > 0 && !started) problems.push(`${run}: the tool ran, but no dispatch is on record`);
  for (const incident of record.incidents) {
    const again = RecoveryPolicy.decide(incident);
    if (JSON.stringify(again) !== JSON.stringify(incident.decision))
      problems.push(`${incident.id}: decided differently`);
  }
  return problems;
};

/** Checks the rules that hold once everything has been recovered. */
export const problemsAtEnd = (remains: Remains): ReadonlyArray<string> => {
  const { diary, record, run } = remains;
  const problems = [...problemsNow(remains)];
  if (record?.state !== "ended") problems.push(`${run}: not ended (${record?.state ?? "lost"})`);
  const kept = textOf(diary);
  const firsts = record?.attempts.filter(({ attempt, request }) => request !== "continue" && kept.has(attempt)) ?? [];
  if (firsts.length > 1) problems.push(`${run}: the text of ${firsts.length} answers is on the screen`);
  return problems;
};

/** Returns the attempts whose text is still on the screen. */
const textOf = (diary: ReadonlyArray<Line>): ReadonlySet<number> => {
  const kept = new Set<number>();
  for (const line of diary) {
    if ("discard" in line && line.keep === 0) kept.delete(line.discard);
    if ("saw" in line && line.saw === "text") kept.add(line.attempt);
  }
  return kept;
};
