/**
 * Keeps the incidents of a record: adds them, evicts one at the maximum, and settles their status when the run ends.
 */
import type { Choice } from "../domain/Decision.ts";
import { incidentsMax } from "../domain/Limits.ts";
import type { RunEnd, RunIncident } from "../domain/RunIncident.ts";

interface IncidentLog {
  readonly incidents: ReadonlyArray<RunIncident>;
  readonly incidents_omitted: number;
}

/** Appends an incident. At the maximum, evicts the least needed incident. */
export const openIncident = ({ incidents, incidents_omitted }: IncidentLog, incident: RunIncident): IncidentLog => {
  if (incidents.length < incidentsMax) return { incidents: [...incidents, incident], incidents_omitted };
  return {
    incidents: [...incidents.toSpliced(findLeastNeeded(incidents), 1), incident],
    incidents_omitted: incidents_omitted + 1,
  };
};

/**
 * Finds the oldest incident that is `recovered`, `superseded` or `late`. If there is none, finds the oldest that was acted on, or else the
 * oldest that did not end the run.
 */
const findLeastNeeded = (incidents: ReadonlyArray<RunIncident>): number => {
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

/** Sets the status of the incident that the entry names. */
export const mark = (
  incident: RunIncident,
  entry: { readonly incident: string; readonly status: RunIncident["status"]; readonly answer?: Choice },
): RunIncident =>
  incident.id !== entry.incident
    ? incident
    : { ...incident, status: entry.status, ...(entry.answer === undefined ? {} : { answer: entry.answer }) };

/**
 * Settles every incident at the end of the run. The incident that ended the run is final. An incident of an attempt that a later attempt
 * recovered is never final, even if it was recorded late.
 */
export const settle = (incidents: ReadonlyArray<RunIncident>, end: RunEnd): ReadonlyArray<RunIncident> =>
  incidents.map((incident) => ({ ...incident, status: statusAt(incident, end) }));

/** Settles incidents again if the run has ended, so that a late or repeated mark changes nothing. */
export const settleIfEnded = (
  end: RunEnd | undefined,
  incidents: ReadonlyArray<RunIncident>,
): ReadonlyArray<RunIncident> => (end === undefined ? incidents : settle(incidents, end));

const statusAt = ({ attempt, decision, id, status }: RunIncident, end: RunEnd): RunIncident["status"] => {
  if (id === end.incident) return "final";
  if (status !== "open" && status !== "acted_on") return status;
  if (end.state !== "completed") return status === "open" ? "superseded" : status;
  if (attempt < end.attempts) return "recovered";
  // The attempt that completed the run broke after its end marker, so no later attempt recovered it.
  return decision.action === "do_not_retry" ? "final" : "superseded";
};
