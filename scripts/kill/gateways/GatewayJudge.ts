/**
 * Judges what gateways did of a stream: by the provider's own log, by the bytes that its client has, and last by its records.
 */
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { Tried } from "./GatewayClient.ts";
import { deltasIn, type GatewayFault, type GatewayState, leaseMs, states } from "./GatewayPlan.ts";

/** A gateway is believed to be dead behind its lease, and its runs are decided soon after. */
const decidedMsMax = leaseMs + 5_000;

/** What a record says of a run, as far as it is judged. */
export interface Decided extends Pick<RunRecord, "run_id" | "state" | "end" | "incidents"> {
  /**
   * How late it was decided, in milliseconds: from the fault on where its gateway died or was silent; else from when the provider had
   * said its last word.
   */
  readonly lateMs: number | undefined;
}

/** What is left of a stream. */
export interface GatewayRemains {
  readonly fault: GatewayFault;
  readonly state: GatewayState;
  readonly tries: ReadonlyArray<Tried>;
  /** The same request once more, at a gateway that had none of it, when its client has the whole response. */
  readonly again: Tried | undefined;
  /** How often the provider was asked, by its own log. */
  readonly asked: number;
  readonly records: ReadonlyArray<Decided>;
  /** How much slower the machine was than a quiet one. */
  readonly slowness: number;
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

/** On a machine that is slower than this, what takes a moment elsewhere takes longer than a gateway waits for it. */
export const slownessMax = 2;

/** Faults behind which a whole response can be had again: a store that was away has not all of it. */
export const isLogged: ReadonlySet<GatewayFault> = new Set<GatewayFault>([
  "kill -9",
  "clock ahead",
  "clock ahead, kill -9",
]);

/** What is wrong; empty where nothing is. */
export const problems = (it: GatewayRemains): ReadonlyArray<string> =>
  [...lost(it), ...twice(it), ...askedTooOften(it), ...repeated(it), ...undecided(it), ...stolen(it)].map(
    (problem) => `${it.fault}, ${it.state}: ${problem}`,
  );

const toldOf = ({ outcome, said, status, text }: Tried): string =>
  `${outcome} (${status}, ${said}) behind ${deltasIn(text).length} deltas`;

/** A client has the whole response, or was told why not. */
const lost = ({ fault, slowness, tries }: GatewayRemains): ReadonlyArray<string> => {
  const last = tries.at(-1);
  if (last === undefined) return ["nobody has asked"];
  if (last.outcome === "broken") return [`lost: ${tries.length} tries, the last ${toldOf(last)}`];
  // A store that is not there again within 5 s is away, and a client is told so.
  const isTouched = unnoticed.has(fault) && slowness < slownessMax && (tries.length > 1 || last.outcome !== "whole");
  return isTouched ? [`its client has noticed: ${tries.map(toldOf).join("; ")}`] : [];
};

/** A client has each delta once, in order and of one response; and one call. */
const twice = ({ state, tries }: GatewayRemains): ReadonlyArray<string> => {
  const wrong = tries.filter(({ outcome, text }) => {
    const deltas = deltasIn(text);
    const [first] = deltas;
    const response = first?.split(".")[0];
    const isInOrder = deltas.every((delta, at) => delta === `${response}.${at}·`);
    return !isInOrder || (outcome === "whole" && state !== "called" && first === undefined);
  });
  const handed = tries.filter(({ outcome }) => outcome === "whole").reduce((sum, { calls }) => sum + calls, 0);
  const due = state === "called" && tries.at(-1)?.outcome === "whole" ? 1 : 0;
  return [
    ...wrong.map(({ text }) => `a client has ${JSON.stringify(text.slice(0, 200))}`),
    ...(handed === due ? [] : [`its call was handed over ${handed} times`]),
  ];
};

/** A request of a client is one of the provider's, besides what recovers the first. */
const askedTooOften = ({ asked, state, tries }: GatewayRemains): ReadonlyArray<string> => {
  const most = states[state].requests + tries.filter(({ isAttached }) => !isAttached).length - 1;
  return asked > most ? [`the provider was asked ${asked} times, of which ${most} have a reason`] : [];
};

/** The same request once more is given the very same response, and the provider is not asked for it. */
const repeated = ({ again, tries }: GatewayRemains): ReadonlyArray<string> => {
  if (again === undefined) return [];
  const last = tries.at(-1);
  const isSame = again.outcome === "whole" && again.text === last?.text && again.calls === last?.calls;
  return isSame && again.isAttached ? [] : [`a repeat had another response: ${toldOf(again)}`];
};

/** Each run has one end, and it is there in time. */
const undecided = ({ records, slowness }: GatewayRemains): ReadonlyArray<string> => [
  ...(records.length === 0 ? ["no run is on record"] : []),
  ...records.flatMap(({ end, incidents, lateMs, run_id, state }) => [
    ...(end === undefined ? [`${run_id} has no end: ${state}`] : []),
    ...(lateMs !== undefined && lateMs > decidedMsMax * slowness
      ? [`${run_id} was decided behind ${Math.round(lateMs)} ms`]
      : []),
    ...(incidents.filter(({ failure }) => failure.kind === "crashed").length > 1
      ? [`${run_id} was decided twice`]
      : []),
  ]),
];

/** What its gateway goes on with no other one takes. One that has no time to beat within its lease counts as dead. */
const stolen = ({ fault, records, slowness }: GatewayRemains): ReadonlyArray<string> =>
  takesOver.has(fault) || slowness >= slownessMax
    ? []
    : records
        .filter(({ end, incidents }) => end?.reason === "client_gone" || incidents.some(isCrash))
        .map(({ run_id }) => `${run_id} was taken from a gateway that lives`);

const isCrash = ({ failure }: RunRecord["incidents"][number]): boolean => failure.kind === "crashed";
