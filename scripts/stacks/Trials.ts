/**
 * Plays stacks, endings and ways against each other, and judges what each stack reported.
 */
import { bodyOf, type Ending, path, type Served } from "./Endings.ts";
import type { Ports, Way } from "./Proxies.ts";
import type { Seen, Stack } from "./Stacks.ts";

/** What one stack saw of one ending on one way. */
export interface Trial extends Seen {
  readonly stack: string;
  readonly way: Way;
  readonly ending: Ending;
  /** Bytes of the body that did not arrive. */
  readonly lost: number;
}

/** Why a stack cannot see that the gateway broke a response; undefined if it has to. */
export const reasonOf = ({ stack, way }: Pick<Trial, "stack" | "way">): string | undefined =>
  blind.find(({ stacks, ways }) => ways.includes(way) && stacks.includes(stack))?.reason;

const blind: ReadonlyArray<{
  readonly stacks: ReadonlyArray<string>;
  readonly ways: ReadonlyArray<Way>;
  readonly reason: string;
}> = [
  {
    stacks: ["Python http.client-line"],
    ways: ["nginx", "nginx-1.0"],
    reason:
      "nginx ends a response whose upstream broke by a body that merely stops, which Python's reader by line takes for whole",
  },
];

/** Whether the gateway's ending failed: the stack took a part for whole, or lost some of it, and nothing explains that. */
export const isWrong = (trial: Trial): boolean =>
  trial.ending === "gateway" && (trial.lost > 0 || (trial.error === undefined && reasonOf(trial) === undefined));

let plays = 0;

/** Plays one. */
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
