/** Prints a trace for a person, one line per event. */
import { Exit } from "effect";
import type { Entry as Written } from "../../src/recorder/RunRecord.ts";
import type { Entry, Part, Trace } from "./Journal.ts";

export const lines = (trace: Trace): ReadonlyArray<string> => [
  ...trace.journal.map((entry) => `${String(entry.at).padStart(9)} ${entry.what.padEnd(16)} ${told(entry)}`),
  `ended ${trace.ended}, scope closed ${trace.closed}, record ${trace.record?.state} ${trace.record?.end?.reason ?? ""}`,
];

const told = (entry: Entry): string => {
  switch (entry.what) {
    case "seen":
      return entry.event._tag === "Part"
        ? `${entry.event.attempt}.${entry.event.ordinal} ${partLine(entry.event.part)}`
        : JSON.stringify(entry.event);
    case "got":
      return partLine(entry.part);
    case "emitted":
      return `${entry.attempt}: ${entry.parts.map(partLine).join(" + ")}`;
    case "writing":
      return entry.entries.map(writtenLine).join(" | ");
    case "written":
      return entry.ok ? "ok" : "failed";
    case "ended":
      return Exit.isSuccess(entry.exit) ? "success" : entry.exit.cause.reasons.map(({ _tag }) => _tag).join();
    case "outside":
    case "world":
      return entry.kind;
    case "again":
      return entry.phase;
    case "opened":
    case "closed":
    case "source_ended":
    case "handler_started":
    case "tool_returned": {
      const { at: _, what: __, ...rest } = entry;
      return JSON.stringify(rest);
    }
  }
};

const partLine = ({ serial, says }: Part): string => {
  const calls = says.calls.map((it) => `${it.executor} ${it.tool} ${it.ordinal} ${it.phase}`).join();
  const kind = says.failure?.kind ?? (says.calls.length > 0 ? calls : says.shows === "nothing" ? "" : says.shows);
  return `${serial ?? "quiet"} ${kind}${says.terminal ? " terminal" : ""}`.trim();
};

const writtenLine = (it: Written): string => {
  switch (it._tag) {
    case "EvidenceNoted":
      return `(${it.evidence.attempt} ${it.evidence.event} ${it.evidence.detail ?? ""})`;
    case "IncidentOpened": {
      const { attempt, decision, failure, id, status } = it.incident;
      return `incident ${id} of ${attempt}: ${failure.kind} ${decision.action} ${decision.rule} ${status}`;
    }
    case "FactsRaised":
      return `facts ${it.attempt}: ${it.facts.shown} ${it.facts.tools.map((row) => `${row.call} ${row.phase}`).join()}`;
    case "AttemptStarted":
      return `attempt ${it.attempt} ${it.mode}`;
    default:
      return JSON.stringify(it);
  }
};
