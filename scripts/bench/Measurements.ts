/**
 * The measurements that a child process can make, with their sizes and results.
 */
import type { Adapters, AdaptersSize } from "./Adapters.ts";
import type { Arguments, ArgumentsSize } from "./Arguments.ts";
import type { Deciding, DecidingSize } from "./Deciding.ts";
import type { Growth, GrowthSize } from "./Growth.ts";
import type { Happy, HappySize } from "./Happy.ts";
import type { Idle, IdleSize } from "./Idle.ts";
import type { NextRequest, NextRequestSize } from "./NextRequest.ts";
import type { Sqlite, SqliteSize } from "./Sqlite.ts";
import type { Stalls, StallsSize } from "./Stalls.ts";
import type { Sweep, SweepSize } from "./store/Sweep.ts";
import type { Writes, WritesSize } from "./store/Writes.ts";
import type { Throughput, ThroughputSize } from "./Throughput.ts";

/** The size and the result of each measurement, by name. */
export interface Measurements {
  readonly throughput: { readonly size: ThroughputSize; readonly result: Throughput };
  readonly happy: { readonly size: HappySize; readonly result: Happy };
  readonly idle: { readonly size: IdleSize; readonly result: Idle };
  readonly growth: { readonly size: GrowthSize; readonly result: Growth };
  readonly deciding: { readonly size: DecidingSize; readonly result: Deciding };
  readonly stalls: { readonly size: StallsSize; readonly result: Stalls };
  readonly sqlite: { readonly size: SqliteSize; readonly result: Sqlite };
  readonly store_writes: { readonly size: WritesSize; readonly result: Writes };
  readonly store_sweep: { readonly size: SweepSize; readonly result: Sweep };
  readonly adapters: { readonly size: AdaptersSize; readonly result: Adapters };
  readonly arguments: { readonly size: ArgumentsSize; readonly result: Arguments };
  readonly next_request: { readonly size: NextRequestSize; readonly result: NextRequest };
}

export type MeasurementName = keyof Measurements;

/** Makes one measurement. Loads only the code it needs, so that no other code is on its heap. */
export const measure = async (name: string, size: unknown): Promise<unknown> => {
  const load = table[name];
  if (load === undefined) throw new Error(`unknown measurement ${name}`);
  const module = await load();
  // Safe: the parent wrote the size with `Processes.once`, which ties it to the name.
  return (module.measure as (size: unknown) => unknown)(size);
};

const table: Readonly<Record<string, () => Promise<{ readonly measure: unknown }>>> = {
  throughput: () => import("./Throughput.ts"),
  happy: () => import("./Happy.ts"),
  idle: () => import("./Idle.ts"),
  growth: () => import("./Growth.ts"),
  deciding: () => import("./Deciding.ts"),
  stalls: () => import("./Stalls.ts"),
  sqlite: () => import("./Sqlite.ts"),
  store_writes: () => import("./store/Writes.ts"),
  store_sweep: () => import("./store/Sweep.ts"),
  adapters: () => import("./Adapters.ts"),
  arguments: () => import("./Arguments.ts"),
  next_request: () => import("./NextRequest.ts"),
} satisfies Record<MeasurementName, unknown>;
