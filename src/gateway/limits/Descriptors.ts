/**
 * Reads how many file descriptors the process has and may have, and says so when there are too few: every connection takes one,
 * and one without a descriptor is no fault of its client.
 */
import { readdirSync, readFileSync } from "node:fs";
import { Clock, Effect } from "effect";
import type { Failure } from "../../domain/Failure.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";

/** Descriptors of a process beside its connections: the store, the log, libraries, and those that Node opens for itself. */
export const ownDescriptors = 64;

/** How often the log says at most that descriptors have run out, in milliseconds. */
export const ranOutEveryMs = 60_000;

/** The descriptors that the process may have; undefined if the system does not say it. */
export const maxDescriptors = (): number | undefined => {
  try {
    return limitIn(readFileSync("/proc/self/limits", "latin1"));
  } catch {
    return undefined;
  }
};

/** The soft limit of open files in the text of `/proc/self/limits`; undefined if there is none. */
export const limitIn = (text: string): number | undefined => {
  const soft = /^Max open files\s+(\d+)/m.exec(text)?.[1];
  return soft === undefined ? undefined : Number(soft);
};

/** The connections of clients for which there are descriptors: each may need another one to its provider. */
export const connectionsFor = (max: number): number => Math.max(1, Math.floor((max - ownDescriptors) / 2));

/** The descriptors that are open; undefined if the system does not say it. */
export const openDescriptors = (): number | undefined => {
  try {
    // The folder is open while it is read.
    return readdirSync("/proc/self/fd").length - 1;
  } catch {
    return undefined;
  }
};

/** Says once, at a start, that fewer descriptors are there than connections of clients and to providers may need. */
export const checkDescriptors = (maxConnections: number, max = maxDescriptors()): Effect.Effect<void> => {
  const needed = 2 * maxConnections + ownDescriptors;
  return max === undefined || max >= needed
    ? Effect.void
    : Effect.logWarning("the process may open fewer files than its connections may need; raise ulimit -n", {
        max_fds: max,
        needed_fds: needed,
        max_connections: maxConnections,
      });
};

/** What of a failure is looked at. */
export interface FailureSeen {
  readonly code?: string | undefined;
  readonly kind: Failure["kind"];
}

/** Whether a failure is the gateway's own: it had no descriptor for a connection, and nothing was sent. */
export const isOutOfDescriptors = ({ code, kind }: FailureSeen): boolean =>
  kind === "transport" && /^(?:PROXY_)?(?:EMFILE|ENFILE)$/.test(code ?? "");

let toldAt = Number.NEGATIVE_INFINITY;

/** Says in the log that descriptors have run out, at most once in `ranOutEveryMs`. */
export const reportOutOfDescriptors: Effect.Effect<void> = Effect.flatMap(Clock.Clock, (clock) => {
  const now = monotonicMs(clock);
  // A clock of a test begins anew.
  if (now >= toldAt && now - toldAt < ranOutEveryMs) return Effect.void;
  toldAt = now;
  return Effect.logError("file descriptors have run out: connections cannot be opened; raise ulimit -n", {
    max_fds: maxDescriptors(),
  });
});

/** Tells a client that it may ask again, in seconds, once another connection may have ended. */
export const askAgain: ReadonlyArray<readonly [string, string]> = [
  ["retry-after", "1"],
  ["x-should-retry", "true"],
];

/** Words for the client of a request that found no descriptor. */
export const outOfDescriptors = {
  status: 503,
  reason: "unavailable",
  message: "The gateway has no file descriptor left for a connection to the provider. Nothing was sent; try again.",
} as const;
