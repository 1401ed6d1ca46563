/**
 * Judges what gateways did with a stream: first by the provider's log and the bytes of the client, then by the records.
 */
import { type Fault, kills, takesOver } from "../NodeFaults.ts";
import { slownessMax } from "../Slowness.ts";
import * as Laws from "../streams/StreamLaws.ts";
import { states } from "../streams/StreamStates.ts";

/** The evidence of a stream whose gateway was hit by a fault. */
export interface GatewayRemains extends Laws.StreamRemains {
  readonly fault: Fault;
  /** True if the client's first request was in progress, in its state, when the fault happened. */
  readonly wasIn: boolean;
  /** True if the fault hit its target. */
  readonly hasMet: boolean;
}

/** Explains why the fault proves nothing about the stream; undefined if it hit the stream in its state. */
export const missed = ({ fault, hasMet, records, state, wasIn }: GatewayRemains): string | undefined => {
  const why = !wasIn
    ? "the stream had left its state"
    : !hasMet
      ? "the fault hit nothing"
      : kills.has(fault) && !records.some(Laws.isTaken)
        ? "no other gateway took over one of its runs"
        : undefined;
  return why === undefined ? undefined : `${fault}, ${state}: missed: ${why}`;
};

/** Faults that no client may notice. */
const unnoticed: ReadonlySet<Fault> = new Set<Fault>(["reset", "clock ahead"]);

/** Faults after which a complete response can be fetched again from another gateway, if the gateway of its run is alive. */
export const isKept: ReadonlySet<Fault> = new Set<Fault>(["kill -9", "clock ahead", "clock ahead, kill -9"]);

/** Finds everything that is wrong with a stream. */
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

/** A store that is unavailable for more than 5 s fails the request, and the error says so. */
const noticed = ({ fault, slowness, tries }: GatewayRemains): ReadonlyArray<string> => {
  const last = tries.at(-1);
  const isTouched = unnoticed.has(fault) && slowness < slownessMax;
  return isTouched && last !== undefined && last.outcome !== "broken" && (tries.length > 1 || last.outcome !== "whole")
    ? [`its client noticed: ${tries.map(Laws.toldOf).join("; ")}`]
    : [];
};

/** Each client request allows one provider request, in addition to those that recover the first. */
const askedTooOften = ({ asked, state, tries }: GatewayRemains): ReadonlyArray<string> => {
  const most = states[state].requests + tries.filter(({ isAttached }) => !isAttached).length - 1;
  return asked > most ? [`the provider received ${asked} requests, of which ${most} have a reason`] : [];
};
