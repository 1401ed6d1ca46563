/**
 * Writes to the delivery log what the clients of this gateway's runs were sent, and answers who wishes to read such a run elsewhere.
 *
 * Numbered for the code below:
 *
 * 1. Parts go in their order, one write at a time. A write whose answer is lost goes again as it was, so that no place of a response
 *    has two contents.
 * 2. The end of a response is its last part: it is made when all bytes before it are made.
 * 3. What a delivery says of itself in plain (`ended`) is said behind its last part.
 * 4. A store that is away costs the run nothing: what was not written yet stands in the run's own log, which is kept no longer than it
 *    lingers.
 */
import { Clock, type Context, Effect, type Scope } from "effect";
import type {
  DeliveryPart,
  DeliveryState,
  DeliveryStore,
  DeliveryWish,
} from "../../recorder/delivery/DeliveryStore.ts";
import { endsWithin, monotonicMs } from "../../recorder/MonotonicTime.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import { DeliveryKey } from "./DeliveryKey.ts";
import * as DeliveryMeasures from "./DeliveryMeasures.ts";
import type { DeliverySource } from "./DeliverySource.ts";

/** What is sent is gathered for so long before it is written, in milliseconds. */
export const gatherMs = 50;

/** From one look for wishes to the next, in milliseconds. */
export const wishesMs = 200;

/** From one sign of life of an owner, and of a reader, to the next, in milliseconds. */
export const beatMs = 2_000;

/** A reader elsewhere that gave no sign of life for so long has gone, in milliseconds. */
const readerSilentMs = 6_000;

/** A store that fails is tried again after so long, in milliseconds. */
const awayMs = 1_000;

/** Old deliveries are forgotten so often, in milliseconds. */
const forgetMs = 10_000;

/** Most bytes of one write; what is more goes with the next one. */
const writeBytesMax = 1024 * 1024;

/** Most bytes that the deliveries of all gateways over one store may hold before new ones are not begun. */
export const totalBytesMax = 1024 * 1024 * 1024;

/** Longest that a shutdown waits for what is not written yet, in milliseconds. */
const closeMs = 1_000;

/** What a delivery is begun with. */
export interface DeliveryBeginning {
  readonly runId: string;
  readonly request: string;
  readonly named: string | undefined;
  /** What the client shows: its key is made of it. */
  readonly secret: string;
}

interface Reader {
  readonly token: string;
  beats: number;
  seenAt: number;
}

/** A delivery of this gateway. */
interface Live {
  readonly beginning: DeliveryBeginning;
  readonly source: DeliverySource;
  readonly salt: Uint8Array;
  readonly key: DeliveryKey;
  isBegun: boolean;
  isHeaded: boolean;
  /** Bytes that parts were made of. */
  made: number;
  /** The number of the next part. */
  n: number;
  /** How the part that ends the response says it ends. */
  isEnded: boolean;
  reader: Reader | undefined;
}

/** The deliveries of this gateway's runs. */
export class DeliveryOwner {
  readonly #store: DeliveryStore["Service"];
  /** This gateway's name in the log. */
  readonly #node: string;
  readonly #clock: Clock.Clock;
  /** Has the registry of metrics. */
  readonly #context: Context.Context<never>;
  readonly #live = new Map<string, Live>();
  readonly #bySource = new Map<DeliverySource, Live>();
  /** Parts that were written and not acknowledged (1). */
  #parts: Array<DeliveryPart> = [];
  /** Runs of which the log must know no more, and places that were taken back. */
  readonly #dropped = new Set<string>();
  readonly #unseated = new Set<string>();
  #wishedAt = 0;
  #beatAt = 0;
  #triedAt = Number.NEGATIVE_INFINITY;
  readonly #outage = new OutageLog({
    away: "the delivery log is not written; clients can come back at this gateway only",
    back: "the delivery log is written again",
  });
  #isFull = false;
  #wake: (() => void) | undefined;

  private constructor(
    store: DeliveryStore["Service"],
    node: string,
    clock: Clock.Clock,
    context: Context.Context<never>,
  ) {
    this.#store = store;
    this.#node = node;
    this.#clock = clock;
    this.#context = context;
  }

  /** Makes it; it writes while the scope lives. */
  static readonly make = Effect.fnUntraced(function* (
    store: DeliveryStore["Service"],
    node: string,
  ): Effect.fn.Return<DeliveryOwner, never, Scope.Scope> {
    const made = new DeliveryOwner(store, node, yield* Clock.Clock, yield* Effect.context<never>());
    const forgets = Effect.map(store.forget, (bytes) => {
      made.#isFull = bytes > totalBytesMax;
    });
    yield* working(Effect.andThen(Effect.ignore(forgets), Effect.sleep(forgetMs)));
    yield* working(Effect.andThen(made.#busy, Effect.andThen(Effect.sleep(gatherMs), made.tick)));
    return made;
  });

  /** Writes what is not written yet, within a moment, or loses it. */
  readonly close: Effect.Effect<void> = Effect.suspend(() =>
    this.#outage.isOn ? Effect.void : Effect.asVoid(endsWithin(this.tick, closeMs)),
  );

  /** A run has its name. Where the log is full it is not kept. */
  begin(source: DeliverySource, beginning: DeliveryBeginning): void {
    if (this.#bySource.has(source)) return;
    if (this.#isFull) {
      DeliveryMeasures.countSkipped(this.#context);
      return;
    }
    const salt = DeliveryKey.salt();
    const key = DeliveryKey.of(beginning.secret, salt, beginning.runId);
    const live: Live = {
      ...{ beginning, source, salt, key, isBegun: false, isHeaded: false },
      ...{ made: 0, n: 0, isEnded: false, reader: undefined },
    };
    this.#live.set(beginning.runId, live);
    this.#bySource.set(source, live);
    this.#wakes();
  }

  /** Whether a run is one of this gateway's, whose delivery has not ended. */
  keeps(runId: string): boolean {
    return this.#live.has(runId);
  }

  /**
   * The gateway keeps a run no longer. A whole response goes on to be logged, where it can be: whoever comes back has it from the log. Of a run
   * that was ended before its end, or that its user has stopped, the log must know no more.
   */
  over(source: DeliverySource): void {
    const live = this.#bySource.get(source);
    if (live === undefined) return;
    const isWhole = source.entry.end?.how === "whole" && source.stop !== "cancelled";
    if (isWhole && !this.#outage.isOn) return;
    this.#forgets(live);
    if (live.isBegun) this.drop(live.beginning.runId);
  }

  /** The log is to know no more of a run. */
  drop(runId: string): void {
    this.#dropped.add(runId);
    this.#wakes();
  }

  /** Waits while there is nothing to do. */
  readonly #busy: Effect.Effect<void> = Effect.callback<void>((resume) => {
    if (!this.#isIdle) return resume(Effect.void);
    const wake = () => resume(Effect.void);
    this.#wake = wake;
    return Effect.sync(() => {
      this.#wake = undefined;
    });
  });

  get #isIdle(): boolean {
    return this.#live.size === 0 && this.#dropped.size === 0 && this.#unseated.size === 0;
  }

  #wakes(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** Does what is due. The log says when the store is away and when it is back (4). */
  readonly tick: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#outage.isOn && this.#now() - this.#triedAt < awayMs) return Effect.void;
    this.#triedAt = this.#now();
    return Effect.matchEffect(this.#due, {
      onSuccess: () => this.#told(undefined),
      onFailure: (error) => Effect.andThen(DeliveryMeasures.countFailure(error, "write"), this.#told(error)),
    });
  });

  readonly #due: Effect.Effect<void, RecorderError> = Effect.gen({ self: this }, function* () {
    // A write that failed may have met a delivery that is gone.
    if (this.#outage.isOn || this.#now() - this.#beatAt >= beatMs) yield* this.#beat;
    yield* this.#begins;
    yield* this.#writes;
    yield* this.#ends;
    for (const runId of this.#unseated) {
      yield* this.#store.unseat(runId);
      this.#unseated.delete(runId);
    }
    for (const runId of this.#dropped) {
      yield* this.#store.drop(runId);
      this.#dropped.delete(runId);
    }
    if (this.#live.size > 0 && this.#now() - this.#wishedAt >= wishesMs) yield* this.#wishes;
  });

  #told(error: RecorderError | undefined): Effect.Effect<void> {
    return error === undefined ? this.#outage.worked : this.#outage.failed(error.message);
  }

  readonly #begins: Effect.Effect<void, RecorderError> = Effect.suspend(() => {
    const all = [...this.#live.values()].filter(({ isBegun }) => !isBegun);
    if (all.length === 0) return Effect.void;
    const terms = all.map(({ beginning: { named, request, runId: run_id }, key, salt, source }) => ({
      ...{ run_id, node: this.#node, request, named, salt, lock: key.lock(run_id) },
      linger_ms: source.entry.terms.lingerMs,
    }));
    return Effect.map(this.#store.begin(terms), () => {
      for (const live of all) live.isBegun = true;
    });
  });

  /** Writes what there is. What was made before goes first, as it was (1). */
  readonly #writes: Effect.Effect<void, RecorderError> = Effect.suspend(() => {
    if (this.#parts.length === 0) this.#parts = this.#made();
    if (this.#parts.length === 0) return Effect.void;
    return Effect.flatMap(this.#store.append(this.#parts), () => {
      const written = this.#parts.reduce((sum, { sealed }) => sum + sealed.byteLength, 0);
      this.#parts = [];
      return Effect.andThen(DeliveryMeasures.countBytes(written), this.#writes);
    });
  });

  #made(): Array<DeliveryPart> {
    const parts: Array<DeliveryPart> = [];
    let bytes = 0;
    for (const live of this.#live.values()) {
      if (!live.isBegun) continue;
      bytes += partsOf(live, writeBytesMax - bytes, parts);
      if (bytes >= writeBytesMax) break;
    }
    return parts;
  }

  readonly #ends: Effect.Effect<void, RecorderError> = Effect.suspend(() => {
    const over = [...this.#live.values()].flatMap((live) => {
      const state = stateOf(live);
      return state === undefined || !live.isBegun ? [] : [{ live, state }];
    });
    if (over.length === 0) return Effect.void;
    const all = over.map(({ live, state }) => ({ run_id: live.beginning.runId, state, bytes: live.made }));
    return Effect.map(this.#store.ended(all), () => {
      for (const { live } of over) this.#forgets(live);
    });
  });

  readonly #beat: Effect.Effect<void, RecorderError> = Effect.suspend(() => {
    this.#beatAt = this.#now();
    const begun = [...this.#live.values()].filter(({ isBegun }) => isBegun);
    if (begun.length === 0) return Effect.void;
    return Effect.map(this.#store.beat(new Map(begun.map((it) => [it.beginning.runId, it.made]))), (there) => {
      for (const live of begun) if (!there.has(live.beginning.runId)) this.#forgets(live);
    });
  });

  readonly #wishes: Effect.Effect<void, RecorderError> = Effect.suspend(() => {
    this.#wishedAt = this.#now();
    return Effect.flatMap(this.#store.wishes(this.#node), (rows) => {
      const said = new Map(rows.map((row) => [row.run_id, row]));
      for (const live of this.#live.values()) this.#reads(live, said.get(live.beginning.runId));
      return Effect.forEach(rows, (row) => this.#wished(row), { concurrency: "unbounded", discard: true });
    });
  });

  /** Whether a reader elsewhere is still there. */
  #reads(live: Live, row: DeliveryWish | undefined): void {
    const { reader } = live;
    if (reader === undefined) return;
    const now = this.#now();
    const isThere = row?.reader === reader.token;
    if (isThere && row.reader_beats !== reader.beats) {
      reader.beats = row.reader_beats;
      reader.seenAt = now;
    }
    if (isThere && now - reader.seenAt < readerSilentMs) return;
    live.reader = undefined;
    if (isThere) this.#unseated.add(live.beginning.runId);
    live.source.leftElsewhere();
  }

  /** Answers a wish: this gateway alone decides who reads its run. */
  #wished({ run_id, wish, wish_how: how }: DeliveryWish): Effect.Effect<void, RecorderError> {
    const live = this.#live.get(run_id);
    if (live === undefined || wish === null) return Effect.void;
    return Effect.flatMap(how === "repeat" ? isFree(live) : Effect.succeed(true), (granted) =>
      Effect.map(this.#store.answer(run_id, wish, granted), () => {
        if (!granted || this.#live.get(run_id) !== live) return;
        if (how === "cancel") return live.source.cancelledElsewhere();
        this.#seats(live, wish);
      }),
    );
  }

  #seats(live: Live, token: string): void {
    live.reader = { token, beats: 0, seenAt: this.#now() };
    live.source.takenElsewhere(() => {
      live.reader = undefined;
      this.#unseated.add(live.beginning.runId);
    });
  }

  #forgets(live: Live): void {
    const { runId } = live.beginning;
    this.#live.delete(runId);
    this.#bySource.delete(live.source);
    this.#parts = this.#parts.filter(({ run_id }) => run_id !== runId);
  }

  #now(): number {
    return monotonicMs(this.#clock);
  }
}

/** Does a thing again and again while the scope lives. Its end is not waited for: a server that does not answer would hold up a shutdown. */
const working = (thing: Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(Effect.forkDetach(Effect.forever(thing)), (fiber) =>
      Effect.sync(() => fiber.interruptUnsafe()),
    ),
  );

/** Makes the next parts of a delivery; how many bytes they are of. */
const partsOf = (live: Live, room: number, parts: Array<DeliveryPart>): number => {
  const { key, source } = live;
  const { log } = source.entry;
  const run_id = live.beginning.runId;
  const add = (kind: "head" | "bytes" | "end", bytes: Uint8Array): void => {
    const place = { run_id, n: live.n, at: live.made };
    parts.push({ ...place, sealed: key.seal(kind, place, bytes) });
    live.n += 1;
  };
  const begun = live.made;
  if (!live.isHeaded && source.head !== undefined) {
    add("head", Buffer.from(JSON.stringify(source.head)));
    live.isHeaded = true;
  }
  while (live.isHeaded && live.made >= log.start && live.made - begun < room) {
    const bytes = log.from(live.made);
    if (bytes === undefined) break;
    add("bytes", bytes);
    live.made += bytes.byteLength;
  }
  // (2)
  if (!live.isEnded && source.bodyEnd !== undefined && live.made === log.length) {
    add("end", Buffer.from(source.bodyEnd));
    live.isEnded = true;
  }
  return live.made - begun;
};

/** How a delivery has ended, once all of it is written; undefined while it has not (3). */
const stateOf = ({ isEnded, source }: Live): DeliveryState | undefined => {
  const { end, evicted } = source.entry;
  if (evicted !== undefined) return "evicted";
  if (!isEnded || end === undefined) return undefined;
  return end.how === "whole" ? "whole" : "broken";
};

/** Whether a repeat may have the place of a run's reader: nobody reads, or a client whose socket is silent. */
const isFree = ({ reader, source }: Live): Effect.Effect<boolean> => {
  if (reader !== undefined) return Effect.succeed(false);
  return source.client?.isSilent ?? Effect.succeed(true);
};
