/** Shrinks a scenario greedily while it still causes the same violation. */
import type { Scenario } from "./Scenario.ts";

/** Maximum scenarios that are tried. */
const triesMax = 400;

/**
 * Removes everything that the violation does not need.
 *
 * @param breaks returns true if a scenario still causes the violation
 */
export const smaller = async (
  scenario: Scenario,
  breaks: (scenario: Scenario) => Promise<boolean>,
): Promise<Scenario> => {
  let best = scenario;
  let tries = 0;
  let progress = true;
  while (progress) {
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

/** All scenarios that are one step smaller, the biggest steps first. */
const candidates = (it: Scenario): ReadonlyArray<Scenario> => [
  ...without(it.attempts).map((attempts) => ({ ...it, attempts })),
  ...without(it.outside).map((outside) => ({ ...it, outside })),
  ...without(it.tools).map((tools) => ({ ...it, tools })),
  ...without(it.answers).map((answers) => ({ ...it, answers })),
  ...without(it.recorder.fails).map((fails) => ({ ...it, recorder: { ...it.recorder, fails } })),
  ...without(it.recorder.dies).map((dies) => ({ ...it, recorder: { ...it.recorder, dies } })),
  ...without(it.world.faults).map((faults) => ({ ...it, world: { ...it.world, faults } })),
  ...without(it.world.away).map((away) => ({ ...it, world: { ...it.world, away } })),
  ...without(it.world.edges).map((edges) => ({ ...it, world: { ...it.world, edges } })),
  ...without(it.world.freezes).map((freezes) => ({ ...it, world: { ...it.world, freezes } })),
  ...plainer(it),
  ...it.attempts.flatMap((attempt, index) =>
    without(attempt.steps).map((steps) => ({ ...it, attempts: it.attempts.with(index, { ...attempt, steps }) })),
  ),
];

const plainer = (it: Scenario): ReadonlyArray<Scenario> =>
  [
    { ...it, world: { ...it.world, again: null } },
    { ...it, world: { ...it.world, routes: null } },
    { ...it, world: { ...it.world, seam: null } },
    { ...it, world: { ...it.world, outage: null } },
    { ...it, world: { ...it.world, record: "memory" } } as const,
    { ...it, world: { ...it.world, commit: "none" } } as const,
    { ...it, world: { ...it.world, digest: "none" } } as const,
    { ...it, consumer: { kind: "drain", n: 1, ms: 1 } } as const,
    { ...it, recorder: { ...it.recorder, delays: [0] } } as const,
    { ...it, drainMs: null },
    { ...it, toolUse: { when: "inline", delay: 0, twice: false, byId: false } } as const,
    { ...it, options: { ...it.options, clocks: {}, budget: {} } },
    { ...it, options: { ...it.options, cursor: false } },
    { ...it, options: { ...it.options, reveal: "live" } } as const,
    { ...it, options: { ...it.options, refresh: "none" } } as const,
    { ...it, options: { ...it.options, policy: "default" } } as const,
    { ...it, options: { ...it.options, canContinue: false, continueText: "ask" } } as const,
    { ...it, attempts: it.attempts.map((attempt) => ({ ...attempt, closes: 0 })) },
  ].filter((candidate) => JSON.stringify(candidate) !== JSON.stringify(it));

/** A list without one of its members, for each member. */
const without = <A>(list: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  list.map((_, index) => list.toSpliced(index, 1));
