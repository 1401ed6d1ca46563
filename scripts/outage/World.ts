/**
 * Plays an hour of a process with many agents: its paths and providers, their weather, and the sleeps of the process.
 */
import { Context, Effect, Layer, Logger, Random, Scope } from "effect";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import { Dice } from "../../test/simulation/Dice.ts";
import { type Asking, type Household, type Self, type Style, spendableOf, turn } from "./Agent.ts";
import { Diary, type RunEntry } from "./Diary.ts";
import { Line } from "./Line.ts";
import type { Served } from "./Provider.ts";
import { VirtualTime } from "./VirtualTime.ts";
import { type Outage, type Sleep, type Weather, weatherOf } from "./Weather.ts";

/** The parameters of a play. */
export interface Played {
  readonly seed: number;
  readonly agents: number;
  readonly minutes: number;
}

/** Number of models of a provider, and the relative use of its paths. */
const models = 2;
const pathWeights = [6, 3, 1] as const;

/** Number of agents that share a key. */
const agentsPerKey = 20;

/** Time after the last turn in which every run must end, in milliseconds. A person may answer, and a five-minute timeout may expire. */
const behindMs = 60 * 60_000;

/** Separate seeds for probes and budgets, so that they do not affect the rest of a seed's world. */
const probesSeed = 0x9_0b_e5;
const budgetsSeed = 0xb_0d_6e;

/** Draws the paths that cannot be probed: usually none, otherwise one or all. */
const unprobedOf = (dice: Dice, paths: number): ReadonlyArray<number> => {
  const all = Array.from({ length: paths }, (_, path) => path);
  const one = dice.between(0, paths - 1);
  return dice.weighted<ReadonlyArray<number>>([
    [4, []],
    [1, [one]],
    [1, all],
  ]);
};

/** One simulated world. */
export class World {
  readonly time = new VirtualTime();
  readonly diary = new Diary();
  readonly weather: Weather;
  readonly #served: ReadonlyArray<Served>;

  constructor({ agents, minutes, seed }: Played) {
    const keys = Math.max(1, Math.ceil(agents / agentsPerKey));
    const size = { paths: pathWeights.length, keys, models };
    this.weather = weatherOf(seed, size, minutes * 60_000);
    for (const path of unprobedOf(new Dice(seed ^ probesSeed), size.paths)) this.diary.unprobed.add(path);
    this.#served = pathWeights.map((_, path) => ({
      time: this.time,
      diary: this.diary,
      line: new Line(this.time, () => {
        this.diary.probes += 1;
      }),
      limits: this.weather.limits.filter((it) => it.path === path),
    }));
    for (const outage of this.weather.outages) this.#schedule(outage);
    for (const sleep of this.weather.sleeps) this.time.at(sleep.at, () => this.#sleep(sleep));
  }

  servedOn(path: number): Served {
    const served = this.#served[path];
    if (served === undefined) throw new RangeError(`path: expected 0 to ${this.#served.length - 1}, got ${path}`);
    return served;
  }

  #schedule(outage: Outage): void {
    const { line } = this.servedOn(outage.path);
    this.time.at(outage.from, () => {
      this.diary.departures.push({ path: outage.path, at: this.time.now });
      line.leave(outage);
    });
    if (outage.kind !== "blip") this.time.at(outage.to, () => this.#comesBack(outage));
  }

  #comesBack(outage: Outage): void {
    const { path } = outage;
    const waiting = this.#findWaiting(path);
    this.diary.returns.push({ path, at: this.time.now, awayMs: outage.to - outage.from, kind: outage.kind, waiting });
    this.servedOn(path).line.comeBack();
  }

  #findWaiting(path: number): ReadonlyArray<RunEntry> {
    return [...this.diary.runs.values()].filter(
      (it) => it.path === path && it.end === "open" && it.waitsFrom !== undefined,
    );
  }

  #sleep({ ms, peers }: Sleep): void {
    this.diary.sleeps.push({ at: this.time.now, ms });
    for (const { line } of this.#served) {
      if (peers === "reset") line.reset();
      if (peers === "silent") line.silence();
    }
    this.time.jump(ms);
  }
}

/** Plays a world to its end. */
export const play = async (played: Played): Promise<World> => {
  const world = new World(played);
  const { time } = world;
  const dice = new Dice(played.seed + 1);
  const asking = new Map<string, Asking>();
  const random = { nextIntUnsafe: () => dice.between(0, 2 ** 31), nextDoubleUnsafe: () => dice.next() };
  const decisions = UserDecisions.layerAsk(
    (question) => asking.get(question.run_id)?.ask(question) ?? Effect.succeed("stop"),
  );
  const layer = StreamProcessor.layer.pipe(
    Layer.provideMerge(Layer.merge(RunRecorder.layerMemory(), decisions)),
    Layer.provideMerge(Layer.succeed(Random.Random, random)),
    Layer.provideMerge(Layer.merge(time.layer, Logger.layer([]))),
  );
  const scope = Scope.makeUnsafe();
  const built = Effect.runPromiseWith(time.context)(Layer.buildWithScope(layer, scope));
  await time.run(0);
  const context = await built;
  const home = {
    world,
    asking,
    processor: Context.get(context, StreamProcessor),
    guard: Context.get(context, ToolGuard),
  };
  for (let number = 0; number < played.agents; number += 1) {
    const own = new Dice(played.seed * 1_000_003 + number);
    const may = spendableOf(new Dice((played.seed * 1_000_003 + number) ^ budgetsSeed), number);
    Effect.runForkWith(context)(playLife({ ...selfOf(own, number), may }, { ...home, dice: own }));
  }
  await time.run(played.minutes * 60_000 + behindMs);
  return world;
};

const selfOf = (dice: Dice, number: number): Omit<Self, "may"> => ({
  name: `a${number}`,
  key: Math.floor(number / agentsPerKey),
  model: dice.between(0, models - 1),
  path: dice.weighted([
    [pathWeights[0], 0],
    [pathWeights[1], 1],
    [pathWeights[2], 2],
  ]),
  style: dice.weighted<Style>([
    [5, "terminal"],
    [3, "on_complete"],
    [2, "proxy"],
  ]),
});

/** Plays an agent's life: turns with pauses in between, and one turn with the crowd. */
const playLife = (self: Self, home: Household): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { dice, world } = home;
    const { time, weather } = world;
    yield* Effect.sleep(dice.between(0, 60_000));
    for (let number = 1; time.now < weather.crowd.outage.from - 60_000; number += 1) {
      yield* turn(self, home, `${self.name}.${number}`);
      yield* Effect.sleep(dice.between(20_000, 100_000));
    }
    yield* Effect.sleep(Math.max(0, weather.crowd.at - time.now) + dice.between(0, 500));
    yield* turn({ ...self, path: weather.crowd.outage.path }, home, `${self.name}.crowd`);
  });
