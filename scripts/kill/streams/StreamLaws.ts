/**
 * The rules that hold for every stream, whatever happened to its gateway. They are judged by the client's bytes and the records.
 */
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { slownessMax } from "../Slowness.ts";
import type { Tried } from "./StreamClient.ts";
import { deltasIn, leaseMs, type StreamState } from "./StreamStates.ts";

/** Maximum time until the runs of a dead gateway are decided, in milliseconds: its lease and 5 s. */
const decidedMsMax = leaseMs + 5_000;

/** The part of a run's record that is judged. */
export interface Decided extends Pick<RunRecord, "run_id" | "state" | "end" | "incidents"> {
  /**
   * Delay of the decision, in milliseconds. It counts from the fault if the gateway died or fell silent, otherwise from the provider's
   * last output.
   */
  readonly lateMs: number | undefined;
}

/** The evidence of a stream. */
export interface StreamRemains {
  readonly state: StreamState;
  readonly tries: ReadonlyArray<Tried>;
  /** A repeat of the request after the response was whole. The gateway must answer it without asking the provider. */
  readonly again: Tried | undefined;
  /** Number of provider requests in its own log. */
  readonly asked: number;
  readonly records: ReadonlyArray<Decided>;
  /** Slowdown of the machine relative to a quiet one. */
  readonly slowness: number;
}

/** Describes the outcome of a request. */
export const toldOf = ({ outcome, said, status, text }: Tried): string =>
  `${outcome} (${status}, ${said}) after ${deltasIn(text).length} deltas`;

/** A client must have the whole response or an error that says why not. */
export const lost = ({ tries }: Pick<StreamRemains, "tries">): ReadonlyArray<string> => {
  const last = tries.at(-1);
  if (last === undefined) return ["no client sent a request"];
  return last.outcome === "broken" ? [`lost: ${tries.length} tries, the last ${toldOf(last)}`] : [];
};

/** A client must have each delta once, in order and from one response, and at most one call. */
export const twice = ({ state, tries }: Pick<StreamRemains, "state" | "tries">): ReadonlyArray<string> => {
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
    ...(handed === due ? [] : [`its call was delivered ${handed} times`]),
  ];
};

/** A repeat of the request must return the same response, attached to the first run. */
export const repeated = ({ again, tries }: Pick<StreamRemains, "again" | "tries">): ReadonlyArray<string> => {
  if (again === undefined) return [];
  const last = tries.at(-1);
  const isSame = again.outcome === "whole" && again.text === last?.text && again.calls === last?.calls;
  return isSame && again.isAttached ? [] : [`a repeat got a different response: ${toldOf(again)}`];
};

/** Each run must have one end, in time. */
export const undecided = ({
  records,
  slowness,
}: Pick<StreamRemains, "records" | "slowness">): ReadonlyArray<string> => [
  ...(records.length === 0 ? ["no run is on record"] : []),
  ...records.flatMap(({ end, incidents, lateMs, run_id, state }) => [
    ...(end === undefined ? [`${run_id} has no end: ${state}`] : []),
    ...(lateMs !== undefined && lateMs > decidedMsMax * slowness
      ? [`${run_id} was decided after ${Math.round(lateMs)} ms`]
      : []),
    ...(incidents.filter(isCrash).length > 1 ? [`${run_id} was decided twice`] : []),
  ]),
];

/** End reasons that only another process writes. */
const takenEnds: ReadonlySet<string | undefined> = new Set(["process_lost", "client_gone", "not_resumable"]);

/** True if another process decided the run. */
export const isTaken = ({ end, incidents }: Pick<Decided, "end" | "incidents">): boolean =>
  takenEnds.has(end?.reason) || incidents.some(isCrash);

/** No other gateway may take a live gateway's run. A gateway too slow to renew its lease counts as dead. */
export const stolen = ({ records, slowness }: Pick<StreamRemains, "records" | "slowness">): ReadonlyArray<string> =>
  slowness >= slownessMax ? [] : records.filter(isTaken).map(({ run_id }) => `${run_id} was taken from a live gateway`);

const isCrash = ({ failure }: RunRecord["incidents"][number]): boolean => failure.kind === "crashed";
