/**
 * Holds what is judged of a stream whatever has happened to its gateway: by the bytes that its client has, and by its records.
 */
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { slownessMax } from "../Slowness.ts";
import type { Tried } from "./StreamClient.ts";
import { deltasIn, leaseMs, type StreamState } from "./StreamStates.ts";

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
export interface StreamRemains {
  readonly state: StreamState;
  readonly tries: ReadonlyArray<Tried>;
  /** The same request once more, when its client has the whole response: who was asked has it, and the provider is not asked. */
  readonly again: Tried | undefined;
  /** How often the provider was asked, by its own log. */
  readonly asked: number;
  readonly records: ReadonlyArray<Decided>;
  /** How much slower the machine was than a quiet one. */
  readonly slowness: number;
}

/** What became of a request, in words. */
export const toldOf = ({ outcome, said, status, text }: Tried): string =>
  `${outcome} (${status}, ${said}) behind ${deltasIn(text).length} deltas`;

/** A client has the whole response, or was told why not. */
export const lost = ({ tries }: Pick<StreamRemains, "tries">): ReadonlyArray<string> => {
  const last = tries.at(-1);
  if (last === undefined) return ["nobody has asked"];
  return last.outcome === "broken" ? [`lost: ${tries.length} tries, the last ${toldOf(last)}`] : [];
};

/** A client has each delta once, in order and of one response; and one call. */
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
    ...(handed === due ? [] : [`its call was handed over ${handed} times`]),
  ];
};

/** The same request once more is given the very same response, and the provider is not asked for it. */
export const repeated = ({ again, tries }: Pick<StreamRemains, "again" | "tries">): ReadonlyArray<string> => {
  if (again === undefined) return [];
  const last = tries.at(-1);
  const isSame = again.outcome === "whole" && again.text === last?.text && again.calls === last?.calls;
  return isSame && again.isAttached ? [] : [`a repeat had another response: ${toldOf(again)}`];
};

/** Each run has one end, and it is there in time. */
export const undecided = ({
  records,
  slowness,
}: Pick<StreamRemains, "records" | "slowness">): ReadonlyArray<string> => [
  ...(records.length === 0 ? ["no run is on record"] : []),
  ...records.flatMap(({ end, incidents, lateMs, run_id, state }) => [
    ...(end === undefined ? [`${run_id} has no end: ${state}`] : []),
    ...(lateMs !== undefined && lateMs > decidedMsMax * slowness
      ? [`${run_id} was decided behind ${Math.round(lateMs)} ms`]
      : []),
    ...(incidents.filter(isCrash).length > 1 ? [`${run_id} was decided twice`] : []),
  ]),
];

/** How a run ends that another process has decided. */
const takenEnds: ReadonlySet<string | undefined> = new Set(["client_gone", "not_resumable"]);

/** Another process has decided it. */
export const isTaken = ({ end, incidents }: Pick<Decided, "end" | "incidents">): boolean =>
  takenEnds.has(end?.reason) || incidents.some(isCrash);

/** What its gateway goes on with no other one takes. One that has no time to beat within its lease counts as dead. */
export const stolen = ({ records, slowness }: Pick<StreamRemains, "records" | "slowness">): ReadonlyArray<string> =>
  slowness >= slownessMax
    ? []
    : records.filter(isTaken).map(({ run_id }) => `${run_id} was taken from a gateway that lives`);

const isCrash = ({ failure }: RunRecord["incidents"][number]): boolean => failure.kind === "crashed";
