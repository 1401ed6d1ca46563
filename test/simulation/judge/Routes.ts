/** Judges a run with several routes: what moves to another route, and which failure the caller gets (I25, I26). */
import { isDeepStrictEqual } from "node:util";
import type { RunIncident } from "../../../src/domain/RunIncident.ts";
import type { Trace } from "../Journal.ts";
import { interruptedOf } from "./Events.ts";
import { against, type Violation } from "./Invariants.ts";

/** The incidents of a run, in the order of their decisions. */
const incidentsOf = ({ journal }: Pick<Trace, "journal">): ReadonlyArray<RunIncident> => {
  const byId = new Map<string, RunIncident>();
  for (const entry of journal) {
    if (entry.what !== "writing") continue;
    for (const it of entry.entries) {
      if (it._tag === "IncidentOpened" && it.incident.status !== "late") byId.set(it.incident.id, it.incident);
    }
  }
  return [...byId.values()];
};

/** The route of each attempt of the run; undefined for the first route. */
const routesOf = ({ journal }: Pick<Trace, "journal">): ReadonlyMap<number, string | undefined> =>
  new Map(journal.flatMap((it) => (it.what === "opened" ? [[it.context.attempt, it.context.route] as const] : [])));

/** I25 */
export const whatCrosses = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I25");
  const left = new Set<string | undefined>();
  const incidents = incidentsOf(trace);
  let before: { readonly route: string | undefined; readonly attempt: number } | undefined;
  for (const entry of trace.journal) {
    if (entry.what !== "opened") continue;
    const { attempt, cursor, mode, request, route } = entry.context;
    holds(!left.has(route), () => `attempt ${attempt} goes back to ${route ?? "the first route"}`);
    if (before !== undefined && before.route !== route) {
      left.add(before.route);
      holds(mode === "replay" && request === "first", () => `attempt ${attempt} moves by ${mode} of ${request}`);
      holds(cursor === undefined, () => `attempt ${attempt} takes a cursor along`);
      const broken = before.attempt;
      const facts = incidents.findLast((it) => it.attempt <= broken)?.facts;
      holds(facts === undefined || facts.shown !== "text", () => `attempt ${attempt} moves behind text`);
      const done = facts?.tools.some(({ effect, phase }) => effect !== "read_only" && phases.has(phase)) === true;
      holds(!done, () => `attempt ${attempt} moves behind a call that may have been done`);
    }
    before = { route, attempt };
  }
  return violations;
};

const phases: ReadonlySet<string> = new Set(["dispatched", "outcome_unknown", "settled"]);

/** I26 */
export const whoseFailure = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I26");
  const interrupted = interruptedOf(trace);
  const routes = routesOf(trace);
  const [first] = routes.values();
  if (interrupted === undefined || new Set(routes.values()).size < 2) return violations;
  const { failure, reason } = interrupted;
  if ((reason !== "do_not_retry" && reason !== "stopped") || own.has(failure.kind)) return violations;
  const told = incidentsOf(trace).findLast((it) => routes.get(it.attempt) === first && !own.has(it.failure.kind));
  holds(
    told === undefined || isDeepStrictEqual(told.failure, failure),
    () => `the caller is told ${failure.kind}, and the first route failed with ${told?.failure.kind}`,
  );
  return violations;
};

/** Failures of a stop and of the caller's own code, which no route replaces. */
const own: ReadonlySet<string> = new Set(["cancelled", "caller_failed"]);
