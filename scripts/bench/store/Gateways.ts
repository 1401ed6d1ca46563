/**
 * Measures the cost of streams for gateways and their store: one gateway over a SQLite file, and one and several over one PostgreSQL. All
 * take a turn in each round, in front of the same provider, and each with its own database.
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Burst, playBurst } from "../gateway/Client.ts";
import { type Contender, gateway } from "../gateway/Contenders.ts";
import { play } from "../gateway/CpuRounds.ts";
import type { Server } from "./Server.ts";
import { commonest, type Kinds, kindsOf } from "./Statements.ts";

/** The size of the measurement. */
export interface GatewaysSize {
  readonly rounds: number;
  /** Number of gateways over one database. */
  readonly gateways: number;
  /** Number of streams of one contender in one round. */
  readonly streams: number;
  /** Number of streams that each gateway plays before it is measured. */
  readonly warmUp: number;
  /** Duration of the idle measurement, in milliseconds. */
  readonly idleMs: number;
}

/** The cost of a stream or of a second, in microseconds and bytes. */
export interface Cost {
  /** CPU of all gateways together. */
  readonly gateway: number;
  readonly server: number;
  readonly wal: number;
}

/** The names of the contenders. */
export const names = {
  file: "one gateway, SQLite",
  one: "one gateway, PostgreSQL",
  several: "several gateways, one PostgreSQL",
} as const;

/** The key of a contender. */
export type Name = keyof typeof names;

/** The names of the loads. */
export const loads = {
  happy: "a happy stream of 20 events",
  repeat: "a stream whose client says that it repeats one",
} as const;

/** The key of a load. */
export type Load = keyof typeof loads;

/** The measurements of one load. */
export interface Measured {
  /** One entry per round. */
  readonly costs: Readonly<Record<Name, ReadonlyArray<Cost>>>;
  /** Statements per stream. */
  readonly statements: Readonly<Partial<Record<Name, Kinds>>>;
}

/** The measurements of this part. */
export interface Gateways {
  readonly loads: Readonly<Record<Load, Measured>>;
  /** Statements of a stream that breaks once before any content. */
  readonly broken: Kinds;
  /** Cost of several idle gateways per second. */
  readonly idle: Cost & { readonly statements: Kinds };
  /** The most frequent statements: of a stream that breaks, and of a second without streams. */
  readonly commonest: {
    readonly broken: ReadonlyArray<string>;
    readonly idle: ReadonlyArray<string>;
  };
}

/** Number of concurrent streams of a contender. */
export const concurrent = 16;

/** Number of events of a stream, without its start and its end. */
const events = 20;

/** Time after the last byte. The work in it (a commit, the end of a run) belongs to the load as well. In milliseconds. */
const settleMs = 300;

/** Number of streams that break once. The retry throttle of one gateway out of three lets this many through without a wait. */
const brokenStreams = 6;

/** Number of statements that are listed. */
const commonestMax = 12;

const credential = { authorization: "Bearer sk-0123456789abcdef0123456789abcdef" } as const;

const flags = ["--continue-text", "auto", "--linger-ms", "60000", "--access-log", "off"] as const;

interface Playing {
  readonly name: Name;
  readonly nodes: ReadonlyArray<Contender>;
  readonly database: string | undefined;
}

const burstOf = (streams: number, at: number, play: Burst["play"] = "burst"): Burst => ({
  play,
  streams,
  events,
  concurrent: at,
});

const headersOf = (load: Load): Readonly<Record<string, string>> =>
  load === "repeat" ? { ...credential, "x-stainless-retry-count": "1" } : credential;

/** Plays streams on all gateways at once, an equal share at each. */
const streams = async ({ nodes }: Playing, load: Load, count: number, play: Burst["play"] = "burst"): Promise<void> => {
  const each = burstOf(Math.ceil(count / nodes.length), Math.max(1, Math.floor(concurrent / nodes.length)), play);
  await Promise.all(nodes.map(({ url }) => playBurst({ url, headers: headersOf(load) }, "chat", each)));
  await pause(settleMs);
};

/** Number of streams that a contender actually plays for a requested count. */
const playedOf = ({ nodes }: Playing, count: number): number => Math.ceil(count / nodes.length) * nodes.length;

const cpuOf = async (nodes: ReadonlyArray<Contender>): Promise<number> => {
  const all = await Promise.all(nodes.map((node) => node.cpu()));
  return all.reduce((sum, ns) => sum + ns, 0) / 1_000;
};

/** Measures the cost of an action, divided by `per`. */
const costOf = async (
  server: Server,
  { nodes }: Playing,
  per: number,
  something: () => Promise<unknown>,
): Promise<Cost> => {
  const wal = await server.walBytes();
  const [own, others] = [await cpuOf(nodes), server.cpuUs()];
  await something();
  const [ownAfter, othersAfter] = [await cpuOf(nodes), server.cpuUs()];
  return {
    gateway: (ownAfter - own) / per,
    server: (othersAfter - others) / per,
    wal: ((await server.walBytes()) - wal) / per,
  };
};

/** Counts the statements of an action in a contender's database. */
const statementsOf = async (server: Server, { database = "" }: Playing, something: () => Promise<unknown>) => {
  await server.count();
  await something();
  return server.counted(database);
};

const measureLoad = async (
  server: Server,
  all: ReadonlyArray<Playing>,
  load: Load,
  size: GatewaysSize,
): Promise<Measured> => {
  const costs: Record<Name, Array<Cost>> = { file: [], one: [], several: [] };
  await play(all, size.rounds, async (it) => {
    const played = playedOf(it, size.streams);
    const cost = await costOf(server, it, played, () => streams(it, load, size.streams));
    costs[it.name].push(cost);
    return cost.gateway;
  });
  const statements: Partial<Record<Name, Kinds>> = {};
  for (const it of all) {
    if (it.database === undefined) continue;
    const counted = await statementsOf(server, it, () => streams(it, load, size.streams));
    statements[it.name] = kindsOf(counted, playedOf(it, size.streams));
  }
  return { costs, statements };
};

const find = (all: ReadonlyArray<Playing>, name: Name): Playing => {
  const found = all.find((it) => it.name === name);
  if (found === undefined) throw new Error(`unknown contender ${names[name]}`);
  return found;
};

const measure = async (server: Server, all: ReadonlyArray<Playing>, size: GatewaysSize): Promise<Gateways> => {
  for (const it of all) await streams(it, "happy", size.warmUp * it.nodes.length);
  const several = find(all, "several");
  console.error(`gateways: ${loads.happy} …`);
  const happy = await measureLoad(server, all, "happy", size);
  console.error(`gateways: ${loads.repeat} …`);
  const repeat = await measureLoad(server, all, "repeat", size);
  const broken = await statementsOf(server, several, () => streams(several, "happy", brokenStreams, "again"));
  console.error("gateways: idle …");
  const seconds = size.idleMs / 1_000;
  const idle = await costOf(server, several, seconds, () => pause(size.idleMs));
  const idling = await statementsOf(server, several, () => pause(size.idleMs));
  return {
    loads: { happy, repeat },
    broken: kindsOf(broken, playedOf(several, brokenStreams)),
    idle: { ...idle, statements: kindsOf(idling, seconds) },
    commonest: {
      broken: commonest(broken, playedOf(several, brokenStreams), commonestMax),
      idle: commonest(idling, seconds, commonestMax),
    },
  };
};

/**
 * Measures all contenders.
 *
 * @param upstream the URL of the provider
 */
export const gateways = async (server: Server, upstream: string, size: GatewaysSize): Promise<Gateways> => {
  const all: Array<Playing> = [];
  const begin = async (name: Name, many: number): Promise<void> => {
    const database = name === "file" ? undefined : `gateways_${name}`;
    if (database !== undefined) server.create(database);
    const store = database === undefined ? ("file" as const) : { db: server.address(database) };
    const nodes: Array<Contender> = [];
    // They start one after the other, because the first one creates the tables.
    for (let n = 0; n < many; n += 1) nodes.push(await gateway(names[name], upstream, store, flags));
    all.push({ name, nodes, database });
  };
  await begin("file", 1);
  await begin("one", 1);
  await begin("several", size.gateways);
  const found = await measure(server, all, size);
  for (const { nodes } of all) for (const node of nodes) await node.end();
  return found;
};
