/** Shrinks a world greedily while it still breaks a law: turns, answers and faults are dropped one at a time. */
import type { World } from "./World.ts";
import { wholeAnswer } from "./World.ts";

/** Maximum worlds that are tried. */
const triesMax = 150;

/** Removes everything that the violation does not need. @param breaks returns true if a world still causes the violation */
export const smaller = async (world: World, breaks: (world: World) => Promise<boolean>): Promise<World> => {
  let best = world;
  let tries = 0;
  for (let progress = true; progress; ) {
    progress = false;
    for (const candidate of candidates(best)) {
      if (tries++ >= triesMax) return best;
      if (!(await breaks(candidate))) continue;
      best = candidate;
      progress = true;
      break;
    }
  }
  return best;
};

/** All worlds that are one step smaller, the biggest steps first. */
const candidates = (it: World): ReadonlyArray<World> => [
  ...without(it.turns).map((turns) => ({ ...it, turns })),
  ...without(it.stops).map((stops) => ({ ...it, stops })),
  ...without(it.store.away).map((away) => ({ ...it, store: { ...it.store, away } })),
  ...(it.continueText === "ask" ? [] : [{ ...it, continueText: "ask" } as const]),
  ...(it.pollMs === null ? [] : [{ ...it, pollMs: null }]),
  ...without(it.jumps).map((jumps) => ({ ...it, jumps })),
  ...it.hosts.flatMap((host, at) =>
    without(host.away).map((away) => ({ ...it, hosts: it.hosts.with(at, { ...host, away }) })),
  ),
  ...it.turns.flatMap((turn, at) => [
    ...without(turn.answers).map((answers) => ({ ...it, turns: it.turns.with(at, { ...turn, answers }) })),
    ...(turn.beforeAway === null ? [] : [{ ...it, turns: it.turns.with(at, { ...turn, beforeAway: null }) }]),
    ...(turn.thenAway === null ? [] : [{ ...it, turns: it.turns.with(at, { ...turn, thenAway: null }) }]),
    ...(turn.tools.length === 0 ? [] : [{ ...it, turns: it.turns.with(at, { ...turn, tools: [] }) }]),
    ...simpler(turn.client).map((client) => ({ ...it, turns: it.turns.with(at, { ...turn, client }) })),
    ...turn.answers.flatMap((answer, index) =>
      JSON.stringify(answer) === JSON.stringify(wholeAnswer)
        ? []
        : [{ ...it, turns: it.turns.with(at, { ...turn, answers: turn.answers.with(index, wholeAnswer) }) }],
    ),
  ]),
];

const simpler = (client: World["turns"][number]["client"]): ReadonlyArray<typeof client> =>
  [
    { ...client, leavesMs: null },
    { ...client, bytesPerSecond: null },
    { ...client, repeats: 0 },
    { ...client, closesAtFinish: false },
  ].filter((candidate) => JSON.stringify(candidate) !== JSON.stringify(client));

/** A list without one of its members, for each member. */
const without = <A>(list: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  list.map((_, index) => list.toSpliced(index, 1));
