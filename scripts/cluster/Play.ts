/**
 * Plays a cluster: a private PostgreSQL, gateways, a balancer, a provider with faults and clients. Every few seconds one gateway ends
 * and starts again.
 */
import { Effect, Fiber } from "effect";
import { Slowness } from "../kill/Slowness.ts";
import * as Cluster from "../postgres/Cluster.ts";
import { freePort } from "../programs/FreePort.ts";
import * as Balancer from "./Balancer.ts";
import { requestUntilWhole, type Wanted } from "./Client.ts";
import { Deaths, database } from "./Deaths.ts";
import type { Diary } from "./Diary.ts";
import { type Drawn, streams } from "./Drawn.ts";
import { Gateway, newer, type Program } from "./Gateways.ts";
import * as Provider from "./Provider.ts";
import { drawKills, drawRolls, type Restarts, restart } from "./Restarts.ts";

/** Options of a play. */
export interface Options {
  readonly seconds: number;
  /** Number of streams that are open at the same time. */
  readonly streams: number;
  readonly seed: number;
  readonly nodes: number;
  /** Minimum interval between ends of gateways, and the lease of a gateway, in milliseconds. */
  readonly killMs: number;
  readonly leaseMs: number;
  /** The version that all gateways start in and are rolled from and back to. Without it, all run this version and are killed. */
  readonly older?: Program;
  /** Minimum number of restarts. The load continues until it is reached, even beyond `seconds`. */
  readonly restarts?: number;
  /** Called with a line of progress about every five seconds. */
  readonly progress: (line: string) => void;
}

/** Interval between progress lines, in milliseconds. */
const progressMs = 5_000;

/** Timeout for streams and decisions that are pending after the load, in milliseconds. */
const behindMs = 60_000;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface World extends Restarts {
  readonly options: Options;
  readonly wanted: Map<number, Wanted>;
}

/** Keeps `options.streams` streams open until the load ends. */
const load = async (world: World, next: () => Drawn, drawn: Map<number, Drawn>, balancer: Balancer.Balancer) => {
  const { isOver, options, wanted } = world;
  const program = async (): Promise<void> => {
    while (!isOver()) {
      const one = next();
      drawn.set(one.id, one);
      await requestUntilWhole(balancer, one, (noted) => wanted.set(one.id, noted));
    }
  };
  await Promise.all(Array.from({ length: options.streams }, program));
};

const progressOf = ({ deaths, kills, options, stops, wanted }: World, from: number): string => {
  const all = [...wanted.values()];
  const tries = all.flatMap((one) => one.tries);
  const undecided = deaths.left.filter(({ decidedAt }) => decidedAt === undefined).length;
  return [
    `${Math.round((Date.now() - from) / 1_000)} s`,
    `${kills.length} kills`,
    ...(options.older === undefined ? [] : [`${stops.length} stopped`]),
    `${all.length} streams`,
    `${all.filter(({ isOver }) => !isOver).length} open`,
    `${tries.filter(({ outcome }) => outcome === "broken").length} responses broken`,
    `${deaths.left.length} runs of dead gateways, ${undecided} undecided`,
  ].join(" · ");
};

const startWorld = async (
  options: Options,
  cluster: Cluster.Cluster,
  provider: Provider.Provider,
  crashes: Array<string>,
) => {
  const upstreams = [
    "--openai-url",
    `${provider.url}/v1`,
    "--anthropic-url",
    provider.url,
    "--gemini-url",
    provider.url,
  ];
  const args = [
    "--db",
    cluster.address(database),
    "--lease-ms",
    String(options.leaseMs),
    "--access-log",
    "off",
    ...upstreams,
  ];
  const ended = (gateway: Gateway) => void crashes.push(`port ${gateway.port}: ${gateway.log.slice(-2_000)}`);
  const gateways: Array<Gateway> = [];
  for (let n = 0; n < options.nodes; n += 1) gateways.push(new Gateway(await Effect.runPromise(freePort), args, ended));
  const [one, ...others] = gateways;
  const program = options.older ?? newer;
  // The older program has never run: the first gateway fills the compile cache for the others.
  if (program === options.older) await one?.start(program);
  const rest = program === options.older ? others : gateways;
  await Promise.all(rest.map((gateway) => gateway.start(program)));
  return gateways;
};

/** Returns a function that is true once the time is over, the wanted restarts have happened, and all gateways are ready. */
const makeEndCheck = (
  { restarts = 0, seconds }: Options,
  gateways: ReadonlyArray<Gateway>,
  crashes: ReadonlyArray<string>,
) => {
  const until = Date.now() + seconds * 1_000;
  const started = (): number => gateways.reduce((sum, { versions }) => sum + versions.length - 1, 0);
  const isEnough = (): boolean => started() >= restarts && gateways.every(({ isReady }) => isReady);
  return (): boolean => Date.now() >= until && (restarts === 0 || crashes.length > 0 || isEnough());
};

/** Plays the load, and waits for the decisions about the runs of dead gateways. */
const playLoad = async (world: World, next: () => Drawn, drawn: Map<number, Drawn>, balancer: Balancer.Balancer) => {
  const { deaths, gateways, options } = world;
  const draw =
    options.older === undefined
      ? drawKills(gateways, options.seed + 1)
      : drawRolls(gateways, options.seed + 1, options.older);
  const restarting = restart(world, draw, options.killMs);
  const over = Promise.all([load(world, next, drawn, balancer), restarting]);
  await Promise.race([over, restarting.then(() => sleep(behindMs))]);
  const latest = Date.now() + behindMs;
  while (deaths.left.some(({ decidedAt }) => decidedAt === undefined) && Date.now() < latest) await sleep(200);
  // A client receives the end slightly before it is on record.
  await sleep(1_000);
};

const playWorld = async (options: Options, cluster: Cluster.Cluster): Promise<Diary> => {
  const drawn = new Map<number, Drawn>();
  const crashes: Array<string> = [];
  cluster.psql("postgres", `CREATE DATABASE ${database}`);
  const provider = await Provider.start((id) => drawn.get(id));
  options.progress(`starting ${options.nodes} gateways …`);
  const gateways = await startWorld(options, cluster, provider, crashes);
  const balancer = await Balancer.start(gateways);
  const deaths = new Deaths(cluster);
  const first = await deaths.schema();
  deaths.watch();
  const from = Date.now();
  const isOver = makeEndCheck(options, gateways, crashes);
  const world: World = { options, gateways, deaths, kills: [], stops: [], crashes, wanted: new Map(), isOver };
  const slowness = new Slowness();
  const measuring = Effect.runFork(slowness.measured);
  const progress = setInterval(() => options.progress(progressOf(world, from)), progressMs);
  try {
    await playLoad(world, streams(options.seed), drawn, balancer);
    const { kills, stops, wanted } = world;
    return {
      leaseMs: options.leaseMs,
      wanted: [...wanted.values()],
      // Copied now, because killing the gateways below closes requests that they left open.
      asked: provider.log.map((one) => ({ ...one })),
      kills,
      stops,
      left: deaths.left,
      remains: await deaths.readRemains(),
      crashes,
      versions: gateways.map(({ versions }) => versions),
      schema: { first, last: await deaths.schema() },
      slowness: slowness.factor,
    };
  } finally {
    clearInterval(progress);
    await Effect.runPromise(Fiber.interrupt(measuring));
    await deaths.close();
    await Promise.all(gateways.map((gateway) => gateway.kill()));
    balancer.close();
    provider.close();
  }
};

/** Plays a cluster, and removes everything it created. */
export const play = async (options: Options): Promise<Diary> => {
  const folder = Cluster.programs() ?? (Cluster.install() ? Cluster.programs() : undefined);
  if (folder === undefined) {
    throw new Error("this needs PostgreSQL: install it, or set $POSTGRES_BIN to the folder of its programs");
  }
  const cluster = Cluster.make(folder);
  try {
    return await playWorld(options, cluster);
  } finally {
    cluster.remove();
  }
};
