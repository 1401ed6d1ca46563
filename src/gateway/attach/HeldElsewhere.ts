/**
 * Tracks which siblings have live runs without a reader. A request of this process may repeat such a run even without a sign of a repeat.
 * Each of these runs has a row in the store while its process keeps it; a run whose client stays to the end costs no write. A request with
 * a sign of a repeat asks every sibling instead (`Siblings`).
 *
 * Siblings see a row after a short delay, and a repeat that arrives earlier starts a new run. Only the owner of a run decides who attaches.
 * A stale row of a dead process costs one request to the process that has taken its place.
 */
import { Effect, FiberSet, Option, Schema, type Scope } from "effect";
import * as FactPolling from "../../recorder/shared/FactPolling.ts";
import type { SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { GatewayAddress } from "../config/GatewayAddress.ts";
import { HopKey } from "./HopMessage.ts";

/** Lifetime of the row of a dead process, in milliseconds. */
export const heldMs = 3_600_000;

const Held = Schema.Struct({
  /** Folder of the gateway's sockets; empty if the gateway has only one process. */
  folder: Schema.String.check(Schema.isMaxLength(4_096)),
  worker: Schema.Natural,
  /** Address at which other gateways reach this gateway, if it has one. */
  origin: Schema.optionalKey(GatewayAddress),
  key: HopKey,
});

const readHeld = Schema.decodeUnknownOption(Schema.fromJsonString(Held));

/** Place of a process among those that share the store. */
interface HeldPlace {
  /** Folder of the gateway's sockets; undefined if its workers cannot reach each other. */
  readonly folder: string | undefined;
  /** Number of this worker. */
  readonly self: number;
  /** Address of this gateway; undefined if other gateways cannot reach it. */
  readonly origin?: string | undefined;
}

/** Identifies a sibling: a worker of this gateway by its number, another gateway by its address. */
export type SiblingName = number | string;

/** Keys of the live runs without a reader: those of the siblings, and those of this process. */
export class HeldElsewhere {
  /** Siblings that have live runs without a reader, by the key of the request. */
  #owners: ReadonlyMap<string, ReadonlySet<SiblingName>> = new Map();
  /** Number of this process's live runs without a reader, by the key of the request. */
  readonly #own = new Map<string, number>();
  readonly #tell: (key: string, isHeld: boolean) => void;

  private constructor(tell: (key: string, isHeld: boolean) => void) {
    this.#tell = tell;
  }

  /** Publishes and reads the keys while the scope is open. */
  static readonly make = Effect.fnUntraced(function* (
    { folder = "", origin, self: worker }: HeldPlace,
    facts: SharedFacts,
  ): Effect.fn.Return<HeldElsewhere, never, Scope.Scope> {
    const run = yield* Effect.flatMap(FiberSet.make<void>(), (fibers) => FiberSet.runtime(fibers)<never>());
    const made = new HeldElsewhere((key, isHeld) => {
      const row = `${origin ?? ""} ${folder} ${worker} ${key}`;
      const place = { folder, worker, ...(origin === undefined ? {} : { origin }) };
      const value = JSON.stringify({ ...place, key } satisfies typeof Held.Type);
      // If the store is unavailable, siblings do not learn of the run, and a repeat that they receive starts a new one.
      run(Effect.ignore(isHeld ? facts.put("held", row, value, heldMs) : facts.take("held", row)));
    });
    const outage = {
      away: "cannot read the runs that clients of other processes have left",
      back: "the runs that clients of other processes have left can be read again",
    };
    yield* FactPolling.make(facts, "held", outage, (all) => {
      const owners = new Map<string, Set<SiblingName>>();
      for (const { value } of all) {
        const held = Option.getOrUndefined(readHeld(value));
        const name = held === undefined ? undefined : siblingOf(held, { folder, worker, origin });
        if (held !== undefined && name !== undefined)
          owners.set(held.key, (owners.get(held.key) ?? new Set()).add(name));
      }
      made.#owners = owners;
    });
    return made;
  });

  /** Returns the siblings that have a live run without a reader whose request has this key. */
  ownersOf(key: string): ReadonlySet<SiblingName> {
    return this.#owners.get(key) ?? none;
  }

  /** True if no sibling is known to have a live run without a reader. */
  get isEmpty(): boolean {
    return this.#owners.size === 0;
  }

  /** Records that a run has lost its reader. */
  add(key: string): void {
    const runs = this.#own.get(key) ?? 0;
    this.#own.set(key, runs + 1);
    if (runs === 0) this.#tell(key, true);
  }

  /** Records that a run that was added has ended or has a reader again. */
  recordOver(key: string): void {
    const runs = this.#own.get(key) ?? 0;
    if (runs > 1) return void this.#own.set(key, runs - 1);
    this.#own.delete(key);
    this.#tell(key, false);
  }
}

const none: ReadonlySet<SiblingName> = new Set();

/** Identifies the sibling that wrote a row. Returns undefined for a row of this process, or of a process that this one cannot reach. */
const siblingOf = (
  held: typeof Held.Type,
  own: Pick<typeof Held.Type, "folder" | "worker"> & Pick<HeldPlace, "origin">,
): SiblingName | undefined => {
  if (held.folder !== "" && held.folder === own.folder) return held.worker === own.worker ? undefined : held.worker;
  return own.origin === undefined || held.origin === own.origin ? undefined : held.origin;
};
