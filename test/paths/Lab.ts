/**
 * A path for tests that can be healthy or down, and runs that are admitted to it.
 */
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import type { Probed } from "../../src/paths/Path.ts";
import { type Admission, type Admitted, Paths, type Scope, type Wait } from "../../src/paths/Paths.ts";

/** The virtual time, in milliseconds. */
const virtualNow = TestClock.testClockWith((clock) => Effect.sync(() => clock.currentTimeMillisUnsafe()));

export const scope: Scope = { path: "https://a", credential: "c", model: "m" };

export class Network {
  /** The result of a probe. */
  finds: Probed = { _tag: "works" };
  /** Duration of a probe, in milliseconds. */
  takes = 0;
  probes = 0;
  probing = 0;
  /** Maximum concurrent probes so far. */
  probingMost = 0;
  dropped = 0;

  readonly probe: Effect.Effect<Probed> = Effect.suspend(() => {
    this.probes += 1;
    this.probing += 1;
    this.probingMost = Math.max(this.probingMost, this.probing);
    return Effect.sleep(this.takes).pipe(
      Effect.map(() => this.finds),
      Effect.ensuring(
        Effect.sync(() => {
          this.probing -= 1;
        }),
      ),
    );
  });

  readonly dropIdle = (): void => {
    this.dropped += 1;
  };

  fail(code = "ECONNREFUSED"): void {
    this.finds = { _tag: "failed", reason: "network", code };
  }

  mend(): void {
    this.finds = { _tag: "works" };
  }

  get isWell(): boolean {
    return this.finds._tag === "works";
  }
}

/** The runs of a test and their counts. */
export class Runs {
  readonly ends: Array<Admitted> = [];
  readonly told: Array<Wait> = [];
  /** The times at which requests were sent, in milliseconds. */
  readonly sent: Array<number> = [];
  /** Requests in flight without a head. */
  going = 0;
  goingMost = 0;
  answered = 0;
  /** Maximum requests in flight beyond the eight of a first wave and one for each head. */
  beyond = 0;

  /** Retries until a request is answered or no longer admitted. A request has its head after 100 ms, or cannot connect. */
  run(network: Network, over: Partial<Admission> = {}): Effect.Effect<void, never, Paths> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const end = yield* this.request(network, over);
        if (end !== "again") return;
      }
    });
  }

  request(network: Network, over: Partial<Admission> = {}): Effect.Effect<"answered" | "again" | "gone", never, Paths> {
    return Effect.gen({ self: this }, function* () {
      const paths = yield* Paths;
      let leave = (): void => {};
      const admitted = yield* paths.admit({
        scope,
        maxRetryAfterMs: 60_000,
        withinMs: Number.POSITIVE_INFINITY,
        onWait: (wait) => void this.told.push(wait),
        hold: (given) => {
          leave = given;
        },
        ...over,
      });
      if (admitted._tag !== "admitted") {
        this.ends.push(admitted);
        return "gone";
      }
      this.sent.push(yield* virtualNow);
      this.going += 1;
      this.goingMost = Math.max(this.goingMost, this.going);
      this.beyond = Math.max(this.beyond, this.going - 8 - this.answered);
      yield* Effect.sleep(network.isWell ? 100 : 1);
      this.going -= 1;
      if (!network.isWell) yield* paths.recordConnectFailure(over.scope ?? scope, "ECONNREFUSED");
      else {
        this.answered += 1;
        paths.recordResponse(over.scope ?? scope);
        this.ends.push(admitted);
      }
      leave();
      return network.isWell ? "answered" : "again";
    });
  }
}

/** A path that was reached and can be probed. */
export const attached = (network: Network, path: string = scope.path): Effect.Effect<Paths["Service"], never, Paths> =>
  Effect.map(Paths, (paths) => {
    paths.attach(path, network);
    paths.recordResponse({ ...scope, path });
    return paths;
  });

/** A path that has just been found down. */
export const downPath = (network: Network): Effect.Effect<Paths["Service"], never, Paths> =>
  Effect.gen(function* () {
    const paths = yield* attached(network);
    network.fail();
    yield* paths.recordConnectFailure(scope, "ECONNREFUSED");
    return paths;
  });
