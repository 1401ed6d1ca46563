/**
 * Measures how soon the runs of a gateway that has died are decided by those that are left over the same database.
 *
 * The dead one held so many streams whose text had begun; it is killed while they are open. The others have nothing else to do, and
 * both look for its runs: what one of them takes, the other must leave.
 */
import { setTimeout as pause } from "node:timers/promises";
import { hold } from "../gateway/Client.ts";
import { type Contender, gateway } from "../gateway/Contenders.ts";
import { database, type Server, using } from "./Server.ts";
import { commonest, type Kinds, kindsOf } from "./Statements.ts";

/** Gateways that are left. */
export const survivors = 2;

/** How one death went. CPU in microseconds for a run, from the end of the dead one's lease on. */
export interface Death {
  readonly runs: number;
  /** From the end of the dead one's lease, by the server, until the last of its runs was decided, in milliseconds. */
  readonly decidedMs: number;
  /** From its end of the lease until the first of them was decided: so long the others took to be sure. */
  readonly knownMs: number;
  /** Of those that are left, together. */
  readonly gateways: number;
  readonly server: number;
  /** Statements for a run. */
  readonly statements: Kinds;
  readonly commonest: ReadonlyArray<string>;
}

/** Longest that runs may stay undecided behind the lease's end, in milliseconds; then the measurement is given up. */
const longestMs = 120_000;

/** From one look at the runs to the next, in milliseconds. */
const lookMs = 20;

/** Text that was shown is on record by then: the open runs are those of a gateway in the middle of its work. */
const settleMs = 1_500;

/** Statements that are named. */
const commonestMax = 12;

const flags = ["--access-log", "off"] as const;

const openRuns = async ({ rows }: Server): Promise<number> => {
  const [row] = await rows<{ readonly open: string }>(`${openRunsSql} WHERE ended_at IS NULL`);
  return Number(row?.open);
};

/** What this program itself asks begins so, and is not counted. */
const openRunsSql = "SELECT count(*)::text AS open FROM stream_recovery_runs";

/** When the dead one's lease ends, in milliseconds from now, by the server's clock. */
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

const watched = async (server: Server, runs: number, left: ReadonlyArray<Contender>): Promise<Death> => {
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
      if (open > 0) throw new Error(`${open} of ${runs} runs are not decided ${longestMs} ms behind the lease's end`);
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
 * Lets a gateway die that held so many runs, on a server that is gone afterwards.
 *
 * @param upstream the address of the provider
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
    if (open !== runs) throw new Error(`${open} runs are open, and not ${runs}`);
    await dying.end();
    const found = await watched(server, runs, left);
    for (const node of left) await node.end();
    return found;
  });
