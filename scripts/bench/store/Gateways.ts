/**
 * Measures what streams cost gateways and their store: over a SQLite file, one gateway and several over one PostgreSQL, and one that keeps
 * the delivery log. All take their turns in each round, before the same provider and on the same server, in databases of their own.
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Burst, playBurst } from "../gateway/Client.ts";
import { type Contender, gateway } from "../gateway/Contenders.ts";
import { play } from "../gateway/CpuRounds.ts";
import type { Server } from "./Server.ts";
import { commonest, type Kinds, kindsOf } from "./Statements.ts";

/** What is measured, and how much of it. */
export interface GatewaysSize {
  readonly rounds: number;
  /** Gateways over one database. */
  readonly gateways: number;
  /** Streams of one round of one contender. */
  readonly streams: number;
  /** Streams that each gateway plays before it is measured. */
  readonly warmUp: number;
  /** How long gateways have nothing to do, in milliseconds. */
  readonly idleMs: number;
}

/** What a stream costs, or a second. Microseconds and bytes. */
export interface Cost {
  /** CPU of all gateways together. */
  readonly gateway: number;
  readonly server: number;
  readonly wal: number;
}

/** Names of the contenders. */
export const names = {
  file: "one gateway, SQLite",
  one: "one gateway, PostgreSQL",
  several: "several gateways, one PostgreSQL",
  logged: "one gateway, PostgreSQL, with the delivery log",
} as const;

/** The key of a contender. */
export type Name = keyof typeof names;

/** What streams there are. */
export const loads = {
  happy: "a happy stream of 20 events",
  repeat: "a stream whose client says that it repeats one",
} as const;

/** The key of a load. */
export type Load = keyof typeof loads;

/** What was measured of one load. */
export interface Measured {
  /** In each round. */
  readonly costs: Readonly<Record<Name, ReadonlyArray<Cost>>>;
  /** Statements of a stream. */
  readonly statements: Readonly<Partial<Record<Name, Kinds>>>;
}

/** What the part measures. */
export interface Gateways {
  readonly loads: Readonly<Record<Load, Measured>>;
  /** Statements of a stream that breaks once before it has said anything. */
  readonly broken: Kinds;
  /** Rows of the delivery log, and bytes of them, of a stream. */
  readonly logged: { readonly rows: number; readonly bytes: number };
  /** What several gateways with nothing to do cost in a second. */
  readonly idle: Cost & { readonly statements: Kinds };
  /** The statements that come oftenest: of a happy stream with the delivery log, of one that breaks, and of a second without streams. */
  readonly commonest: {
    readonly logged: ReadonlyArray<string>;
    readonly broken: ReadonlyArray<string>;
    readonly idle: ReadonlyArray<string>;
  };
}

/** Streams of a contender at one time. */
export const concurrent = 16;

/** Events of a stream, its start and its end not counted. */
const events = 20;

/** What comes after the last byte (a commit, the end of a run, what the delivery log gathers) belongs to the load as well. */
const settleMs = 300;

/** Streams that break once: as many as the throttle of retries lets through without a wait, at one gateway of three. */
const brokenStreams = 6;

/** Statements that are named. */
const commonestMax = 12;

/** A client shows something that nobody guesses: the delivery log keeps nothing for others. */
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

/** Plays so many streams, an equal part of them at each gateway, all at the same time. */
const streams = async ({ nodes }: Playing, load: Load, count: number, play: Burst["play"] = "burst"): Promise<void> => {
  const each = burstOf(Math.ceil(count / nodes.length), Math.max(1, Math.floor(concurrent / nodes.length)), play);
  await Promise.all(nodes.map(({ url }) => playBurst({ url, headers: headersOf(load) }, "chat", each)));
  await pause(settleMs);
};

/** Streams that a contender really plays where so many are asked for. */
const playedOf = ({ nodes }: Playing, count: number): number => Math.ceil(count / nodes.length) * nodes.length;

const cpuOf = async (nodes: ReadonlyArray<Contender>): Promise<number> => {
  const all = await Promise.all(nodes.map((node) => node.cpu()));
  return all.reduce((sum, ns) => sum + ns, 0) / 1_000;
};

/** What something costs, divided by how many there were of it. */
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

/** The statements that something makes in a contender's database. */
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
  const costs: Record<Name, Array<Cost>> = { file: [], one: [], several: [], logged: [] };
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

/** Rows and bytes of the log for each stream that it holds now. */
const loggedOf = async (server: Server, { database = "" }: Playing): Promise<Gateways["logged"]> => {
  const [deliveries = 0, parts = 0, bytes = 0] = server
    .psql(
      database,
      `SELECT (SELECT count(*) FROM stream_recovery_deliveries), count(*), COALESCE(sum(octet_length(sealed)), 0)
        FROM stream_recovery_deliveryparts`,
    )
    .split("|")
    .map(Number);
  return { rows: 1 + parts / deliveries, bytes: bytes / deliveries };
};

const find = (all: ReadonlyArray<Playing>, name: Name): Playing => {
  const found = all.find((it) => it.name === name);
  if (found === undefined) throw new Error(`no contender is ${names[name]}`);
  return found;
};

const measured = async (server: Server, all: ReadonlyArray<Playing>, size: GatewaysSize): Promise<Gateways> => {
  for (const it of all) await streams(it, "happy", size.warmUp * it.nodes.length);
  const [several, log] = [find(all, "several"), find(all, "logged")];
  console.error(`gateways: ${loads.happy} …`);
  const happy = await measureLoad(server, all, "happy", size);
  const logged = await loggedOf(server, log);
  const ofLog = await statementsOf(server, log, () => streams(log, "happy", size.streams));
  console.error(`gateways: ${loads.repeat} …`);
  const repeat = await measureLoad(server, all, "repeat", size);
  const broken = await statementsOf(server, several, () => streams(several, "happy", brokenStreams, "again"));
  console.error("gateways: nothing to do …");
  const seconds = size.idleMs / 1_000;
  const idle = await costOf(server, several, seconds, () => pause(size.idleMs));
  const idling = await statementsOf(server, several, () => pause(size.idleMs));
  return {
    loads: { happy, repeat },
    broken: kindsOf(broken, playedOf(several, brokenStreams)),
    logged,
    idle: { ...idle, statements: kindsOf(idling, seconds) },
    commonest: {
      logged: commonest(ofLog, size.streams, commonestMax),
      broken: commonest(broken, playedOf(several, brokenStreams), commonestMax),
      idle: commonest(idling, seconds, commonestMax),
    },
  };
};

/**
 * Measures.
 *
 * @param upstream the address of the provider
 */
export const gateways = async (server: Server, upstream: string, size: GatewaysSize): Promise<Gateways> => {
  const all: Array<Playing> = [];
  const begin = async (name: Name, many: number, more: ReadonlyArray<string> = []): Promise<void> => {
    const database = name === "file" ? undefined : `gateways_${name}`;
    if (database !== undefined) server.create(database);
    const store = database === undefined ? ("file" as const) : { db: server.address(database) };
    const nodes: Array<Contender> = [];
    // One after the other: the first one makes the tables.
    for (let n = 0; n < many; n += 1) nodes.push(await gateway(names[name], upstream, store, [...flags, ...more]));
    all.push({ name, nodes, database });
  };
  await begin("file", 1);
  await begin("one", 1);
  await begin("several", size.gateways);
  await begin("logged", 1, ["--delivery-log"]);
  const found = await measured(server, all, size);
  for (const { nodes } of all) for (const node of nodes) await node.end();
  return found;
};
