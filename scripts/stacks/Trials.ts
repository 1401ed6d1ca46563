/**
 * Plays every combination of stack, ending and path, and judges the stacks' reports.
 */
import { bodyOf, type Ending, path, type Served } from "./Endings.ts";
import { type Ports, type Way, ways } from "./Proxies.ts";
import type { Seen, Stack } from "./Stacks.ts";

/** The report of one stack about one ending on one path. */
export interface Trial extends Seen {
  readonly stack: string;
  readonly way: Way;
  readonly ending: Ending;
  /** Number of bytes of the body that did not arrive. */
  readonly lost: number;
}

/** A limitation of a stack that no gateway can avoid. */
interface Limit {
  readonly stack: string;
  readonly ways: ReadonlyArray<Way>;
  /** `whole`: the stack considers the gateway's ending complete. `lost`: it loses bytes, whatever the error. */
  readonly what: "whole" | "lost";
  readonly reason: string;
}

const limits: ReadonlyArray<Limit> = [
  {
    stack: "Python http.client-line",
    ways: ["nginx", "nginx-1.0", "haproxy"],
    what: "whole",
    reason: "if its upstream breaks off a response, the proxy ends the response with a bare stop",
  },
  {
    stack: "wget",
    ways: ["direct"],
    what: "whole",
    reason: "it treats a FIN inside a chunk as the end of the body, and reports only a FIN before a chunk's size line",
  },
  {
    stack: "Java HttpClient",
    ways,
    what: "lost",
    reason: "its stream may drop unread data when the response fails",
  },
  {
    stack: "Chromium fetch",
    ways,
    what: "lost",
    reason: "if a stream fails, the Streams standard discards what the page has not read, whatever the error",
  },
];

/** Finds the limitation that explains a trial; undefined if nothing is wrong, or if none explains it. */
export const limitOf = ({ error, lost, stack, way }: Trial): Limit | undefined =>
  limits.find(
    (limit) =>
      limit.stack === stack && limit.ways.includes(way) && (limit.what === "lost" ? lost !== 0 : error === undefined),
  );

/** True if the gateway's ending failed without an explanation: the stack took a part for the whole, or lost some of it. */
export const isWrong = (trial: Trial): boolean =>
  trial.ending === "gateway" && (trial.lost !== 0 || trial.error === undefined) && limitOf(trial) === undefined;

let plays = 0;

/** Plays one combination. */
export const play = async (
  stack: Stack,
  [way, ports]: readonly [Way, Ports],
  ending: Ending,
  served: Served,
  folder: string,
): Promise<Trial> => {
  plays += 1;
  const at = ending === "gateway" ? `${ports.gateway}${path}` : `${ports.standIn}/${ending}${path}`;
  const seen = await stack.read(`http://127.0.0.1:${at}`, bodyOf(plays), folder);
  return { ...seen, stack: stack.name, way, ending, lost: served.bytes[ending] - seen.bytes };
};
