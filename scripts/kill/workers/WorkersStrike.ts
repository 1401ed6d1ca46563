/**
 * Injects the planned faults into the processes of a gateway.
 */
import { Effect, Fiber } from "effect";
import { leaseMs } from "../streams/StreamStates.ts";
import type { WorkersGateway } from "./WorkersGateway.ts";
import { faults, type WorkersRound } from "./WorkersPlan.ts";

/** Duration of a worker's stop, in milliseconds. By then another worker has its runs, but the supervisor still waits for it. */
const stoppedMs = leaseMs + 6_000;

/** The time of the last fault so far, in milliseconds since the epoch. */
export interface Struck {
  at: number;
  /** The time at which the store accepted writes again. */
  backAt: number;
}

/** Injects the faults of a round, and ends after the last one. */
export const strike = (round: WorkersRound, gateway: WorkersGateway, struck: Struck): Effect.Effect<void> =>
  Effect.gen(function* () {
    const away = yield* Effect.forkChild(storeAway(round, gateway, struck), { startImmediately: true });
    struck.at = Date.now();
    yield* happens(round, gateway, struck);
    if (faults[round.fault].drains) yield* Effect.promise(() => gateway.startSuccessor());
    yield* Fiber.join(away);
  });

const storeAway = ({ awayMs }: WorkersRound, gateway: WorkersGateway, struck: Struck): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (awayMs === 0) return;
    const release = gateway.lock();
    yield* Effect.sleep(awayMs);
    release();
    struck.backAt = Date.now();
  });

const happens = (
  { betweenMs, fault, victims }: WorkersRound,
  gateway: WorkersGateway,
  struck: Struck,
): Effect.Effect<void> => {
  const [first = 0, second = first] = victims;
  const kill = (...all: ReadonlyArray<number>) =>
    Effect.sync(() => {
      struck.at = Date.now();
      for (const worker of all) gateway.signal(worker, "SIGKILL");
    });
  const then = (next: Effect.Effect<void>) => Effect.andThen(Effect.sleep(betweenMs), next);
  const supervisor = (name: "SIGKILL" | "SIGTERM") => Effect.sync(() => void gateway.end(name));
  switch (fault) {
    case "worker killed":
    case "two workers killed":
      return kill(...victims);
    case "workers killed in turn":
      return Effect.andThen(kill(first), then(kill(second)));
    case "worker killed twice":
      return Effect.suspend(() => {
        const replaced = gateway.replaced(first);
        return Effect.andThen(kill(first), Effect.andThen(replaced, kill(first)));
      });
    case "worker stopped":
      return gateway
        .stop(first)
        .pipe(
          Effect.andThen(Effect.sleep(stoppedMs)),
          Effect.andThen(Effect.sync(() => gateway.signal(first, "SIGCONT"))),
        );
    case "worker hangs":
      return Effect.suspend(() => {
        const replaced = gateway.replaced(first);
        return Effect.andThen(gateway.stop(first), Effect.asVoid(replaced));
      });
    case "supervisor killed":
      return supervisor("SIGKILL");
    case "all killed":
      return Effect.andThen(supervisor("SIGKILL"), kill(...gateway.pids().keys()));
    case "supervisor killed, then a worker":
      return Effect.andThen(supervisor("SIGKILL"), then(kill(first)));
    case "terminated":
      return supervisor("SIGTERM");
    case "terminated, then a worker killed":
      return Effect.andThen(supervisor("SIGTERM"), then(kill(first)));
  }
};
