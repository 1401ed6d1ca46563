/**
 * Plays a cluster: a PostgreSQL of its own, gateways, a balancer, a provider with faults, clients, and every few seconds the end of a
 * gateway, which starts again.
 */
import { Effect, Fiber } from "effect";
import { Slowness } from "../kill/Slowness.ts";
import * as Cluster from "../postgres/Cluster.ts";
import * as Balancer from "./Balancer.ts";
import { type Wanted, want } from "./Client.ts";
import { Deaths, database } from "./Deaths.ts";
import type { Diary } from "./Diary.ts";
import { type Drawn, streams } from "./Drawn.ts";
import { freePort, Gateway, newer, type Program } from "./Gateways.ts";
import * as Provider from "./Provider.ts";
import { killing, type Restarts, restart, rolling } from "./Restarts.ts";

/** What is played. */
export interface Options {
  readonly seconds: number;
  /** Streams that are open at the same time. */
  readonly streams: number;
  readonly seed: number;
  readonly nodes: number;
  /** From one end of a gateway to the next, or longer, and a gateway's lease, in milliseconds. */
  readonly killMs: number;
  readonly leaseMs: number;
  /** The version in which all gateways begin, and from which they are rolled to this one and back; left out, all are of this one and killed. */
  readonly older?: Program;
  /** The load goes on until so many gateways have started again, also for longer than `seconds`. */
  readonly restarts?: number;
  /** Told how far it is, about every five seconds. */
  readonly progress: (line: string) => void;
}

/** How often it says how far it is, in milliseconds. */
const progressMs = 5_000;

/** Longest that streams and decisions are waited for behind the load, in milliseconds. */
const behindMs = 60_000;

const slept = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The world while it is played. */
interface World extends Restarts {
  readonly options: Options;
  readonly wanted: Map<number, Wanted>;
}

/** Keeps so many streams open, until the load ends. */
const load = async (world: World, next: () => Drawn, drawn: Map<number, Drawn>, balancer: Balancer.Balancer) => {
  const { isOver, options, wanted } = world;
  const program = async (): Promise<void> => {
    while (!isOver()) {
      const one = next();
      drawn.set(one.id, one);
      await want(balancer, one, (noted) => wanted.set(one.id, noted));
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
    ...(options.older === undefined ? [] : [`${stops.length} told to end`]),
    `${all.length} streams`,
    `${all.filter(({ isOver }) => !isOver).length} open`,
    `${tries.filter(({ outcome }) => outcome === "broken").length} responses broken`,
    `${deaths.left.length} runs of dead gateways, ${undecided} not decided yet`,
  ].join(" · ");
};

const started = async (
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
  for (let n = 0; n < options.nodes; n += 1) gateways.push(new Gateway(await freePort(), args, ended));
  const [one, ...others] = gateways;
  const program = options.older ?? newer;
  // Nobody has started it before: the first one compiles what the others find.
  if (program === options.older) await one?.start(program);
  const rest = program === options.older ? others : gateways;
  await Promise.all(rest.map((gateway) => gateway.start(program)));
  return gateways;
};

/** Whether the load has ended: its time is over, and there were as many restarts as are wanted, whose gateways are all there. */
const ending = (
  { restarts = 0, seconds }: Options,
  gateways: ReadonlyArray<Gateway>,
  crashes: ReadonlyArray<string>,
) => {
  const until = Date.now() + seconds * 1_000;
  const started = (): number => gateways.reduce((sum, { versions }) => sum + versions.length - 1, 0);
  const isEnough = (): boolean => started() >= restarts && gateways.every(({ isReady }) => isReady);
  return (): boolean => Date.now() >= until && (restarts === 0 || crashes.length > 0 || isEnough());
};

/** Plays it to its end: the load, and the decisions about what dead gateways have left. */
const playedOut = async (world: World, next: () => Drawn, drawn: Map<number, Drawn>, balancer: Balancer.Balancer) => {
  const { deaths, gateways, options } = world;
  const draw =
    options.older === undefined
      ? killing(gateways, options.seed + 1)
      : rolling(gateways, options.seed + 1, options.older);
  const restarting = restart(world, draw, options.killMs);
  const over = Promise.all([load(world, next, drawn, balancer), restarting]);
  await Promise.race([over, restarting.then(() => slept(behindMs))]);
  const latest = Date.now() + behindMs;
  while (deaths.left.some(({ decidedAt }) => decidedAt === undefined) && Date.now() < latest) await slept(200);
  // What a client has is a moment older than the end on record.
  await slept(1_000);
};

const played = async (options: Options, cluster: Cluster.Cluster): Promise<Diary> => {
  const drawn = new Map<number, Drawn>();
  const crashes: Array<string> = [];
  cluster.psql("postgres", `CREATE DATABASE ${database}`);
  const provider = await Provider.start((id) => drawn.get(id));
  options.progress(`starting ${options.nodes} gateways …`);
  const gateways = await started(options, cluster, provider, crashes);
  const balancer = await Balancer.start(gateways);
  const deaths = new Deaths(cluster);
  const first = await deaths.schema();
  deaths.watch();
  const from = Date.now();
  const isOver = ending(options, gateways, crashes);
  const world: World = { options, gateways, deaths, kills: [], stops: [], crashes, wanted: new Map(), isOver };
  const slowness = new Slowness();
  const measuring = Effect.runFork(slowness.measured);
  const progress = setInterval(() => options.progress(progressOf(world, from)), progressMs);
  try {
    await playedOut(world, streams(options.seed), drawn, balancer);
    const { kills, stops, wanted } = world;
    return {
      leaseMs: options.leaseMs,
      wanted: [...wanted.values()],
      // As they stand now: the end of the gateways closes what they have left open.
      asked: provider.log.map((one) => ({ ...one })),
      kills,
      stops,
      left: deaths.left,
      remains: await deaths.remains(),
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

/** Plays it, and leaves nothing behind. */
export const play = async (options: Options): Promise<Diary> => {
  const folder = Cluster.programs() ?? (Cluster.install() ? Cluster.programs() : undefined);
  if (folder === undefined) {
    throw new Error("this needs PostgreSQL: install it, or name the folder of its programs in $POSTGRES_BIN");
  }
  const cluster = Cluster.make(folder);
  try {
    return await played(options, cluster);
  } finally {
    cluster.remove();
  }
};
