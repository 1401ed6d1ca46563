/**
 * Withholds the parts of a run's output that must not be shown yet.
 *
 * `live` holds nothing. `on_complete` holds everything until the terminal marker, so that any earlier break can be replayed unseen, or
 * until its time limit. `undiscardable` serves a caller that cannot discard: it holds the lifecycle prefix, so that the caller never sees
 * two starts, and everything from the first tool call on. If a finish may count as a failure, both hold a response that contains only its
 * marker until its end is known. Held parts are bounded per run and per process; beyond these limits the hold ends and the parts are handed
 * over.
 *
 * While the reader is away nothing passes in any mode: released parts wait for the reader in order, and the mode holds the same parts as
 * for a present reader. The limits apply to the waiting and the held parts together. If a part does not fit, it cannot be handed over, and
 * `isOverfull` is true.
 */
import type { Observation } from "../../domain/Observation.ts";
import type { ReaderState } from "../contract/Taps.ts";

/**
 * Hold mode. `live` holds nothing, `on_complete` holds everything, `undiscardable` holds what a caller that cannot discard must not receive
 * early.
 */
export type RevealMode = "live" | "on_complete" | "undiscardable";

/** Maximum held parts of one run, in bytes as measured by `sizeOf`. */
export const heldBytesMax = 8 * 1024 * 1024;

/** Maximum held parts of all runs of a processor, in bytes. */
export const heldBytesProcessMax = 256 * 1024 * 1024;

/** Assumed size of a part's event in addition to its visible characters, in bytes. */
export const envelopeBytes = 256;

/** Counter of the bytes that a processor holds. */
export interface HeldPool {
  used: number;
}

/** Parts with their observations. */
export interface Batch<P> {
  readonly parts: ReadonlyArray<P>;
  readonly observations: ReadonlyArray<Observation>;
}

interface Filling<P> extends Batch<P> {
  readonly parts: Array<P>;
  readonly observations: Array<Observation>;
}

/** Parts of a response that an earlier attempt held and did not hand over. */
export interface Carried<P> extends Batch<P> {
  /** True if content of the response was handed over before this attempt. */
  readonly begun: boolean;
}

/**
 * Returns the hold mode of a run.
 *
 * @param wanted the mode that the caller requested
 * @param discardable true if the caller can discard what it was shown
 * @param isOver true if the hold of the whole response has reached its time limit
 */
export const modeOf = (
  wanted: "live" | "on_complete" | undefined,
  discardable: boolean,
  isOver: boolean,
): RevealMode => {
  if (wanted === "on_complete" && !isOver) return "on_complete";
  return discardable ? "live" : "undiscardable";
};

/** Options that change a hold beyond its mode. */
interface RevealOptions<P> {
  /** Parts that an interrupted attempt of the same response held; they come first. */
  readonly carried?: Carried<P> | undefined;
  /**
   * True (the default) if the caller can discard what it was shown. If false, a hold that ends at a limit continues as
   * `undiscardable`.
   */
  readonly discardable?: boolean;
  /** True if the finish of a response that shows nothing may count as a failure. */
  readonly holdsEnd?: boolean;
  /** Presence of the run's reader; without it, the reader is always present. */
  readonly presence?: Pick<ReaderState, "isAway" | "keptBytes"> | undefined;
}

/** Withholds the parts of one attempt until they may be shown. */
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
  /** In `undiscardable`, true if content was handed over. Only calls are held from then on. */
  #begun = false;
  /** True if the marker has arrived or a limit was reached. Nothing is held from then on. */
  #done = false;
  /** Released parts that wait for the reader; undefined while the reader is present. */
  #waiting: Filling<P> | undefined;
  #waitingBytes = 0;
  readonly #presence: Pick<ReaderState, "keptBytes"> | undefined;
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
      // The reader is away, so none of the carried parts has passed yet, not even those that the mode does not hold.
      if (carried !== undefined) this.pass(carried);
      return;
    }
    for (const [index, part] of (carried?.parts ?? []).entries()) {
      const observation = carried?.observations[index];
      if (observation !== undefined) this.#hold(part, observation);
    }
  }

  /** True if the whole response is held until its end is proven. No part of this attempt has then been handed over. */
  get isHoldingAll(): boolean {
    return this.#mode === "on_complete" && this.#holding;
  }

  /** True if something did not fit while the reader was away. Everything held must then be discarded. */
  get isOverfull(): boolean {
    return this.#isOverfull;
  }

  /**
   * Stops passing parts until the reader comes back.
   *
   * @param untaken released parts that the reader has not taken
   */
  onReaderLeft(untaken: Batch<P>): void {
    this.#waiting ??= { parts: [], observations: [] };
    this.#keepWhileAway(untaken);
  }

  /** Returns the parts that may be handed over to the reader that has returned, in order. */
  onReaderBack(): Batch<P> {
    const waiting = this.#waiting ?? { parts: [], observations: [] };
    this.#waiting = undefined;
    this.#pool.used -= this.#waitingBytes;
    this.#waitingBytes = 0;
    return waiting;
  }

  /**
   * Takes arrived parts and returns those that may be handed over now, in order.
   *
   * @param batch parts in their order of arrival
   */
  pass(batch: Batch<P>): Batch<P> {
    return this.#keepWhileAway(this.#passEach(batch));
  }

  /** Returns released parts, or keeps them until the reader comes back. */
  #keepWhileAway(batch: Batch<P>): Batch<P> {
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

  #passEach(batch: Batch<P>): Batch<P> {
    if (this.#mode === "live" || this.#canPassAll(batch.observations)) return batch;
    const out: Filling<P> = { parts: [], observations: [] };
    let index = 0;
    for (const part of batch.parts) {
      const observation = batch.observations[index];
      index += 1;
      if (observation !== undefined) this.#passOne(part, observation, out);
    }
    return out;
  }

  /** True if nothing is held, no part starts a hold, and the prefix has ended. Nearly every part takes this fast path. */
  #canPassAll(observations: ReadonlyArray<Observation>): boolean {
    if (this.#holding || !this.#begun) return false;
    for (const { calls } of observations) if (calls.length > 0 && !this.#done) return false;
    return true;
  }

  /**
   * Ends the hold of the whole response, which continues as if it had been shown from its start. A caller that cannot discard still
   * receives no call before the end is proven (L4).
   *
   * @param proven true if the terminal marker has come, so that nothing has to be held any more
   * @returns the parts that may be handed over now, in order
   */
  endHold(proven: boolean): Batch<P> {
    return this.#keepWhileAway(this.#endHold(proven));
  }

  #endHold(proven: boolean): Batch<P> {
    const held = this.#takeHeld();
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

  /** Returns all held and waiting parts, and ends the hold. */
  release(): Batch<P> {
    const waiting = this.onReaderBack();
    const held = this.#takeHeld();
    if (waiting.parts.length === 0) return held;
    return {
      parts: [...waiting.parts, ...held.parts],
      observations: [...waiting.observations, ...held.observations],
    };
  }

  #takeHeld(): Batch<P> {
    const held = this.#held ?? { parts: [], observations: [] };
    this.#pool.used -= this.#heldBytes;
    this.#heldBytes = 0;
    this.#held = undefined;
    this.#holding = false;
    return held;
  }

  #passOne(part: P, observation: Observation, out: Filling<P>): void {
    if (this.#endPrefix(observation)) this.#empty(out);
    if (!this.#holding && this.#mode === "undiscardable" && observation.calls.length > 0 && !this.#done) {
      this.#holding = true;
    }
    const passes = observation.terminal && !this.#mayBeEmpty(observation);
    if (this.#holding && !passes && this.#hasRoomFor(part, observation)) {
      this.#hold(part, observation);
      return;
    }
    if (this.#holding) {
      const calls = !this.#isHeldCallFree();
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

  /** Ends the prefix of `undiscardable` at its first content. Returns true if the held parts must be released. */
  #endPrefix(observation: Observation): boolean {
    if (this.#mode !== "undiscardable" || this.#begun || observation.shows === "nothing") return false;
    this.#begun = true;
    return this.#holding && observation.calls.length === 0 && this.#isHeldCallFree();
  }

  /** True if nothing was shown and the response contains no answer so far, so that its end may count as a failure. */
  #mayBeEmpty(marker: Observation): boolean {
    if (!this.#holdsEnd || this.#begun || isAnswer(marker)) return false;
    return this.#held?.observations.some(isAnswer) !== true;
  }

  #isHeldCallFree(): boolean {
    return this.#held === undefined || this.#held.observations.every((it) => it.calls.length === 0);
  }

  #empty(out: Filling<P>): void {
    const held = this.#takeHeld();
    for (const part of held.parts) out.parts.push(part);
    for (const observation of held.observations) out.observations.push(observation);
  }

  #hasRoomFor(part: P, observation: Observation): boolean {
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

/** Default weight of a part, in bytes. */
const defaultWeight = (_part: unknown, observation: Observation): number => observation.characters + envelopeBytes;

/**
 * Returns the caller's `sizeOf`, with the default weight for results that are not finite numbers, because the size of held parts must be
 * known (L11).
 */
export const weigherOf = <P>(sizeOf: ((part: P, observation: Observation) => number) | undefined) =>
  sizeOf === undefined
    ? defaultWeight
    : (part: P, observation: Observation): number => {
        const weight = sizeOf(part, observation);
        return weight >= 0 && weight < Number.POSITIVE_INFINITY ? weight : defaultWeight(part, observation);
      };
