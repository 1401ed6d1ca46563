/**
 * Injects a fault into one of several nodes over one PostgreSQL, or into its connection to the store. A fault counts only if it hit
 * something: one that hits nothing proves nothing.
 */
import { Effect } from "effect";
import type { Cluster } from "../postgres/Cluster.ts";
import type { SocketProxy } from "../postgres/SocketProxy.ts";
import type { Child } from "./ChildProcess.ts";
import { slownessMax } from "./Slowness.ts";

export const faults = [
  "kill -9",
  "stopped",
  "cut off",
  "reset",
  "clock ahead",
  "clock ahead, kill -9",
  "restarted",
] as const;
export type Fault = (typeof faults)[number];

/** Faults after which another node takes over the run. */
export const takesOver: ReadonlySet<Fault> = new Set<Fault>(["kill -9", "stopped", "cut off", "clock ahead, kill -9"]);

/** Faults that kill the node. It writes no later entry that could replace what another node recorded about its runs. */
export const kills: ReadonlySet<Fault> = new Set<Fault>(["kill -9", "clock ahead, kill -9"]);

/** Faults that hit all nodes of a server at once. */
export const strikesAll: ReadonlySet<Fault> = new Set<Fault>(["restarted"]);

/** True if the fault is the node's own clock. */
export const hasWrongClock = (fault: Fault): boolean => fault.startsWith("clock ahead");

/** The result of a played fault: its problems, and the runs or streams that it did not hit. */
export interface Outcome {
  readonly problems: ReadonlyArray<string>;
  readonly missed: ReadonlyArray<string>;
  readonly remains: ReadonlyArray<{ readonly slowness: number }>;
}

/** Maximum repetitions of a fault that missed something. */
export const againMax = 3;

/** Share of its runs that a fault may miss if the machine is too slow. */
const missedMax = 0.5;

const isTooMuch = ({ missed, remains }: Outcome): boolean =>
  missed.length > (remains.some(({ slowness }) => slowness >= slownessMax) ? missedMax * remains.length : 0);

/**
 * Plays a fault, and repeats it while it misses too much: any run on a quiet machine, more than half of them on a slow one. A problem
 * is never repeated away. If the last repetition still misses too much, the misses become problems.
 *
 * @param once plays it; its argument counts the repetitions from 0
 * @returns the last result, with the misses of all repetitions
 */
export const repeatUntilMet = <A extends Outcome, E, R>(
  once: (nth: number) => Effect.Effect<A, E, R>,
  nth = 0,
  before: ReadonlyArray<string> = [],
): Effect.Effect<A, E, R> =>
  Effect.flatMap(once(nth), (played) => {
    const missed = [...before, ...played.missed];
    if (!isTooMuch(played) || played.problems.length > 0) return Effect.succeed({ ...played, missed });
    return nth < againMax
      ? repeatUntilMet(once, nth + 1, missed)
      : Effect.succeed({ ...played, missed, problems: played.missed });
  });

/** The targets of a fault. */
export interface Struck {
  readonly cluster: Cluster;
  readonly first: Child;
  readonly proxy: SocketProxy;
  /** Duration of a stop or a disconnection, in milliseconds. */
  readonly awayMs: number;
}

/** Number of connection resets, and the interval between them in milliseconds. */
const resets = { times: 6, everyMs: 400 };

/**
 * Injects the fault and ends when it is over.
 *
 * @returns true if it hit its target: a live process, open connections, or a server that another one replaces. A wrong clock always
 *   returns true, because only the node's entries can show it.
 */
export const injectFault = ({ awayMs, cluster, first, proxy }: Struck, fault: Fault): Effect.Effect<boolean> => {
  const forAWhile = (begin: () => boolean, end: () => void) =>
    Effect.gen(function* () {
      const hasMet = begin();
      yield* Effect.sleep(awayMs);
      end();
      return hasMet;
    });
  switch (fault) {
    case "kill -9":
    case "clock ahead, kill -9":
      return Effect.sync(() => first.signal("SIGKILL"));
    case "stopped":
      return forAWhile(
        () => first.signal("SIGSTOP"),
        () => void first.signal("SIGCONT"),
      );
    case "cut off":
      return forAWhile(
        () => proxy.cut(true) > 0,
        () => void proxy.cut(false),
      );
    case "reset":
      return Effect.gen(function* () {
        let broken = 0;
        for (let time = 0; time < resets.times; time += 1) {
          broken += proxy.reset();
          yield* Effect.sleep(resets.everyMs);
        }
        return broken > 0;
      });
    case "clock ahead":
      return Effect.succeed(true);
    case "restarted":
      return Effect.sync(() => {
        const before = cluster.pid();
        cluster.stop("immediate");
        cluster.start();
        return cluster.pid() !== before;
      });
  }
};
