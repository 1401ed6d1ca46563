/**
 * Holds parts back that must not be shown yet, and lets the others pass: the first tap of a run's output.
 *
 * `live` holds nothing. `on_complete` holds everything until the terminal marker, so that every break before it can be
 * replayed unseen, or until its time is over. `undiscardable` serves a caller that cannot throw anything away: it holds the lifecycle prefix, so that
 * the caller never sees two starts, and everything from the first tool call on. Where a finish may count as a failure, both hold a
 * response with nothing in it beyond its marker, until its end is known. What is held is bounded per run and per process;
 * beyond, holding ends and the parts are handed over.
 *
 * While the reader is away nothing passes, whatever the mode: what the mode lets through waits for the reader, in order, and the mode
 * goes on holding the rest. The same bounds hold for both together; what does not fit then cannot be handed over, and is `isOverfull`.
 */
import type { Observation } from "../../domain/Observation.ts";
import type { Presence } from "../contract/Presence.ts";

/** What is held back: nothing, everything, or what a caller that cannot discard must not receive early. */
export type RevealMode = "live" | "on_complete" | "undiscardable";

/** Held parts of one run, in bytes as `sizeOf` tells them. */
export const heldBytesMax = 8 * 1024 * 1024;

/** Held parts of all runs of a processor, in bytes. */
export const heldBytesProcessMax = 256 * 1024 * 1024;

/** What one part is taken to weigh beside its visible characters: an event's envelope, in bytes. */
export const envelopeBytes = 256;

/** The processor's share of held bytes. */
export interface HeldPool {
  used: number;
}

/** Parts beside what each proves. */
export interface Batch<P> {
  readonly parts: ReadonlyArray<P>;
  readonly observations: ReadonlyArray<Observation>;
}

/** A batch that is being filled. */
interface Filling<P> extends Batch<P> {
  readonly parts: Array<P>;
  readonly observations: Array<Observation>;
}

/** Parts of a response that an earlier attempt held back and did not hand over. */
export interface Carried<P> extends Batch<P> {
  /** Content of the response was handed over before. */
  readonly begun: boolean;
}

/**
 * What a run holds back.
 *
 * @param wanted what its caller asked for
 * @param discardable whether the caller can throw away what it was shown
 * @param isOver a hold of the whole response has lasted as long as it may
 */
export const modeOf = (
  wanted: "live" | "on_complete" | undefined,
  discardable: boolean,
  isOver: boolean,
): RevealMode => {
  if (wanted === "on_complete" && !isOver) return "on_complete";
  return discardable ? "live" : "undiscardable";
};

/** What is held back beside what the mode says. */
interface RevealOptions<P> {
  /** Parts that an interrupted attempt of the same response held: they come first. */
  readonly carried?: Carried<P> | undefined;
  /**
   * Whether the caller can throw away what it was shown (the default): if not, holding that ends at the bound goes on as
   * `undiscardable` does.
   */
  readonly discardable?: boolean;
  /** The finish of a response that shows nothing may count as a failure. */
  readonly holdsEnd?: boolean;
  /** Whether somebody reads the run; left out, its reader is always there. */
  readonly presence?: Pick<Presence, "isAway" | "keptBytes"> | undefined;
}

/** Holds back the parts of one attempt. */
export class Reveal<P> {
  #mode: RevealMode;
  readonly #discardable: boolean;
  readonly #holdsEnd: boolean;
  readonly #pool: HeldPool;
  readonly #sizeOf: (part: P, observation: Observation) => number;
  /** Undefined while nothing is held. */
  #held: Filling<P> | undefined;
  #heldBytes = 0;
  #holding: boolean;
  /** In `undiscardable`: content has been handed over, so that only calls are held from now on. */
  #begun = false;
  /** The marker has come, or the bound was reached: nothing is held any more. */
  #done = false;
  /** What may be handed over and waits for the reader; undefined while the reader is there. */
  #waiting: Filling<P> | undefined;
  #waitingBytes = 0;
  readonly #presence: Pick<Presence, "keptBytes"> | undefined;
  #isOverfull = false;

  constructor(
    mode: RevealMode,
    pool: HeldPool,
    sizeOf: (part: P, observation: Observation) => number,
    { carried, discardable = true, holdsEnd = false, presence }: RevealOptions<P> = {},
  ) {
    this.#presence = presence;
    this.#discardable = discardable;
    this.#holdsEnd = holdsEnd;
    this.#mode = mode;
    this.#pool = pool;
    this.#sizeOf = sizeOf;
    this.#begun = carried?.begun === true;
    const isAway = presence?.isAway === true;
    const openEnd = mode === "undiscardable" && this.#begun && (isAway || carried?.parts.length === 0);
    this.#holding = mode !== "live" && !openEnd;
    if (isAway) {
      this.#waiting = { parts: [], observations: [] };
      // Nothing of it has passed yet, also what the mode does not hold.
      if (carried !== undefined) this.pass(carried);
      return;
    }
    for (const [index, part] of (carried?.parts ?? []).entries()) {
      const observation = carried?.observations[index];
      if (observation !== undefined) this.#hold(part, observation);
    }
  }

  /** The whole response is held until it is proven: nothing of this attempt has been handed over. */
  get holdsAll(): boolean {
    return this.#mode === "on_complete" && this.#holding;
  }

  /** Something came that does not fit while the reader is away: all that is held has to be thrown away. */
  get isOverfull(): boolean {
    return this.#isOverfull;
  }

  /**
   * The reader goes away: nothing passes until it comes back.
   *
   * @param untaken what has passed, and was not taken
   */
  readerLeft(untaken: Batch<P>): void {
    this.#waiting ??= { parts: [], observations: [] };
    this.#given(untaken);
  }

  /** A reader is there again. Gives what may be handed over now, in order. */
  readerCameBack(): Batch<P> {
    const waiting = this.#waiting ?? { parts: [], observations: [] };
    this.#waiting = undefined;
    this.#pool.used -= this.#waitingBytes;
    this.#waitingBytes = 0;
    return waiting;
  }

  /**
   * Takes what has arrived and gives what may be handed over now, in order.
   *
   * @param batch parts as they came
   */
  pass(batch: Batch<P>): Batch<P> {
    return this.#given(this.#passed(batch));
  }

  /** Hands over what has passed, or lets it wait for the reader. */
  #given(batch: Batch<P>): Batch<P> {
    const waiting = this.#waiting;
    if (waiting === undefined) return batch;
    let index = 0;
    for (const part of batch.parts) {
      const observation = batch.observations[index];
      index += 1;
      if (observation === undefined) continue;
      const size = this.#sizeOf(part, observation);
      this.#isOverfull ||= !this.#hasRoom(size, this.#presence?.keptBytes);
      this.#waitingBytes += size;
      this.#pool.used += size;
      waiting.parts.push(part);
      waiting.observations.push(observation);
    }
    return { parts: [], observations: [] };
  }

  #passed(batch: Batch<P>): Batch<P> {
    if (this.#mode === "live" || this.#passesAll(batch.observations)) return batch;
    const out: Filling<P> = { parts: [], observations: [] };
    let index = 0;
    for (const part of batch.parts) {
      const observation = batch.observations[index];
      index += 1;
      if (observation !== undefined) this.#passOne(part, observation, out);
    }
    return out;
  }

  /** Nothing is held, nothing of this begins a hold, and it is not what ends the prefix: the way of nearly every part. */
  #passesAll(observations: ReadonlyArray<Observation>): boolean {
    if (this.#holding || !this.#begun) return false;
    for (const { calls } of observations) if (calls.length > 0 && !this.#done) return false;
    return true;
  }

  /**
   * Holds the whole response no longer: it goes on as if it had been shown from its start, so that a caller which cannot
   * discard gets no call before its end is proven (L4).
   *
   * @param proven the terminal marker has come, so that nothing has to be held any more
   * @returns what may be handed over now, in order
   */
  endHold(proven: boolean): Batch<P> {
    return this.#given(this.#endHold(proven));
  }

  #endHold(proven: boolean): Batch<P> {
    const held = this.#released();
    this.#mode = this.#discardable ? "live" : "undiscardable";
    if (this.#discardable || proven) {
      this.#begun = true;
      this.#done = true;
      return held;
    }
    const call = held.observations.findIndex((it) => it.calls.length > 0);
    const before = call === -1 ? held.parts.length : call;
    this.#begun ||= held.observations.slice(0, before).some((it) => it.shows !== "nothing");
    const from = this.#begun ? before : 0;
    for (const [index, part] of held.parts.entries()) {
      const observation = held.observations[index];
      if (index >= from && observation !== undefined) this.#hold(part, observation);
    }
    this.#holding = !this.#begun || from < held.parts.length;
    return { parts: held.parts.slice(0, from), observations: held.observations.slice(0, from) };
  }

  /** Gives everything that is held, or waits for the reader, and holds nothing more. */
  release(): Batch<P> {
    const waiting = this.readerCameBack();
    const held = this.#released();
    if (waiting.parts.length === 0) return held;
    return {
      parts: [...waiting.parts, ...held.parts],
      observations: [...waiting.observations, ...held.observations],
    };
  }

  #released(): Batch<P> {
    const held = this.#held ?? { parts: [], observations: [] };
    this.#pool.used -= this.#heldBytes;
    this.#heldBytes = 0;
    this.#held = undefined;
    this.#holding = false;
    return held;
  }

  #passOne(part: P, observation: Observation, out: Filling<P>): void {
    if (this.#starts(observation)) this.#empty(out);
    if (!this.#holding && this.#mode === "undiscardable" && observation.calls.length > 0 && !this.#done) {
      this.#holding = true;
    }
    const passes = observation.terminal && !this.#mayBeEmpty(observation);
    if (this.#holding && !passes && this.#fits(part, observation)) {
      this.#hold(part, observation);
      return;
    }
    if (this.#holding) {
      const calls = !this.#heldHasNoCalls();
      this.#empty(out);
      const bounded = this.#mode === "on_complete" && !this.#discardable && !observation.terminal;
      this.#done = !bounded || calls;
      if (bounded) {
        this.#mode = "undiscardable";
        this.#begun = true;
      }
    }
    out.parts.push(part);
    out.observations.push(observation);
  }

  /** In `undiscardable`, the first content ends the prefix. */
  #starts(observation: Observation): boolean {
    if (this.#mode !== "undiscardable" || this.#begun || observation.shows === "nothing") return false;
    this.#begun = true;
    return this.#holding && observation.calls.length === 0 && this.#heldHasNoCalls();
  }

  /** Nothing of the response was shown, and nothing in it is an answer: its end may make a failure of it. */
  #mayBeEmpty(marker: Observation): boolean {
    if (!this.#holdsEnd || this.#begun || isAnswer(marker)) return false;
    return this.#held?.observations.some(isAnswer) !== true;
  }

  #heldHasNoCalls(): boolean {
    return this.#held === undefined || this.#held.observations.every((it) => it.calls.length === 0);
  }

  #empty(out: Filling<P>): void {
    const held = this.#released();
    for (const part of held.parts) out.parts.push(part);
    for (const observation of held.observations) out.observations.push(observation);
  }

  #fits(part: P, observation: Observation): boolean {
    return this.#hasRoom(this.#sizeOf(part, observation));
  }

  #hasRoom(size: number, keptBytes = 0): boolean {
    const own = this.#heldBytes + this.#waitingBytes + keptBytes;
    return own + size <= heldBytesMax && this.#pool.used + size <= heldBytesProcessMax;
  }

  #hold(part: P, observation: Observation): void {
    const size = this.#sizeOf(part, observation);
    this.#heldBytes += size;
    this.#pool.used += size;
    this.#held ??= { parts: [], observations: [] };
    this.#held.parts.push(part);
    this.#held.observations.push(observation);
  }
}

/** True if a part is more than reasoning or white space. */
const isAnswer = ({ calls, progress }: Observation): boolean => progress === "output" || calls.length > 0;

/** What a held part weighs where the caller does not say it. */
const weighed = (_part: unknown, observation: Observation): number => observation.characters + envelopeBytes;

/** The caller's weight, where it is a number: with any other the bytes that are held would be unknown (L11). */
export const weigherOf = <P>(sizeOf: ((part: P, observation: Observation) => number) | undefined) =>
  sizeOf === undefined
    ? weighed
    : (part: P, observation: Observation): number => {
        const weight = sizeOf(part, observation);
        return weight >= 0 && weight < Number.POSITIVE_INFINITY ? weight : weighed(part, observation);
      };
