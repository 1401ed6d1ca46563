/** Generates the scenario of a seed. */
import type { Choice } from "../../src/domain/Decision.ts";
import type { Budget } from "../../src/domain/RunFacts.ts";
import { Dice } from "./Dice.ts";
import type { Again, Moment, Outside, Scenario, ToolSpec, World } from "./Scenario.ts";
import { attemptScript } from "./Scripts.ts";
import { worldOf } from "./Worlds.ts";

/**
 * Generates the scenario of a seed, which stays the same unless this file, Scripts.ts or Worlds.ts change. Features that later
 * versions added, for example worlds and impatience, have their own dice, so a seed still draws what the first version drew for it.
 */
export const generate = (seed: number): Scenario => {
  const scenario = withoutWorld(seed);
  const dice = new Dice(seed ^ worldSeed);
  const consumer: Scenario["consumer"] = dice.chance(0.12)
    ? { kind: "impatient", n: dice.between(1, 40), ms: dice.pick([1, 2, 15, 400]) }
    : scenario.consumer;
  const record = new Dice(seed ^ recordSeed).pick(["memory", "first", "behind"] as const);
  const drawn = worldOf(dice);
  const world = {
    ...drawn,
    again: drawn.again === null || record !== "behind" ? drawn.again : onceOnRecord(drawn.again, drawn),
    routes: routesOf(new Dice(seed ^ routesSeed)),
    seam: seamOf(new Dice(seed ^ seamSeed)),
    outage: outageOf(new Dice(seed ^ outageSeed)),
    record,
    commit: new Dice(seed ^ commitSeed).pick(["none", "soon", "late"] as const),
  };
  // While the store takes nothing, the run cannot know if an id is on record, so a repeated id gets a store that works.
  const recorder = world.again === null ? scenario.recorder : { ...scenario.recorder, fails: [], dies: [] };
  // A person who never stops answering keeps a run from ending, even if nothing fails.
  const answers =
    world.outage === null ? scenario.answers : [...scenario.answers, { choice: "stop" as const, delay: 0 }];
  return { ...scenario, answers, consumer, recorder, world };
};

/** Generates the scenario of a seed in which nothing fails after a random moment. */
export const generateCalm = (seed: number): Scenario => {
  const scenario = generate(seed);
  const dice = new Dice(seed ^ calmSeed);
  const calmAt = dice.pick([0, 1, 30, 800, 4_000, 70_000, 500_000]);
  return { ...scenario, world: { ...scenario.world, calmAt } };
};

/** Dice of the routes, which the third version added. */
const routesSeed = 0x2a_0e_5b;

const routesOf = (dice: Dice): Scenario["world"]["routes"] =>
  dice.chance(0.5) ? { further: dice.between(1, 2), own: dice.chance(0.3) } : null;

/** Dice of the seams, which the fourth version added. */
const seamSeed = 0x5e_a1_07;

const seamOf = (dice: Dice): Scenario["world"]["seam"] =>
  dice.chance(0.75)
    ? {
        anchor: dice.between(0, 3),
        behind: dice.chance(0.25) ? dice.between(0, 3) : null,
        proof: dice.chance(0.2) ? "prefill" : "anchor",
      }
    : null;

/** Dice of the outages, which the fifth version added. */
const outageSeed = 0x0d_0a_11;

const outageOf = (dice: Dice): Scenario["world"]["outage"] => {
  if (!dice.chance(0.2)) return null;
  const refusals = dice.between(0, 5);
  return {
    refusals,
    retryAfterMs: dice.pick([0, 50, 3_000]),
    ms: dice.pick([400, 5_000, 30_000, 90_000, 600_000]),
    after: dice.weighted([
      [4, 0],
      [1, 1],
    ]),
    probes: dice.chance(0.5),
    budget: dice.weighted<Partial<Budget>>([
      [4, {}],
      [4, { max_not_processed: refusals }],
      [1, { max_not_processed: 0 }],
      [1, { max_auto_retries: 0 }],
      [2, { max_group_retries: refusals }],
      [1, { max_outage_ms: "forever" }],
    ]),
    group: dice.chance(0.5),
  };
};

/** Dice of durable stores and volatile runs, which the sixth version added. */
const recordSeed = 0xbe_41_0d;

/** Dice of fiberless commits, which the seventh version added. */
const commitSeed = 0xc0_11_17;

/** Another processor cannot know an id that is still in the queue of the first. */
const onceOnRecord = (again: Again, { freezes }: World): Again | null => {
  if (again.how !== "new_processor") return again;
  // A frozen process has written nothing by then.
  return freezes.length > 0 ? null : { ...again, when: 20_000 };
};

const calmSeed = 0x0c_a1_3e;

/** Separates the dice of the world from the others. */
const worldSeed = 0x77_0b_1d;

const withoutWorld = (seed: number): Omit<Scenario, "world"> => {
  const dice = new Dice(seed);
  const tools = toolsOf(dice);
  const ids = dice.weighted([
    [5, "unique"],
    [1, "empty"],
    [1, "zero"],
    [2, "repeated"],
  ] as const);
  return {
    seed,
    surface: dice.chance(0.25) ? "parts" : "run",
    attempts: dice.times(dice.between(1, 6), (index) => attemptScript(dice, tools, ids, index)),
    tools,
    toolUse: {
      when: dice.weighted([
        [4, "inline"],
        [4, "background"],
        [2, "after"],
      ] as const),
      delay: dice.weighted([
        [6, 0],
        [2, 5],
        [1, 3_000],
      ]),
      twice: dice.chance(0.15),
      byId: dice.chance(0.15),
    },
    options: optionsOf(dice),
    drainMs: dice.weighted([
      [4, null],
      [3, 0],
      [3, 1_000],
    ]),
    consumer: consumerOf(dice),
    outside: dice.chance(0.35) ? dice.times(dice.between(1, 2), () => outsideOf(dice)) : [],
    answers: dice.times(dice.between(1, 4), () => answerOf(dice)),
    recorder: recorderOf(dice),
    classifyThrows: dice.chance(0.01),
  };
};

const candidates: ReadonlyArray<Pick<ToolSpec, "name" | "executor" | "effect">> = [
  { name: "read", executor: "runtime", effect: "read_only" },
  { name: "bash", executor: "runtime", effect: "mutating" },
  { name: "odd", executor: "runtime", effect: "unknown" },
  { name: "search", executor: "provider", effect: "read_only" },
  { name: "hosted", executor: "provider", effect: "mutating" },
];

const toolsOf = (dice: Dice): ReadonlyArray<ToolSpec> => {
  const guards = dice.weighted([
    [6, 1],
    [1, 0.5],
    [2, 0],
  ]);
  return candidates
    .filter(({ name }) => dice.chance(name === "hosted" ? 0.15 : 0.5))
    .map(
      (tool): ToolSpec => ({
        ...tool,
        guarded: tool.executor === "runtime" && dice.chance(guards),
        handler: dice.weighted([
          [5, "fast"],
          [4, "slow"],
          [1, "failing"],
          [1, "dying"],
          [0.4, "hanging"],
        ] as const),
        ms: dice.pick([1, 10, 700, 5_000, 100_000, 100_000]),
      }),
    );
};

const optionsOf = (dice: Dice): Scenario["options"] => ({
  reveal: dice.chance(0.2) ? "on_complete" : "live",
  canContinue: dice.chance(0.5),
  continueText: dice.chance(0.4) ? "auto" : "ask",
  cursor: dice.chance(0.25),
  refresh: dice.weighted([
    [6, "none"],
    [2, "ok"],
    [1, "failing"],
    [0.5, "dying"],
    [0.3, "hanging"],
  ] as const),
  emptyIsFailure: dice.chance(0.3),
  streaming: !dice.chance(0.03),
  policy: dice.chance(0.12) ? "strict" : "default",
  clocks: dice.weighted([
    [6, {}],
    [2, { idle: 1_000, first_progress: 2_000, silence: 1_500 }],
    [1, { attempt: 4_000 }],
    [1, { run: 20_000 }],
    [0.3, { idle: false }],
  ]),
  budget: dice.weighted<Partial<Budget>>([
    [6, {}],
    [1, { max_auto_retries: 0 }],
    [1, { max_auto_retries: 1, max_not_processed: 1 }],
    [1, { max_after_shown: 3, max_after_stall: 3, max_auto_retries: 8 }],
    [1, { max_elapsed_ms: 2_000 }],
  ]),
});

const consumerOf = (dice: Dice): Scenario["consumer"] => ({
  kind: dice.weighted([
    [8, "drain"],
    [3, "slow"],
    [1, "take"],
    [1, "failing"],
  ] as const),
  n: dice.between(1, 12),
  ms: dice.pick([1, 100, 2_500]),
});

const outsideOf = (dice: Dice): { readonly when: Moment; readonly what: Outside } => ({
  when: dice.weighted<Moment>([
    [3, { at: dice.pick([0, 1, 5, 50, 251, 700, 1_200, 5_000, 60_000]) }],
    [2, { on: "event", nth: dice.between(1, 10) }],
    [2, { on: "write", nth: dice.between(1, 8) }],
    [2, { on: "handler", nth: dice.between(1, 2) }],
    [1, { on: "question", nth: dice.between(1, 2) }],
    [1, { on: "opened", nth: dice.between(1, 3) }],
  ]),
  what: dice.weighted([
    [3, "cancel"],
    [2, "close"],
    [2, "interrupt"],
    [1, "signed_user"],
    [1, "signed_lifecycle"],
  ] as const),
});

const choices: readonly [Choice, ...Array<Choice>] = [
  "retry",
  "continue",
  "it_ran",
  "it_did_not_run",
  "accept",
  "stop",
];

const answerOf = (dice: Dice): Scenario["answers"][number] => ({
  choice: dice.weighted<Choice | "hang" | "dies">([
    [20, dice.pick(choices)],
    [12, "retry"],
    [12, "continue"],
    [0.5, "hang"],
    [0.3, "dies"],
  ]),
  delay: dice.pick([0, 0, 10, 2_000, 3_600_000]),
});

const recorderOf = (dice: Dice): Scenario["recorder"] => ({
  fails: dice.chance(0.12) ? dice.times(dice.between(1, 3), () => dice.between(0, 14)) : [],
  dies: dice.chance(0.015) ? [dice.between(0, 10)] : [],
  delays: dice.weighted<readonly [number, ...Array<number>]>([
    [6, [0]],
    [2, [0, 3, 0, 20]],
    [1, [1]],
    [0.5, [0, 0, 1_500]],
  ]),
});
