/**
 * Says what happens to one of several nodes over one PostgreSQL, or to its way to the store, and lets it happen. Whether it really has
 * happened is told by what it meets: a fault that meets nothing proves nothing.
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

/** Faults behind which the run is another node's. */
export const takesOver: ReadonlySet<Fault> = new Set<Fault>(["kill -9", "stopped", "cut off", "clock ahead, kill -9"]);

/** Faults that strike all nodes of a server at once. */
export const strikesAll: ReadonlySet<Fault> = new Set<Fault>(["restarted"]);

/** The clock of the node itself is the fault. */
export const hasWrongClock = (fault: Fault): boolean => fault.startsWith("clock ahead");

/** What came of a fault that was played: what is wrong, and of what nothing can be said. */
export interface Outcome {
  readonly problems: ReadonlyArray<string>;
  readonly missed: ReadonlyArray<string>;
  /** What is left of each run or stream that it was for. */
  readonly remains: ReadonlyArray<{ readonly slowness: number }>;
}

/** How often a fault that misses something is played again. */
export const againMax = 3;

/** Part of its runs that a fault may miss on a machine that is too slow. */
const missedMax = 0.5;

const isTooMuch = ({ missed, remains }: Outcome): boolean =>
  missed.length > (remains.some(({ slowness }) => slowness >= slownessMax) ? missedMax * remains.length : 0);

/**
 * Plays a fault, and once more while it misses too much: any run on a quiet machine, more than half of them on one that is too slow. What
 * is wrong is never played away, and what is missed too often is wrong.
 *
 * @param once plays it for the so-many-th time, from 0
 * @returns what came of it last, with everything that was missed
 */
export const untilMet = <A extends Outcome, E, R>(
  once: (nth: number) => Effect.Effect<A, E, R>,
  nth = 0,
  before: ReadonlyArray<string> = [],
): Effect.Effect<A, E, R> =>
  Effect.flatMap(once(nth), (played) => {
    const missed = [...before, ...played.missed];
    if (!isTooMuch(played) || played.problems.length > 0) return Effect.succeed({ ...played, missed });
    return nth < againMax
      ? untilMet(once, nth + 1, missed)
      : Effect.succeed({ ...played, missed, problems: played.missed });
  });

/** What it happens to. */
export interface Struck {
  readonly cluster: Cluster;
  readonly first: Child;
  readonly proxy: SocketProxy;
  /** How long the node is stopped or cut off, in milliseconds. */
  readonly awayMs: number;
}

/** How often connections are reset, and how long a node has between two of them, in milliseconds. */
const resets = { times: 6, everyMs: 400 };

/**
 * Lets it happen, and ends when it is over.
 *
 * @returns whether it met what it was for: a process that was alive, connections that were open, a server that another one follows. A
 *   wrong clock is met by what the node writes.
 */
export const happens = ({ awayMs, cluster, first, proxy }: Struck, fault: Fault): Effect.Effect<boolean> => {
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
