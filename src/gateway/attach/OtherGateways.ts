/**
 * Lets gateways that share a store reach each other at their advertised addresses.
 *
 * A gateway with an address keeps it in a row of the store, which expires if the gateway dies. If a client returns, the gateway reads the
 * rows of the others and asks them at their ordinary port with signed requests (`SignedWire`). A gateway without an address neither asks
 * others nor is asked.
 */
import type { IncomingMessage } from "node:http";
import { Clock, Effect, Option, Schema, type Scope } from "effect";
import { runWithin } from "../../recorder/MonotonicTime.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import type { Fact, SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { GatewayAddress } from "../config/GatewayAddress.ts";
import { sharedKey } from "../workers/SharedKey.ts";
import { type AskError, type Destination, hopPath, type Query, SignedWire } from "../workers/SignedWire.ts";

/** Lifetime of the row of a dead gateway, in milliseconds. */
export const addressMs = 60_000;

/** Interval between two writes of this gateway's address, in milliseconds. */
const renewMs = 20_000;

/**
 * Maximum time that a returning client waits for the addresses to be read, in milliseconds. After that, the last known addresses are used.
 */
const readMs = 250;

/** Maximum number of other gateways that are asked. Those with the newest rows are asked. */
const gatewaysMax = 64;

/** Maximum time that a shutdown waits for the removal of its row, in milliseconds. */
const removeMs = 500;

const Address = Schema.Struct({
  origin: GatewayAddress,
  /** The gateway's wall clock when it wrote the row, in milliseconds since the epoch. */
  at: Schema.Finite,
});

const readAddress = Schema.decodeUnknownOption(Schema.fromJsonString(Address));

/** Explanations of a failed query, for an operator. */
const failures: Readonly<Record<AskError["reason"], string>> = {
  gone: "it cannot be reached, or TLS does not trust its certificate",
  late: "it does not reply in time",
  refused: "it refuses the request, so the address may belong to another process",
};

/** The gateways that have an address, as seen by one of them. */
export class OtherGateways {
  /** Address of this gateway, without a trailing slash. */
  readonly origin: string;
  readonly wire: SignedWire;
  readonly #facts: SharedFacts;
  readonly #clock: Clock.Clock;
  readonly #reads = new OutageLog({
    away: "cannot read the addresses of other gateways",
    back: "the addresses of other gateways can be read again",
  });
  readonly #asks = new OutageLog({
    away: "cannot ask another gateway for the runs of returning clients",
    back: "other gateways can be asked for the runs of returning clients again",
  });
  /** Last known origins, at most `gatewaysMax`, each with the offset of its clock from this gateway's clock, in milliseconds. */
  #known: ReadonlyMap<string, number> = new Map();

  private constructor(origin: string, wire: SignedWire, facts: SharedFacts, clock: Clock.Clock) {
    this.origin = origin;
    this.wire = wire;
    this.#facts = facts;
    this.#clock = clock;
  }

  /** Creates the service. The gateway calls `publish` when it starts to serve. */
  static readonly make = Effect.fnUntraced(function* (
    address: string,
    facts: SharedFacts,
  ): Effect.fn.Return<OtherGateways, never, Scope.Scope> {
    const { origin } = new URL(address);
    const wire = yield* SignedWire.make(sharedKey(facts.secret, "hop"), origin);
    return new OtherGateways(origin, wire, facts, yield* Clock.Clock);
  });

  /** Reads the addresses of the other gateways. If the store does not reply within `readMs`, returns the last known addresses. */
  readonly others: Effect.Effect<ReadonlyArray<string>> = Effect.suspend(() =>
    Effect.map(this.#reads.tryWithin(this.#facts.all("gateway"), readMs), (rows) => {
      if (rows !== undefined) this.#known = this.#knownOf(rows);
      return [...this.#known.keys()];
    }),
  );

  /**
   * Extracts addresses and clock offsets. The store measures the age of a row, and the row contains its gateway's time at the write, so
   * their sum is that gateway's current time.
   */
  #knownOf(rows: ReadonlyArray<Fact>): ReadonlyMap<string, number> {
    const now = this.#clock.currentTimeMillisUnsafe();
    const known = new Map<string, number>();
    for (const { ageMs, value } of rows) {
      const address = Option.getOrUndefined(readAddress(value));
      if (address === undefined || known.size >= gatewaysMax) continue;
      const { origin } = new URL(address.origin);
      if (origin !== this.origin && !known.has(origin)) known.set(origin, address.at + ageMs - now);
    }
    return known;
  }

  /**
   * Publishes the address of this gateway while the scope is open. If the store becomes unavailable, other gateways keep the address for
   * `addressMs`.
   *
   * Each renewal also reads the other addresses, so that they are known if the store is slow when a client returns.
   */
  get publish(): Effect.Effect<void, never, Scope.Scope> {
    const facts = this.#facts;
    const put = Effect.suspend(() => {
      const value = { origin: this.origin, at: this.#clock.currentTimeMillisUnsafe() } satisfies typeof Address.Type;
      return Effect.ignore(facts.put("gateway", facts.node, JSON.stringify(value), addressMs));
    });
    const removed = Effect.asVoid(runWithin(Effect.ignore(facts.take("gateway", facts.node)), removeMs));
    return Effect.andThen(
      Effect.addFinalizer(() => removed),
      Effect.asVoid(
        Effect.forkScoped(Effect.forever(put.pipe(Effect.andThen(this.others), Effect.andThen(Effect.sleep(renewMs))))),
      ),
    );
  }

  /** Returns the destination for requests to a gateway. The requests are signed with the time of that gateway's clock. */
  destinationOf(origin: string): Destination {
    return { origin, aheadMs: this.#known.get(origin) ?? 0 };
  }

  /** Asks a gateway. A failure is logged, because only an operator can correct an address. */
  ask<A, B>(query: Query<A, B>, value: A, origin: string): Effect.Effect<B, AskError> {
    return this.wire.ask(query, value, this.destinationOf(origin)).pipe(
      Effect.tap(this.#asks.recordSuccess),
      Effect.tapError(({ reason }) => this.#asks.recordFailure(`${origin}: ${failures[reason]}`)),
    );
  }

  /** True for a request that only other gateways send. */
  isFor({ url }: Pick<IncomingMessage, "url">): boolean {
    return url === hopPath;
  }
}
