/**
 * Plays a cluster: a PostgreSQL of its own, three gateways, a balancer, a provider with faults, clients, and a kill every few
 * seconds.
 */
import { seeded } from "../../test/Seeded.ts";
import * as Cluster from "../postgres/Cluster.ts";
import * as Balancer from "./Balancer.ts";
import { type Wanted, want } from "./Client.ts";
import { Deaths, database } from "./Deaths.ts";
import type { Diary, Kill } from "./Diary.ts";
import { type Drawn, streams } from "./Drawn.ts";
import { freePort, Gateway } from "./Gateways.ts";
import * as Provider from "./Provider.ts";

/** What is played. */
export interface Options {
  readonly seconds: number;
  /** Streams that are open at the same time. */
  readonly streams: number;
  readonly seed: number;
  readonly nodes: number;
  /** From one kill to the next, and a gateway's lease, in milliseconds. */
  readonly killMs: number;
  readonly leaseMs: number;
  /** Told how far it is, about every five seconds. */
  readonly progress: (line: string) => void;
}

/** How often it says how far it is, in milliseconds. */
const progressMs = 5_000;

/** Longest that streams and decisions are waited for behind the load, in milliseconds. */
const behindMs = 60_000;

/** From one look at the gateways to the next, in milliseconds. */
const lookMs = 50;

const slept = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The world while it is played. */
interface World {
  readonly options: Options;
  readonly gateways: ReadonlyArray<Gateway>;
  readonly deaths: Deaths;
  readonly kills: Array<Kill>;
  readonly crashes: Array<string>;
  readonly wanted: Map<number, Wanted>;
  /** When the load ends, in milliseconds. */
  readonly until: number;
}

/** Kills one gateway after the other, and starts each again. */
const killing = async ({ crashes, deaths, gateways, kills, options, until }: World): Promise<void> => {
  const random = seeded(options.seed + 1);
  const starts: Array<Promise<void>> = [];
  for (let at = Date.now() + options.killMs; at < until; at = Math.max(at, Date.now()) + options.killMs) {
    // All are there when one is killed: so there is always one that lives on for longer than until the next kill.
    while (Date.now() < at || (!gateways.every(({ isReady }) => isReady) && Date.now() < until)) await slept(lookMs);
    const chosen = gateways[Math.floor(random() * gateways.length)];
    if (chosen === undefined || !chosen.isReady || Date.now() >= until) break;
    const [label, life] = [chosen.label, chosen.life()];
    const killedAt = Date.now();
    await chosen.kill();
    kills.push({ at: killedAt, goneAt: Date.now(), node: gateways.indexOf(chosen), life });
    await deaths.killed(label, killedAt);
    starts.push(
      chosen
        .start()
        .catch((error: unknown) => void crashes.push(error instanceof Error ? error.message : String(error))),
    );
  }
  await Promise.all(starts);
};

/** Keeps so many streams open, until the load ends. */
const load = async (world: World, next: () => Drawn, drawn: Map<number, Drawn>, balancer: Balancer.Balancer) => {
  const { options, until, wanted } = world;
  const program = async (): Promise<void> => {
    while (Date.now() < until) {
      const one = next();
      drawn.set(one.id, one);
      await want(balancer, one, (noted) => wanted.set(one.id, noted));
    }
  };
  await Promise.all(Array.from({ length: options.streams }, program));
};

const progressOf = ({ deaths, kills, wanted }: World, from: number): string => {
  const all = [...wanted.values()];
  const tries = all.flatMap((one) => one.tries);
  const undecided = deaths.left.filter(({ decidedAt }) => decidedAt === undefined).length;
  return [
    `${Math.round((Date.now() - from) / 1_000)} s`,
    `${kills.length} kills`,
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
  await Promise.all(gateways.map((gateway) => gateway.start()));
  return gateways;
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
  deaths.watch();
  const from = Date.now();
  const until = from + options.seconds * 1_000;
  const world: World = { options, gateways, deaths, kills: [], crashes, wanted: new Map(), until };
  const progress = setInterval(() => options.progress(progressOf(world, from)), progressMs);
  try {
    const over = Promise.all([load(world, streams(options.seed), drawn, balancer), killing(world)]);
    await Promise.race([over, slept(options.seconds * 1_000 + behindMs)]);
    const latest = Date.now() + behindMs;
    while (deaths.left.some(({ decidedAt }) => decidedAt === undefined) && Date.now() < latest) await slept(200);
    // What a client has is a moment older than the end on record.
    await slept(1_000);
    const remains = await deaths.remains();
    const { kills, wanted } = world;
    const { leaseMs } = options;
    return { leaseMs, wanted: [...wanted.values()], asked: provider.log, kills, left: deaths.left, remains, crashes };
  } finally {
    clearInterval(progress);
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
