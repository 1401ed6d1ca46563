/**
 * Describes the options of a whole gateway program: server, store, questions, log and processes.
 */
import { availableParallelism } from "node:os";
import { resolveRetention } from "../../recorder/retention/Retention.ts";
import { defaultFile } from "../../recorder/sql/sqlite/SqlFile.ts";
import { inMemory } from "../../recorder/store/RunStore.ts";
import type { GatewayOptions } from "./GatewayOptions.ts";
import type { Given } from "./Option.ts";
import { limitsDefault, type program, workersMax } from "./Options.ts";

/** Options of a gateway program; Options.ts describes them. Only `serve` starts several processes. */
export interface ProgramOptions extends GatewayOptions, Given<typeof program> {}

/** Returns the number of worker processes. `auto` means one per available core, up to `workersMax`. */
export const workersOf = ({ workers = 1 }: ProgramOptions): number =>
  workers === "auto" ? Math.min(workersMax, availableParallelism()) : workers;

/** Returns the store of a program: the configured one, or the default file. */
export const storeOf = ({ db }: ProgramOptions): string => db ?? defaultFile();

/** Checks the options that only a whole program has, for example the number of workers. Returns the first problem as one line. */
export const problemOf = (program: ProgramOptions): string | undefined =>
  problemOfWorkers(program) ?? problemOfAdvertise(program) ?? problemOfRetention(program);

const problemOfWorkers = (program: ProgramOptions): string | undefined =>
  workersOf(program) > 1 && storeOf(program) === inMemory
    ? "workers: several workers need a shared store, a file or a server: name one with --db, or use one worker"
    : undefined;

const problemOfAdvertise = (program: ProgramOptions): string | undefined =>
  program.advertise !== undefined && storeOf(program) === inMemory
    ? "advertise: gateways find each other in a shared store: name one with --db, or omit advertise"
    : undefined;

const problemOfRetention = (program: ProgramOptions): string | undefined => {
  const read = resolveRetention(program);
  if ("expected" in read) return `${read.name}: ${read.expected}`;
  return storeOf(program) === inMemory && (program.keepRuns ?? program.keepRunsMax) !== undefined
    ? "keepRuns: a store in memory ends with its process: name a file or a server with --db, or omit keepRuns"
    : undefined;
};

/**
 * Divides the gateway's limits among its workers.
 *
 * A worker may always hold at least one body of the maximum size, so that each worker accepts every request that a single process accepts.
 */
export const shareOf = (program: ProgramOptions, workers: number): ProgramOptions => {
  const limits = { ...limitsDefault, ...program.limits };
  const divide = (total: number) => Math.ceil(total / workers);
  return {
    ...program,
    limits: {
      ...program.limits,
      maxConnections: divide(limits.maxConnections),
      maxBodiesBytes: Math.max(divide(limits.maxBodiesBytes), Math.min(limits.maxBodyBytes, limits.maxBodiesBytes)),
    },
  };
};
