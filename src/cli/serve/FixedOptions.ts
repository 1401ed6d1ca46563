/**
 * Says which options a program keeps as it was started with, whatever its configuration says later.
 */
import { isDeepStrictEqual } from "node:util";
import type { ProgramOptions } from "../../gateway/config/ProgramOptions.ts";

/** What stands behind the gateway was made of these when it started. */
const behind = [
  ...(["db", "deliveryLog", "onQuestion", "holdMs", "keepRuns", "keepRunsMax", "leaseMs"] as const),
  ...(["logFormat", "prices", "workers"] as const),
] satisfies ReadonlyArray<keyof ProgramOptions>;

/** Where it listens. Whether by TLS, and the longest head, stand beside what may change: see `asStarted`. */
const listening = ["host", "port"] satisfies ReadonlyArray<keyof ProgramOptions>;

/** The options that differ and need a restart, besides those that the gateway itself names. */
export const fixedIn = (started: ProgramOptions, next: ProgramOptions): ReadonlyArray<string> =>
  behind.filter((name) => !isDeepStrictEqual(started[name], next[name]));

/**
 * The next options as a process takes them that starts beside others: what needs a restart is as those have it. A worker that took
 * the place of a dead one with other options would have another store than its siblings, or another address.
 */
export const asStarted = (started: ProgramOptions, next: ProgramOptions): ProgramOptions => {
  const { limits, tls, ...rest } = next;
  const { maxHeaderBytes: _, ...others } = limits ?? {};
  const { maxHeaderBytes } = started.limits ?? {};
  const certificate = started.tls === undefined ? undefined : (tls ?? started.tls);
  return {
    ...without(rest, [...behind, ...listening]),
    ...only(started, [...behind, ...listening]),
    limits: { ...others, ...(maxHeaderBytes === undefined ? {} : { maxHeaderBytes }) },
    ...(certificate === undefined ? {} : { tls: certificate }),
  };
};

type Named = ReadonlyArray<keyof ProgramOptions>;

const without = (program: ProgramOptions, names: Named): ProgramOptions =>
  // Every option of a program may be left out, but for the types of `fromEntries`.
  Object.fromEntries(Object.entries(program).filter(([name]) => !names.some((it) => it === name))) as ProgramOptions;

const only = (program: ProgramOptions, names: Named): ProgramOptions =>
  // As above.
  Object.fromEntries(
    names.flatMap((name) => (program[name] === undefined ? [] : [[name, program[name]]])),
  ) as ProgramOptions;
