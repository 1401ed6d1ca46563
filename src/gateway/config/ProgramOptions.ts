/**
 * Describes the options of a whole gateway program: of its server, its store, its questions, its log and its processes.
 */
import { availableParallelism } from "node:os";
import type { Prices } from "../../domain/Prices.ts";
import { type Kept, retentionOf } from "../../recorder/retention/Retention.ts";
import { defaultFile } from "../../recorder/sql/sqlite/SqlFile.ts";
import { inMemory, isServer } from "../../recorder/store/RunStore.ts";
import { type GatewayOptions, limitsDefault } from "./GatewayOptions.ts";

/** A gateway, and what stands behind it. */
export interface ProgramOptions extends GatewayOptions, Kept {
  /** `memory`, an SQLite file, or `postgres://…`; left out the one that the commands read. */
  readonly db?: string;
  /** `fail` (default): no person is asked, and what is uncertain stops. `hold`: the client waits for an answer. */
  readonly onQuestion?: "fail" | "hold";
  /** A question takes its default after so many milliseconds. */
  readonly holdMs?: number;
  /** Lease of this process in the database, in milliseconds: so long after its death its runs are recovered. */
  readonly leaseMs?: number;
  /**
   * Whether a client may come back to any gateway over the same PostgreSQL: what a lingering run's client is sent is logged there for as
   * long as the run lingers, sealed with a key of the client's own. Off by default.
   */
  readonly deliveryLog?: boolean;
  /** What models cost, by name or by its beginning with `*` behind: for the page and for metrics. */
  readonly prices?: Prices;
  /** How a line of the log is written; `text` by default. */
  readonly logFormat?: "text" | "json";
  /** How many processes serve; 1 by default, and as many as this machine has cores by `auto`. Only `serve` starts them. */
  readonly workers?: number | "auto";
}

/** Most processes that serve: more than the cores of any machine that has one port. */
export const workersMax = 128;

/** How many processes serve. */
export const workersOf = ({ workers = 1 }: ProgramOptions): number =>
  workers === "auto" ? Math.min(workersMax, availableParallelism()) : workers;

/** The store of a program. */
export const storeOf = ({ db }: ProgramOptions): string => db ?? defaultFile();

/** What is wrong with a program beside its server's options, in one line. */
export const problemOf = (program: ProgramOptions): string | undefined =>
  problemOfWorkers(program) ?? problemOfDeliveryLog(program) ?? problemOfRetention(program);

const problemOfWorkers = (program: ProgramOptions): string | undefined =>
  workersOf(program) > 1 && storeOf(program) === inMemory
    ? "workers: several of them share one store, which is a file or a server: name one by --db, or serve with one worker"
    : undefined;

const problemOfDeliveryLog = (program: ProgramOptions): string | undefined =>
  program.deliveryLog === true && !isServer(storeOf(program))
    ? "deliveryLog: gateways share it in PostgreSQL: name an address by --db (postgres://…), or leave it out"
    : undefined;

const problemOfRetention = (program: ProgramOptions): string | undefined => {
  const read = retentionOf(program);
  if ("expected" in read) return `${read.name}: ${read.expected}`;
  return storeOf(program) === inMemory && (program.keepRuns ?? program.keepRunsMax) !== undefined
    ? "keepRuns: a store in memory ends with its process: name a file or a server by --db, or leave it out"
    : undefined;
};

/**
 * The options of one of so many workers: what a gateway may hold as a whole is shared out.
 *
 * A worker's share of all bodies is never less than one body may be, so that what one process takes any worker takes.
 */
export const shareOf = (program: ProgramOptions, workers: number): ProgramOptions => {
  const limits = { ...limitsDefault, ...program.limits };
  const share = (total: number) => Math.ceil(total / workers);
  return {
    ...program,
    limits: {
      ...program.limits,
      maxConnections: share(limits.maxConnections),
      maxBodiesBytes: Math.max(share(limits.maxBodiesBytes), Math.min(limits.maxBodyBytes, limits.maxBodiesBytes)),
    },
  };
};
