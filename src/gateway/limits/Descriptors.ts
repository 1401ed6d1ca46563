/**
 * Reads the number and the limit of the process's file descriptors, and warns if the limit is too low. Every connection needs a descriptor.
 * If none is left, the client is asked to retry.
 */
import { readdirSync, readFileSync } from "node:fs";
import { Clock, Effect } from "effect";
import type { Failure } from "../../domain/Failure.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";

/** Number of descriptors that are not connections: the store, the log, libraries, and those that Node opens for itself. */
export const ownDescriptors = 64;

/** Minimum interval between two log lines about exhausted descriptors, in milliseconds. */
export const ranOutEveryMs = 60_000;

/** Returns the limit of descriptors of the process; undefined if the system does not report one. */
export const maxDescriptors = (): number | undefined => {
  try {
    return limitIn(readFileSync("/proc/self/limits", "latin1"));
  } catch {
    return undefined;
  }
};

/** Parses the soft limit of open files from `/proc/self/limits`. Returns undefined if there is no limit. */
export const limitIn = (text: string): number | undefined => {
  const soft = /^Max open files\s+(\d+)/m.exec(text)?.[1];
  return soft === undefined ? undefined : Number(soft);
};

/**
 * Computes the number of client connections that the descriptors allow. Each client connection may need a second descriptor for its
 * provider.
 */
export const connectionsFor = (max: number): number => Math.max(1, Math.floor((max - ownDescriptors) / 2));

/** Returns the number of open descriptors; undefined if the system does not report it. */
export const countOpenDescriptors = (): number | undefined => {
  try {
    // Reading the folder opens a descriptor, which is not counted.
    return readdirSync("/proc/self/fd").length - 1;
  } catch {
    return undefined;
  }
};

/** Logs a warning at startup if the maximum number of connections may need more descriptors than the limit allows. */
export const checkDescriptors = (maxConnections: number, max = maxDescriptors()): Effect.Effect<void> => {
  const needed = 2 * maxConnections + ownDescriptors;
  return max === undefined || max >= needed
    ? Effect.void
    : Effect.logWarning("the limit of open files is lower than the connections may need; raise ulimit -n", {
        max_fds: max,
        needed_fds: needed,
        max_connections: maxConnections,
      });
};

/** Fields of a failure that show whether descriptors were exhausted. */
export interface FailureSeen {
  readonly code?: string | undefined;
  readonly kind: Failure["kind"];
}

/** True if the gateway had no descriptor for the connection, so that nothing was sent. */
export const isOutOfDescriptors = ({ code, kind }: FailureSeen): boolean =>
  kind === "transport" && /^(?:PROXY_)?(?:EMFILE|ENFILE)$/.test(code ?? "");

let toldAt = Number.NEGATIVE_INFINITY;

/** Logs that descriptors are exhausted, at most once per `ranOutEveryMs`. */
export const reportOutOfDescriptors: Effect.Effect<void> = Effect.flatMap(Clock.Clock, (clock) => {
  const now = monotonicMs(clock);
  // The clock of a test may restart at zero. The time of the last log line is then ignored.
  if (now >= toldAt && now - toldAt < ranOutEveryMs) return Effect.void;
  toldAt = now;
  return Effect.logError("the process has no file descriptors left and cannot open connections; raise ulimit -n", {
    max_fds: maxDescriptors(),
  });
});

/** Headers that ask a client to retry after a second. By then another connection may have ended. */
export const askAgain: ReadonlyArray<readonly [string, string]> = [
  ["retry-after", "1"],
  ["x-should-retry", "true"],
];

/** Refusal of a request if no descriptor was left for its connection. */
export const outOfDescriptors = {
  status: 503,
  reason: "unavailable",
  message: "The gateway has no file descriptor left to connect to the provider. Nothing was sent; try again.",
} as const;
