/**
 * Describes the options of a whole gateway program: of its server, its store, its questions, its log and its processes.
 */
import { availableParallelism } from "node:os";
import { retentionOf } from "../../recorder/retention/Retention.ts";
import { defaultFile } from "../../recorder/sql/sqlite/SqlFile.ts";
import { inMemory, isServer } from "../../recorder/store/RunStore.ts";
import type { GatewayOptions } from "./GatewayOptions.ts";
import type { Given } from "./Option.ts";
import { limitsDefault, type program, workersMax } from "./Options.ts";

/** A gateway, and what stands behind it, which Options.ts describes. Only `serve` starts several processes. */
export interface ProgramOptions extends GatewayOptions, Given<typeof program> {}

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
