/**
 * Lets gateways over one store reach each other at their advertised addresses.
 *
 * A gateway with an address keeps it in a row of the store, which expires if the gateway dies, and reads those of the others when a client
 * returns. It answers their signed requests (`SignedWire`) at its ordinary port. A gateway without an address neither asks nor is asked.
 */
import type { IncomingMessage } from "node:http";
import { Clock, Effect, Option, Schema, type Scope } from "effect";
import { runWithin } from "../../recorder/MonotonicTime.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import type { Fact, SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { GatewayAddress } from "../config/GatewayAddress.ts";
import { sharedKey } from "../workers/SharedKey.ts";
import { type AskError, type Destination, hopPath, type Query, SignedWire } from "../workers/SignedWire.ts";

/** Time for which the address of a dead gateway is known, in milliseconds. */
export const addressMs = 60_000;

/** Pause between two writes of the own address, in milliseconds. */
const renewMs = 20_000;

/** Maximum wait of a returning client for the addresses, in milliseconds. After it the last known ones count. */
const readMs = 250;

/** Maximum number of gateways that are asked; the most recently renewed addresses count. */
const gatewaysMax = 64;

/** Time for which a shutdown waits for its address to be removed, in milliseconds. */
const removeMs = 500;

const Address = Schema.Struct({
  origin: GatewayAddress,
  /** The gateway's wall clock when it wrote the row, in milliseconds since the epoch. */
  at: Schema.Finite,
});

const readAddress = Schema.decodeUnknownOption(Schema.fromJsonString(Address));

/** Explains a failed query to an operator. */
const failures: Readonly<Record<AskError["reason"], string>> = {
  gone: "it cannot be reached, or TLS does not trust its certificate",
  late: "it does not reply in time",
  refused: "it refuses the request, so the address may belong to another process",
};

/** The gateways with an address, as seen by one of them. */
export class OtherGateways {
  /** Own address, without a trailing slash. */
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
  /** Last known origins, at most `gatewaysMax`, with the time by which their clocks are ahead, in milliseconds. */
  #known: ReadonlyMap<string, number> = new Map();

  private constructor(origin: string, wire: SignedWire, facts: SharedFacts, clock: Clock.Clock) {
    this.origin = origin;
    this.wire = wire;
    this.#facts = facts;
    this.#clock = clock;
  }

  /** Creates the service. Call `publish` when this gateway serves. */
  static readonly make = Effect.fnUntraced(function* (
    address: string,
    facts: SharedFacts,
  ): Effect.fn.Return<OtherGateways, never, Scope.Scope> {
    const { origin } = new URL(address);
    const wire = yield* SignedWire.make(sharedKey(facts.secret, "hop"), origin);
    return new OtherGateways(origin, wire, facts, yield* Clock.Clock);
  });

  /** Reads the addresses of the others. */
  readonly others: Effect.Effect<ReadonlyArray<string>> = Effect.suspend(() =>
    Effect.map(this.#reads.tryWithin(this.#facts.all("gateway"), readMs), (rows) => {
      if (rows !== undefined) this.#known = this.#knownOf(rows);
      return [...this.#known.keys()];
    }),
  );

  /**
   * Reads the addresses, and the differences between the clocks: the store measures the age of a row, and the row contains the time at
   * which its gateway wrote it.
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
   * Publishes the own address while the scope is open. While the store is unavailable, others keep it for `addressMs`.
   *
   * Their addresses are read each time too, so that a client which returns while the store is slow still finds them.
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

  /** Returns the destination of a gateway. Requests to it are signed with the time of its clock. */
  to(origin: string): Destination {
    return { origin, aheadMs: this.#known.get(origin) ?? 0 };
  }

  /** Asks a gateway. A failure is logged, because only an operator can repair an address. */
  ask<A, B>(query: Query<A, B>, value: A, origin: string): Effect.Effect<B, AskError> {
    return this.wire.ask(query, value, this.to(origin)).pipe(
      Effect.tap(this.#asks.recordSuccess),
      Effect.tapError(({ reason }) => this.#asks.recordFailure(`${origin}: ${failures[reason]}`)),
    );
  }

  /** True for a request that only another gateway sends. */
  isFor({ url }: Pick<IncomingMessage, "url">): boolean {
    return url === hopPath;
  }
}
