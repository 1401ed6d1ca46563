/** Judges a run with continued text: nothing is continued without a seam, and nothing is shown that precedes one (I27). */
import type { Trace } from "../Journal.ts";
import { against, type Violation } from "./Invariants.ts";

/** I27 */
export const onlyBySeams = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I27");
  const joined = new Set<number>();
  const joins = new Set<number>();
  let seams = 0;
  let rule: string | undefined;
  for (const entry of trace.journal) {
    if (entry.what === "writing") {
      for (const it of entry.entries) if (it._tag === "IncidentOpened") rule = it.incident.decision.rule;
    }
    if (entry.what === "opened") {
      const { attempt, mode, request, seam } = entry.context;
      holds(
        mode !== "continue" || rule !== "continue_text" || seam !== undefined,
        () => `attempt ${attempt} has no seam`,
      );
      holds(seam === undefined || request === "continue", () => `attempt ${attempt} joins a request ${request}`);
      if (seam !== undefined) joins.add(attempt);
      if (seam?.proof === "anchor" && mode === "continue") seams += 1;
    }
    if (entry.what !== "seen") continue;
    if (entry.event._tag === "Continued") joined.add(entry.event.attempt);
    if (entry.event._tag !== "Part") continue;
    const { attempt, ordinal } = entry.event;
    holds(
      !joins.has(attempt) || joined.has(attempt),
      () => `part ${ordinal} of attempt ${attempt} in front of its seam`,
    );
  }
  holds(seams <= 2, () => `${seams} seams`);
  return violations;
};
