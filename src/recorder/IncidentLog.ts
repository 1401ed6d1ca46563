/**
 * Folds what becomes of a run's incidents: which stand, which give way when there are too many, and which one ended the run.
 */
import type { Choice } from "../domain/Decision.ts";
import { incidentsMax } from "../domain/Limits.ts";
import type { RunEnd, RunIncident } from "../domain/RunIncident.ts";

/** The incidents of a record. */
interface IncidentLog {
  readonly incidents: ReadonlyArray<RunIncident>;
  readonly incidents_omitted: number;
}

/** A new incident comes last. Where there are as many as are kept, one gives way. */
export const openIncident = ({ incidents, incidents_omitted }: IncidentLog, incident: RunIncident): IncidentLog => {
  if (incidents.length < incidentsMax) return { incidents: [...incidents, incident], incidents_omitted };
  return {
    incidents: [...incidents.toSpliced(leastNeeded(incidents), 1), incident],
    incidents_omitted: incidents_omitted + 1,
  };
};

/** Which incident gives way: the oldest that is over, else one that was carried out, and never the one that ended the run. */
const leastNeeded = (incidents: ReadonlyArray<RunIncident>): number => {
  const over = incidents.findIndex(
    ({ status }) => status === "recovered" || status === "superseded" || status === "late",
  );
  if (over >= 0) return over;
  const carriedOut = incidents.findIndex(({ status }) => status === "acted_on");
  return carriedOut >= 0
    ? carriedOut
    : Math.max(
        0,
        incidents.findIndex(({ status }) => status !== "final"),
      );
};

/** Says what became of an incident; others stay as they are. */
export const mark = (
  incident: RunIncident,
  entry: { readonly incident: string; readonly status: RunIncident["status"]; readonly answer?: Choice },
): RunIncident =>
  incident.id !== entry.incident
    ? incident
    : { ...incident, status: entry.status, ...(entry.answer === undefined ? {} : { answer: entry.answer }) };

/** Only the incident that ended the run is final: a recovered attempt never is, however late its record came. */
export const settle = (incidents: ReadonlyArray<RunIncident>, end: RunEnd): ReadonlyArray<RunIncident> =>
  incidents.map((incident) => ({ ...incident, status: statusAt(incident, end) }));

/** A mark that comes late, or twice, takes nothing back: the end of the run has set the status. */
export const settledBy = (
  end: RunEnd | undefined,
  incidents: ReadonlyArray<RunIncident>,
): ReadonlyArray<RunIncident> => (end === undefined ? incidents : settle(incidents, end));

const statusAt = ({ attempt, decision, id, status }: RunIncident, end: RunEnd): RunIncident["status"] => {
  if (id === end.incident) return "final";
  if (status !== "open" && status !== "acted_on") return status;
  if (end.state !== "completed") return status === "open" ? "superseded" : status;
  if (attempt < end.attempts) return "recovered";
  // The attempt that completed the run broke after its end marker. No later attempt recovered it.
  return decision.action === "do_not_retry" ? "final" : "superseded";
};
