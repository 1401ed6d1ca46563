/**
 * Tracks which siblings have runs that a request of this process may repeat without indicating it: live runs that lost their reader. Each
 * of these runs has a row in the store while its process keeps it. A run read to its end has no row, and so costs no write. A request that
 * indicates a repeat asks every sibling instead (`Siblings`).
 *
 * Siblings see a row a moment later, and a repeat that arrives before that starts a new run. Only the owner of a run decides who attaches,
 * so a stale row of a dead process costs one request to its replacement.
 */
import { Effect, FiberSet, Option, Schema, type Scope } from "effect";
import * as FactPolling from "../../recorder/shared/FactPolling.ts";
import type { SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { GatewayAddress } from "../config/GatewayAddress.ts";
import { HopKey } from "./HopMessage.ts";

/** Time for which siblings know of a run whose process has died, in milliseconds. */
export const heldMs = 3_600_000;

const Held = Schema.Struct({
  /** Folder of the gateway's sockets; empty if the gateway is one process. */
  folder: Schema.String.check(Schema.isMaxLength(4_096)),
  worker: Schema.Natural,
  /** Address of the gateway, if it has one. */
  origin: Schema.optionalKey(GatewayAddress),
  key: HopKey,
});

const readHeld = Schema.decodeUnknownOption(Schema.fromJsonString(Held));

/** Place of a process among those that share the store. */
interface HeldPlace {
  /** Folder of the gateway's sockets; undefined if no worker reaches another. */
  readonly folder: string | undefined;
  /** Number of this worker. */
  readonly self: number;
  /** Address of this gateway; undefined if no other gateway reaches it. */
  readonly origin?: string | undefined;
}

/** Names a sibling: a worker of this gateway by its number, another gateway by its address. */
export type SiblingName = number | string;

/** Keys held by siblings and by this worker. */
export class HeldElsewhere {
  /** Siblings by the key of each row. */
  #owners: ReadonlyMap<string, ReadonlySet<SiblingName>> = new Map();
  /** Number of published runs per key. */
  readonly #own = new Map<string, number>();
  readonly #tell: (key: string, isHeld: boolean) => void;

  private constructor(tell: (key: string, isHeld: boolean) => void) {
    this.#tell = tell;
  }

  /** Publishes and receives keys while the scope is open. */
  static readonly make = Effect.fnUntraced(function* (
    { folder = "", origin, self: worker }: HeldPlace,
    facts: SharedFacts,
  ): Effect.fn.Return<HeldElsewhere, never, Scope.Scope> {
    const run = yield* Effect.flatMap(FiberSet.make<void>(), (fibers) => FiberSet.runtime(fibers)<never>());
    const made = new HeldElsewhere((key, isHeld) => {
      const row = `${origin ?? ""} ${folder} ${worker} ${key}`;
      const place = { folder, worker, ...(origin === undefined ? {} : { origin }) };
      const value = JSON.stringify({ ...place, key } satisfies typeof Held.Type);
      // While the store is unavailable, siblings do not learn of the run.
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

  /** Returns the siblings that hold a key. */
  ownersOf(key: string): ReadonlySet<SiblingName> {
    return this.#owners.get(key) ?? none;
  }

  /** True if no sibling holds a key. */
  get isEmpty(): boolean {
    return this.#owners.size === 0;
  }

  /** Records that a run has lost its reader. */
  add(key: string): void {
    const runs = this.#own.get(key) ?? 0;
    this.#own.set(key, runs + 1);
    if (runs === 0) this.#tell(key, true);
  }

  /** Withdraws a run that had lost its reader, because it has ended or has a reader again. */
  over(key: string): void {
    const runs = this.#own.get(key) ?? 0;
    if (runs > 1) return void this.#own.set(key, runs - 1);
    this.#own.delete(key);
    this.#tell(key, false);
  }
}

const none: ReadonlySet<SiblingName> = new Set();

/** Names the sibling that put a row; undefined for a row of this process, or of one that this process cannot reach. */
const siblingOf = (
  held: typeof Held.Type,
  own: Pick<typeof Held.Type, "folder" | "worker"> & Pick<HeldPlace, "origin">,
): SiblingName | undefined => {
  if (held.folder !== "" && held.folder === own.folder) return held.worker === own.worker ? undefined : held.worker;
  return own.origin === undefined || held.origin === own.origin ? undefined : held.origin;
};
