/**
 * Judges what gateways did of a stream: by the provider's own log, by the bytes that its client has, and last by its records.
 */
import { type Fault, takesOver } from "../NodeFaults.ts";
import { slownessMax } from "../Slowness.ts";
import * as Laws from "../streams/StreamLaws.ts";
import { states } from "../streams/StreamStates.ts";

/** What is left of a stream whose gateway something has happened to. */
export interface GatewayRemains extends Laws.StreamRemains {
  readonly fault: Fault;
  /** Its client's first request was under way, in its state, when the fault happened. */
  readonly wasIn: boolean;
  /** The fault met what it was for. */
  readonly hasMet: boolean;
}

/** Why nothing can be said of a stream under its fault: the fault did not meet the stream in its state. Undefined where it did. */
export const missed = ({ fault, hasMet, records, state, wasIn }: GatewayRemains): string | undefined => {
  const why = !wasIn
    ? "the stream was in its state no more"
    : !hasMet
      ? "the fault met nothing"
      : takesOver.has(fault) && !records.some(Laws.isTaken)
        ? "no other gateway took a run of it over"
        : undefined;
  return why === undefined ? undefined : `${fault}, ${state}: missed: ${why}`;
};

/** Faults of which no client may notice anything. */
const unnoticed: ReadonlySet<Fault> = new Set<Fault>(["reset", "clock ahead"]);

/** Faults behind which a whole response can be had again: a store that was away has not all of it. */
export const isLogged: ReadonlySet<Fault> = new Set<Fault>(["kill -9", "clock ahead", "clock ahead, kill -9"]);

/** What is wrong; empty where nothing is. */
export const problems = (it: GatewayRemains): ReadonlyArray<string> =>
  [
    ...Laws.lost(it),
    ...noticed(it),
    ...Laws.twice(it),
    ...askedTooOften(it),
    ...Laws.repeated(it),
    ...Laws.undecided(it),
    ...(takesOver.has(it.fault) ? [] : Laws.stolen(it)),
  ].map((problem) => `${it.fault}, ${it.state}: ${problem}`);

/** A store that is not there again within 5 s is away, and a client is told so. */
const noticed = ({ fault, slowness, tries }: GatewayRemains): ReadonlyArray<string> => {
  const last = tries.at(-1);
  const isTouched = unnoticed.has(fault) && slowness < slownessMax;
  return isTouched && last !== undefined && last.outcome !== "broken" && (tries.length > 1 || last.outcome !== "whole")
    ? [`its client has noticed: ${tries.map(Laws.toldOf).join("; ")}`]
    : [];
};

/** A request of a client is one of the provider's, besides what recovers the first. */
const askedTooOften = ({ asked, state, tries }: GatewayRemains): ReadonlyArray<string> => {
  const most = states[state].requests + tries.filter(({ isAttached }) => !isAttached).length - 1;
  return asked > most ? [`the provider was asked ${asked} times, of which ${most} have a reason`] : [];
};
