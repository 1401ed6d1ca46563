/**
 * Measures how soon the surviving gateways over the same database decide the runs of a gateway that died.
 *
 * The gateway is killed while its streams are open and their text has begun. The survivors are idle and both look for its runs; each run
 * must be taken by only one of them.
 */
import { setTimeout as pause } from "node:timers/promises";
import { hold } from "../gateway/Client.ts";
import { type Contender, gateway } from "../gateway/Contenders.ts";
import { database, type Server, using } from "./Server.ts";
import { commonest, type Kinds, kindsOf } from "./Statements.ts";

/** Number of surviving gateways. */
export const survivors = 2;

/** The result of one death. CPU is in microseconds per run, from the expiry of the dead gateway's lease. */
export interface Death {
  readonly runs: number;
  /** Time from the lease's expiry, by the server's clock, until the last run was decided, in milliseconds. */
  readonly decidedMs: number;
  /** Time from the lease's expiry until the first run was decided, in milliseconds: the survivors' delay in being sure. */
  readonly knownMs: number;
  /** CPU of all survivors together. */
  readonly gateways: number;
  readonly server: number;
  readonly statements: Kinds;
  readonly commonest: ReadonlyArray<string>;
}

/** Timeout for undecided runs after the lease's expiry, in milliseconds. Then the measurement fails. */
const longestMs = 120_000;

/** Interval at which the runs are polled, in milliseconds. */
const lookMs = 20;

/** Delay after which shown text is on record, in milliseconds, so that the open runs are those of a gateway in normal operation. */
const settleMs = 1_500;

/** Number of statements that are listed. */
const commonestMax = 12;

const flags = ["--access-log", "off"] as const;

const openRuns = async ({ rows }: Server): Promise<number> => {
  const [row] = await rows<{ readonly open: string }>(`${openRunsSql} WHERE ended_at IS NULL`);
  return Number(row?.open);
};

/** Beginning of this program's own query, which is not counted. */
const openRunsSql = "SELECT count(*)::text AS open FROM stream_recovery_runs";

/** Time until the dead gateway's lease expires, in milliseconds, by the server's clock. */
const leftMs = async ({ rows }: Server): Promise<number> => {
  const [row] = await rows<{ readonly left: string }>(
    `SELECT (l.expires_at - extract(epoch FROM clock_timestamp()) * 1000)::text AS left FROM stream_recovery_leases l
      WHERE l.id = (SELECT owner FROM stream_recovery_runs WHERE ended_at IS NULL LIMIT 1)`,
  );
  return Number(row?.left);
};

const cpuOf = async (nodes: ReadonlyArray<Contender>): Promise<number> => {
  const all = await Promise.all(nodes.map((node) => node.cpu()));
  return all.reduce((sum, ns) => sum + ns, 0) / 1_000;
};

const watchDecisions = async (server: Server, runs: number, left: ReadonlyArray<Contender>): Promise<Death> => {
  const endsAt = performance.now() + (await leftMs(server));
  await server.count();
  await pause(endsAt - performance.now());
  const [own, others] = [await cpuOf(left), server.cpuUs()];
  let knownMs = Number.NaN;
  for (;;) {
    const open = await openRuns(server);
    const at = performance.now() - endsAt;
    if (open < runs && Number.isNaN(knownMs)) knownMs = at;
    if (open === 0 || at > longestMs) {
      const [ownAfter, othersAfter] = [await cpuOf(left), server.cpuUs()];
      if (open > 0) throw new Error(`${open} of ${runs} runs are undecided ${longestMs} ms after the end of the lease`);
      const counted = await server.counted(database);
      const statements = counted.filter(({ sql }) => !sql.startsWith(openRunsSql));
      return {
        runs,
        knownMs,
        decidedMs: at,
        gateways: (ownAfter - own) / runs,
        server: (othersAfter - others) / runs,
        statements: kindsOf(statements, runs),
        commonest: commonest(statements, runs, commonestMax),
      };
    }
    await pause(lookMs);
  }
};

/**
 * Kills a gateway with this many runs, on a temporary server.
 *
 * @param upstream the URL of the provider
 */
export const death = (upstream: string, runs: number): Promise<Death> =>
  using(async (server) => {
    const store = { db: server.address(database) };
    const begin = (name: string) => gateway(name, upstream, store, flags, "every");
    const dying = await begin("the gateway that dies");
    const left: Array<Contender> = [];
    for (let n = 1; n <= survivors; n += 1) left.push(await begin(`gateway ${n} that is left`));
    await hold(dying, "chat", runs, true);
    await pause(settleMs);
    const open = await openRuns(server);
    if (open !== runs) throw new Error(`expected ${runs} open runs, got ${open}`);
    await dying.end();
    const found = await watchDecisions(server, runs, left);
    for (const node of left) await node.end();
    return found;
  });
