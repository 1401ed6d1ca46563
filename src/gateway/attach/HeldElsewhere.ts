/**
 * Knows which sibling has runs that a request of this worker may repeat, and tells the siblings of those of this one.
 *
 * A run is told where a request that says nothing may attach to it: once its reader has left it before its end, at once; and from its
 * beginning where its client has named it by an idempotency key, with what else has begun within `gatherMs`. A run that is read to its
 * end is not told of, so that it costs no message. A request that says that it repeats one asks every sibling (`Siblings`).
 *
 * What is told may be late or lost: such a repeat has a run of its own. Only the owner of a run decides who attaches to it.
 */
import { Clock, Effect, Schema, type Scope } from "effect";
import { type Deadline, Deadlines } from "../../adapters/relay/deadline/Deadlines.ts";
import type { WorkerBus } from "../workers/WorkerBus.ts";
import { notice } from "../workers/WorkerMessage.ts";
import { runsMax } from "./AttachRegistry.ts";
import { HopKey } from "./HopMessage.ts";

/** What has begun and ended is gathered for so long, in milliseconds: under load one message tells of many runs. */
export const gatherMs = 10;

const Keys = Schema.Array(HopKey).check(Schema.isMaxLength(runsMax));

/** Keys of requests whose runs a worker has, and has no longer. */
export const held = notice("runs_held", Schema.Struct({ held: Keys, over: Keys }));

/** Keys that are held elsewhere, and here. */
export class HeldElsewhere {
  readonly #bus: WorkerBus["Service"];
  readonly #deadlines: Deadlines;
  /** The workers by the key; each key that they have told. */
  readonly #owners = new Map<string, Set<number>>();
  /** The keys that each worker has told, the oldest first. */
  readonly #keys = new Map<number, Set<string>>();
  /** Runs of each key that this worker tells of. */
  readonly #own = new Map<string, number>();
  /** Keys that the siblings were told of. */
  readonly #told = new Set<string>();
  /** Keys of which something is to be told. */
  readonly #untold = new Set<string>();
  readonly #gathered: Deadline = { act: () => this.#tell(), at: 0, place: -1 };

  private constructor(bus: WorkerBus["Service"], clock: Clock.Clock) {
    this.#bus = bus;
    this.#deadlines = Deadlines.of(clock);
  }

  /** Tells and hears while the scope lives. */
  static readonly make = Effect.fnUntraced(function* (
    bus: WorkerBus["Service"],
  ): Effect.fn.Return<HeldElsewhere, never, Scope.Scope> {
    const made = new HeldElsewhere(bus, yield* Clock.Clock);
    yield* bus.on(held, (told, worker) => made.#heard(told, worker));
    yield* bus.onLeft((worker) => made.#left(worker));
    yield* bus.onJoined((worker) => made.#joined(worker));
    yield* Effect.addFinalizer(() => Effect.sync(() => made.#deadlines.clear(made.#gathered)));
    return made;
  });

  /** The siblings that have told of a key, in order. */
  ownersOf(key: string): ReadonlyArray<number> {
    return [...(this.#owners.get(key) ?? [])].toSorted((a, b) => a - b);
  }

  /** Whether any sibling has told of any key. */
  get isEmpty(): boolean {
    return this.#owners.size === 0;
  }

  /** A run of a key is to be told of: soon, or at once. */
  holds(key: string, when: "soon" | "now"): void {
    const runs = this.#own.get(key) ?? 0;
    this.#own.set(key, runs + 1);
    this.#untold.add(key);
    if (when === "now") this.#tell();
    else this.#gather();
  }

  /** What is to be told is told at once. */
  hurry(): void {
    this.#tell();
  }

  /** A run of a key that was told of is there no more. */
  over(key: string): void {
    const runs = this.#own.get(key) ?? 0;
    if (runs > 1) return void this.#own.set(key, runs - 1);
    this.#own.delete(key);
    this.#untold.add(key);
    this.#gather();
  }

  #gather(): void {
    if (this.#gathered.place < 0) this.#deadlines.set(this.#gathered, this.#deadlines.now() + gatherMs);
  }

  #tell(): void {
    this.#deadlines.clear(this.#gathered);
    const all = [...this.#untold];
    this.#untold.clear();
    const begun = all.filter((key) => this.#own.has(key) && !this.#told.has(key));
    const over = all.filter((key) => !this.#own.has(key) && this.#told.has(key));
    for (const key of begun) this.#told.add(key);
    for (const key of over) this.#told.delete(key);
    for (const part of partsOf(begun, over)) this.#bus.tell(held, part);
  }

  #heard(told: { readonly held: ReadonlyArray<string>; readonly over: ReadonlyArray<string> }, worker: number): void {
    // The pipe of a worker that has died may still hold a word of it, which nobody would take back.
    if (!this.#bus.others().includes(worker)) return;
    for (const key of told.over) this.#forget(key, worker);
    const keys = this.#keys.get(worker) ?? new Set();
    this.#keys.set(worker, keys);
    for (const key of told.held) {
      // It is the newest from now on.
      keys.delete(key);
      keys.add(key);
      this.#owners.set(key, (this.#owners.get(key) ?? new Set()).add(worker));
    }
    // A worker keeps no more runs than that: the word that the oldest of them are over was lost.
    for (const key of keys) {
      if (keys.size <= runsMax) return;
      this.#forget(key, worker);
    }
  }

  #forget(key: string, worker: number): void {
    this.#keys.get(worker)?.delete(key);
    const owners = this.#owners.get(key);
    if (owners?.delete(worker) === true && owners.size === 0) this.#owners.delete(key);
  }

  #left(worker: number): void {
    for (const key of this.#keys.get(worker) ?? []) this.#forget(key, worker);
    this.#keys.delete(worker);
  }

  /** One that comes later has heard nothing of what is there. */
  #joined(worker: number): void {
    for (const part of partsOf([...this.#own.keys()], [])) this.#bus.tell(held, part, worker);
  }
}

/** What a message takes at once. */
const partsOf = (begun: ReadonlyArray<string>, over: ReadonlyArray<string>) => {
  const count = Math.ceil(Math.max(begun.length, over.length) / runsMax);
  return Array.from({ length: count }, (_, at) => ({
    held: begun.slice(at * runsMax, (at + 1) * runsMax),
    over: over.slice(at * runsMax, (at + 1) * runsMax),
  }));
};
