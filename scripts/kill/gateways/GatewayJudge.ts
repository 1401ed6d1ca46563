/**
 * Judges what gateways did of a stream: by the provider's own log, by the bytes that its client has, and last by its records.
 */
import * as Laws from "../streams/StreamLaws.ts";
import { states } from "../streams/StreamStates.ts";
import type { GatewayFault } from "./GatewayPlan.ts";

/** What is left of a stream whose gateway something has happened to. */
export interface GatewayRemains extends Laws.StreamRemains {
  readonly fault: GatewayFault;
}

/** Faults behind which the runs are another gateway's. */
export const takesOver: ReadonlySet<GatewayFault> = new Set<GatewayFault>([
  "kill -9",
  "stopped",
  "cut off",
  "clock ahead, kill -9",
]);

/** Faults of which no client may notice anything. */
const unnoticed: ReadonlySet<GatewayFault> = new Set<GatewayFault>(["reset", "clock ahead"]);

/** Faults behind which a whole response can be had again: a store that was away has not all of it. */
export const isLogged: ReadonlySet<GatewayFault> = new Set<GatewayFault>([
  "kill -9",
  "clock ahead",
  "clock ahead, kill -9",
]);

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
  const isTouched = unnoticed.has(fault) && slowness < Laws.slownessMax;
  return isTouched && last !== undefined && last.outcome !== "broken" && (tries.length > 1 || last.outcome !== "whole")
    ? [`its client has noticed: ${tries.map(Laws.toldOf).join("; ")}`]
    : [];
};

/** A request of a client is one of the provider's, besides what recovers the first. */
const askedTooOften = ({ asked, state, tries }: GatewayRemains): ReadonlyArray<string> => {
  const most = states[state].requests + tries.filter(({ isAttached }) => !isAttached).length - 1;
  return asked > most ? [`the provider was asked ${asked} times, of which ${most} have a reason`] : [];
};
