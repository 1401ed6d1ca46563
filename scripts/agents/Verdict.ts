/**
 * Finds turns through the gateway that are worse than without it, or too expensive.
 */
import type { Agent } from "./Agent.ts";
import { type Cell, findWorst, isWorse, type Letter } from "./Letter.ts";
import type { Played } from "./Table.ts";

/** A turn that is worse than allowed. */
export interface Fault {
  readonly turn: Played;
  /** The reason, in one sentence. */
  readonly why: string;
}

/** Letters that must never happen behind the gateway, even if they happen without it. */
const never: ReadonlyArray<Letter> = ["T", "X", "XT", "H"];

/** Number of requests of a healthy turn: one, and a second one after a call. */
const healthyRequests = (fault: string): number => (fault.startsWith("call") ? 2 : 1);

/** Number of attempts that the gateway makes for one request of the agent. */
const attempts = 4;

/**
 * Judges the turns of a report.
 *
 * @param agents the agents, with the maximum cost of their turns
 */
export const findWorse = (turns: ReadonlyArray<Played>, agents: ReadonlyArray<Agent>): ReadonlyArray<Fault> =>
  turns
    .filter(({ way }) => way !== "direct")
    .flatMap((turn) => {
      const direct = turns.find(
        (it) =>
          it.way === "direct" && it.agent === turn.agent && it.measure === turn.measure && it.fault === turn.fault,
      );
      const agent = agents.find(({ name }) => name === turn.agent);
      return [
        ...findWrong(turn, direct && findWorst(direct.cells)),
        ...findExpensive(turn, agent, direct && findWorst(direct.cells)),
      ].map((why) => ({ turn, why }));
    });

const findWrong = ({ cells, fault, measure, way }: Played, direct: Cell | undefined): ReadonlyArray<string> => {
  const cell = findWorst(cells);
  if (never.includes(cell.letter)) return [`${cell.letter} must not happen through the gateway`];
  if (measure === "continue")
    return cell.letter !== "R" && cell.cause?.startsWith("joined") === true
      ? [`${cell.letter} although the seam was proven`]
      : [];
  if (measure === "always") return cell.letter === "Q" ? ["nothing on the screen says why the turn failed"] : [];
  const unseen = way === "on_complete" || measure === "held" || (measure === "away" && !fault.includes("in text"));
  if (cell.letter !== "R" && unseen)
    return [`${cell.letter} although ${measure === "held" ? "nothing broke" : "nothing had been shown"}`];
  return direct !== undefined && isWorse(cell, direct) ? [`worse than ${direct.letter} without the gateway`] : [];
};

const findExpensive = (
  { cells, fault, measure }: Played,
  agent: Agent | undefined,
  direct: Cell | undefined,
): ReadonlyArray<string> => {
  const { requests } = findWorst(cells);
  if (measure === "held" && requests > healthyRequests(fault))
    return [`${requests} requests for a healthy turn of ${healthyRequests(fault)}`];
  if (measure !== "always") return [];
  const max = agent?.requestsMax ?? (direct === undefined ? undefined : Math.max(direct.requests, attempts));
  return max !== undefined && requests > max ? [`${requests} requests, expected at most ${max}`] : [];
};
