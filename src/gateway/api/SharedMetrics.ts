/**
 * Gathers the metrics of all workers: the scraped worker asks its siblings.
 *
 * Each worker keeps its counts in a file next to its socket. If the worker dies, its siblings read the file until a successor continues
 * from the counts, so that totals do not fall.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Effect, Option, Schema, type Scope } from "effect";
import { query } from "../workers/SignedWire.ts";
import type { WorkerSockets } from "../workers/WorkerSockets.ts";
import { addWorkerNumber, lastingRows, MetricRows, sum } from "./MetricRows.ts";

/** Asks a worker for its series, including the counts of its predecessors. */
const askMetrics = query("metrics_told", Schema.Null, MetricRows, 1_000);

/** Interval at which a worker saves its series, in milliseconds. A killed worker loses the counts since its last save. */
export const keepMs = 5_000;

const Kept = Schema.fromJsonString(Schema.toCodecJson(MetricRows));
const encodeKept = Schema.encodeSync(Kept);
const decodeKept = Schema.decodeUnknownOption(Kept);

/** Returns the path of the file with a worker's counts. */
export const fileOf = (folder: string, worker: number): string => join(folder, `${worker}.metrics`);

/**
 * Shares a worker's metrics while the scope is open.
 *
 * @param own the worker's own series
 * @returns the series of all workers
 */
export const share = Effect.fnUntraced(function* (
  { askOthers, folder, others, serveQuery: replies, self }: WorkerSockets["Service"],
  own: Effect.Effect<MetricRows>,
): Effect.fn.Return<Effect.Effect<MetricRows>, never, Scope.Scope> {
  const before = readKept(folder, self);
  let last = "";
  const kept = Effect.map(own, (rows) => {
    const counters = lastingRows(rows);
    const text = JSON.stringify(counters);
    // Unchanged counts are not written again.
    if (text !== last) saveRows(folder, self, sum([counters, before]));
    last = text;
    return rows;
  });
  const here = Effect.map(kept, (rows) => sum([addWorkerNumber(self, rows), before]));
  yield* replies(askMetrics, () => here);
  yield* Effect.addFinalizer(() => kept);
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(keepMs), kept)));
  return Effect.map(Effect.all([here, askOthers(askMetrics, null)], { concurrency: 2 }), ([mine, replied]) => {
    const silent = others.filter((other) => !replied.some(({ worker }) => worker === other));
    return sum([mine, ...replied.map(({ value }) => value), ...silent.map((worker) => readKept(folder, worker))]);
  });
});

/**
 * Saves counts. A failed write is retried at the next interval. If the worker dies before, the counts since the last successful write are
 * lost.
 */
const saveRows = (folder: string | undefined, worker: number, rows: MetricRows): void => {
  if (folder === undefined) return;
  const file = fileOf(folder, worker);
  try {
    writeFileSync(`${file}.new`, encodeKept(rows));
    renameSync(`${file}.new`, file);
  } catch {
    // The folder was deleted or the disk is full.
  }
};

/** Reads the counts that a predecessor with the same worker number saved; empty if there are none. */
const readKept = (folder: string | undefined, worker: number): MetricRows => {
  if (folder === undefined) return [];
  try {
    return Option.getOrElse(decodeKept(readFileSync(fileOf(folder, worker), "utf8")), () => []);
  } catch {
    return [];
  }
};
