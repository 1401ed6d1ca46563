/**
 * Carries the parts of one attempt to the reader, through the slot or frozen until a decision.
 *
 * Each part is counted as decoded and then as handed over, one part at a time, so that text and calls keep their order. A part that must be
 * recorded before its hand-over waits for its single write, no matter how the pull or the attempt ends in the meantime (L8).
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { none } from "../../domain/Observation.ts";
import type { PartEvent } from "../contract/RunEvent.ts";
import type { ReaderWord, Taps } from "../contract/Taps.ts";
import type { ReadyCall } from "../contract/ToolCall.ts";
import { completedCalls, type LedgerAttempt, type NamedCall, type ToolLedger } from "../tools/ToolLedger.ts";
import type { AttemptSeams } from "./AttemptHost.ts";
import type { Handoff, Slot } from "./Handoff.ts";
import type { Batch, Carried, Reveal } from "./Reveal.ts";

/** Services that a run provides to the flow. */
export interface FlowHost<P> {
  readonly runId: string;
  readonly handoff: Handoff<P>;
  readonly ledger: ToolLedger;
  /** Follows the delivered text, if it may be continued later. */
  readonly seams: Pick<AttemptSeams<P>, "recordSent"> | undefined;
  readonly taps: Taps<P> | undefined;
}

/** Services that an attempt provides to its flow. */
export interface FlowOwner extends LedgerAttempt {
  /**
   * Commits the attempt's facts, with the calls that become complete, before a part is handed over. Resolves to true if the parts may be
   * handed over. Returns `true` directly if the store completes the write synchronously.
   */
  readonly recordShown: (calls: ReadonlyArray<NamedCall>) => true | Deferred.Deferred<boolean>;
  /** Called when the slot is free again. */
  readonly onSlotFree: () => void;
}

/** Parts on their way to the reader. `counted` says how far the facts have counted them. */
interface Transit<P> extends Batch<P> {
  counted: "no" | "decoded" | "handed_over";
  /** The write that the hand-over waits for, once it has begun. Resolves to true if the parts may be handed over. */
  record?: Deferred.Deferred<boolean> | undefined;
}

/** Maximum number of parts handed over in one turn of the event loop. A hold may release more parts at once. */
export const turnPartsMax = 512;

/** The parts of one attempt on their way to the caller. */
export class PartFlow<P> {
  readonly #host: FlowHost<P>;
  readonly #owner: FlowOwner;
  readonly #reveal: Reveal<P>;
  #ordinal = 0;
  #lastTextOrdinal = 0;
  #hasShown = false;
  #inSlot: Transit<P> | undefined;
  /** Parts that wait for the slot, because a hold ended while the reader was busy or released more than fits in one turn. */
  #next: Array<Transit<P>> = [];
  #frozen: ReadonlyArray<Transit<P>> = noParts;
  /** The newest write, which may be complete. */
  #lastWrite: Deferred.Deferred<boolean> | undefined;

  constructor(host: FlowHost<P>, owner: FlowOwner, reveal: Reveal<P>) {
    this.#host = host;
    this.#owner = owner;
    this.#reveal = reveal;
  }

  /**
   * Assumes that an earlier process handed over parts of the attempt; only the caller knows which ones.
   *
   * @param keeps true if some of these parts remain when the run continues from its settled calls
   */
  assumeHandedOver(keeps: boolean): void {
    this.#ordinal = 1;
    this.#lastTextOrdinal = keeps ? 1 : 0;
  }

  /** Number of parts handed over. */
  get ordinal(): number {
    return this.#ordinal;
  }

  /** True if a part that shows text or reasoning was handed over. */
  get hasShown(): boolean {
    return this.#hasShown;
  }

  /** Ordinal of the last text part that was handed over; 0 if there is none. */
  get lastTextOrdinal(): number {
    return this.#lastTextOrdinal;
  }

  /** True if the slot is occupied and reading must stop. While the reader is away, reading continues. */
  get isFull(): boolean {
    return this.#inSlot !== undefined && this.#host.taps?.presence?.isAway !== true;
  }

  /** Handles a change of the run's reader. Parts held for an absent reader pass under the normal rules when it returns. */
  reader(word: ReaderWord): void {
    if (word === "left") {
      this.#reveal.onReaderLeft(this.#untaken());
    } else if (word === "evicted") {
      this.#throwAway(this.#reveal.release());
    } else {
      if (this.#inSlot !== undefined) this.#put(this.#inSlot);
      this.handOver(this.#reveal.onReaderBack());
    }
  }

  /** Returns the parts that may be handed over now. An evicted run discards its parts and only counts them as decoded. */
  pass(batch: Batch<P>): Batch<P> {
    if (this.#host.taps?.presence?.isEvicted !== true) return this.#reveal.pass(batch);
    this.#throwAway(batch);
    return { parts: [], observations: [] };
  }

  /** Hands over parts that the hold released. If they do not fit while the reader is away, the run is evicted with all held parts (L11). */
  handOver(passed: Batch<P>): void {
    if (this.#reveal.isOverfull) this.#host.taps?.presence?.evict();
    else if (passed.parts.length > 0) this.#offer(passed);
  }

  /** Takes back the parts that the reader has not taken. Parts with a write in progress remain here (L8). */
  #untaken(): Batch<P> {
    this.#host.handoff.clear();
    const isOwed = this.#inSlot?.counted !== "no";
    const untaken = isOwed || this.#inSlot === undefined ? this.#next : [this.#inSlot, ...this.#next];
    if (!isOwed) this.#inSlot = undefined;
    this.#next = [];
    return {
      parts: untaken.flatMap((transit) => transit.parts),
      observations: untaken.flatMap((transit) => transit.observations),
    };
  }

  /** Discards parts that can no longer reach a reader. These parts count as decoded, not as shown (L4). */
  #throwAway(batch: Batch<P>): void {
    this.#countDecoded({ ...batch, counted: "no" });
  }

  /** Waits for the write of an interrupted pull, so that later entries follow it. */
  get awaitWrite(): Effect.Effect<unknown> {
    return Effect.suspend(() =>
      this.#lastWrite === undefined ? Effect.void : Effect.exit(Deferred.await(this.#lastWrite)),
    );
  }

  /** True if parts are frozen or a write is in progress. */
  get isUnsettled(): boolean {
    return this.#frozen.length > 0 || (this.#lastWrite !== undefined && !Deferred.isDoneUnsafe(this.#lastWrite));
  }

  /** Hands parts to a waiting reader, or puts them into the slot. */
  #offer(batch: Batch<P>): void {
    const transit: Transit<P> = { parts: batch.parts, observations: batch.observations, counted: "no" };
    if (this.#inSlot !== undefined) {
      const last = this.#next.pop();
      this.#next.push(...(last === undefined ? cut(transit) : cut(concat(last, transit))));
      return;
    }
    if (transit.parts.length > turnPartsMax) {
      this.#next = cut(transit);
      this.#putNext(false);
      return;
    }
    const { handoff } = this.#host;
    if (handoff.isWanted && !this.#isRecordNeeded(transit)) {
      this.#count(transit);
      handoff.give(this.#events(transit));
      return;
    }
    this.#put(transit);
  }

  /** Moves the first waiting parts into the slot. Returns true if there were any. */
  #putNext(inNextTurn: boolean): boolean {
    const next = this.#next.shift();
    if (next !== undefined) this.#put(next, inNextTurn);
    return next !== undefined;
  }

  #put(transit: Transit<P>, inNextTurn = false): void {
    this.#inSlot = transit;
    this.#host.handoff.put(this.#slot(transit, inNextTurn));
  }

  /** Keeps parts that arrived directly before the failure. They count as decoded, not as shown. */
  keepFrozen(batch: Batch<P>): void {
    const transit: Transit<P> = { ...batch, counted: "no" };
    this.#frozen = [...this.#frozen, transit];
    this.#countDecoded(transit);
  }

  /** Takes back the parts that were not handed over, together with the held ones, and counts them as decoded. */
  freeze(held: Batch<P>): void {
    const waiting = this.#inSlot === undefined ? this.#next : [this.#inSlot, ...this.#next];
    if (waiting.length > 0) this.#frozen = [...waiting, ...this.#frozen];
    this.#inSlot = undefined;
    this.#next = [];
    this.#host.handoff.clear();
    if (held.parts.length > 0) this.#frozen = [...this.#frozen, { ...held, counted: "no" }];
    for (const transit of this.#frozen) this.#countDecoded(transit);
  }

  /** Parts that wait for the decision. */
  get frozen(): ReadonlyArray<P> {
    return this.#frozen.flatMap(({ parts }) => parts);
  }

  discardFrozen(): void {
    this.#frozen = noParts;
  }

  /**
   * Removes and returns the frozen parts that a caller without discard must not receive yet: all parts from the first call on, or all parts
   * if there is no content before it.
   *
   * @param begun true if content of the response was handed over before
   */
  takeHeld(begun: boolean): Carried<P> | undefined {
    const parts = this.#frozen.flatMap((transit) => transit.parts);
    const observations = this.#frozen.flatMap((transit) => transit.observations);
    const firstCall = observations.findIndex((it) => it.calls.length > 0);
    const end = firstCall < 0 ? observations.length : firstCall;
    const content = begun || observations.slice(0, end).some((it) => it.shows !== "nothing");
    const from = content ? end : 0;
    this.#frozen = firstOf(this.#frozen, from);
    if (from === parts.length) return content ? { parts: [], observations: [], begun: true } : undefined;
    return { parts: parts.slice(from), observations: observations.slice(from), begun: content };
  }

  /**
   * Keeps the frozen text before the first call and discards the rest. If text after a call were kept, the continuation would join onto
   * text that the discarded call no longer separates.
   */
  dropOpen(): void {
    const observations = this.#frozen.flatMap((transit) => transit.observations);
    const firstCall = observations.findIndex((it) => it.calls.length > 0);
    this.#frozen = firstCall < 0 ? noParts : firstOf(this.#frozen, firstCall);
  }

  /**
   * Removes and returns all frozen parts. While the reader is away, the attempt that resumes the response holds them.
   *
   * @param begun true if content of the response was handed over before
   */
  takeAll(begun: boolean): Carried<P> | undefined {
    const parts = this.#frozen.flatMap((transit) => transit.parts);
    const observations = this.#frozen.flatMap((transit) => transit.observations);
    this.#frozen = noParts;
    return parts.length === 0 && !begun ? undefined : { parts, observations, begun };
  }

  /**
   * Counts frozen parts as handed over, records that and returns their events.
   *
   * @param textOnly true to release only parts that show something and contain no call
   * @returns undefined if the parts may not be handed over
   */
  releaseFrozen(textOnly: boolean): Effect.Effect<ReadonlyArray<PartEvent<P>> | undefined> {
    return Effect.suspend(() => {
      const kept = textOnly ? this.#frozen.map(onlyText) : this.#frozen;
      this.#frozen = noParts;
      const raising = kept.filter((transit) => this.#isRecordNeeded(transit));
      for (const transit of kept) this.#count(transit);
      if (raising.length > 0) {
        const record = this.#startWrite(raising.flatMap(wholeOf));
        for (const transit of raising) transit.record = record;
      }
      return this.#eventsAfterWrites(kept);
    });
  }

  /** Returns the events of these parts after all their writes have ended. */
  #eventsAfterWrites(parts: ReadonlyArray<Transit<P>>): Effect.Effect<ReadonlyArray<PartEvent<P>> | undefined> {
    const writes = [...new Set(parts.flatMap(({ record }) => record ?? []))];
    return Effect.map(
      Effect.forEach(writes, (write) => Deferred.await(write)),
      (may) => (may.every(Boolean) ? parts.flatMap((transit) => this.#events(transit)) : undefined),
    );
  }

  /** Starts the write, which continues even if the pull is interrupted. Returns undefined if it is already complete. */
  #startWrite(calls: ReadonlyArray<NamedCall>): Deferred.Deferred<boolean> | undefined {
    const record = this.#owner.recordShown(calls);
    if (record === true) return undefined;
    this.#lastWrite = record;
    return record;
  }

  #slot(transit: Transit<P>, inNextTurn: boolean): Slot<P> {
    return {
      inNextTurn,
      record: () => {
        if (transit.record !== undefined) return Deferred.await(transit.record);
        if (!this.#isRecordNeeded(transit)) return undefined;
        this.#count(transit);
        transit.record = this.#startWrite(wholeOf(transit));
        return transit.record && Deferred.await(transit.record);
      },
      deliver: () => {
        this.#inSlot = undefined;
        this.#count(transit);
        return this.#events(transit);
      },
      onTaken: () => {
        if (!this.#putNext(true)) this.#owner.onSlotFree();
      },
    };
  }

  /** True if the facts that this hand-over raises must be recorded first (L8). */
  #isRecordNeeded(transit: Transit<P>): boolean {
    if (transit.counted === "handed_over") return false;
    const { facts } = this.#owner;
    for (const observation of transit.observations) {
      if (facts.wouldShow(observation)) return true;
      // Every complete call must be named on record, even if its row was folded and adds no facts.
      if (observation.calls.length > 0 && completedCalls(observation.calls).length > 0) return true;
    }
    return false;
  }

  /** Counts each part as decoded and then as handed over, one part at a time, so that text and calls keep their order. */
  #count(transit: Transit<P>): void {
    if (transit.counted === "handed_over") return;
    const { facts } = this.#owner;
    if (transit.counted === "no") facts.passed(transit.observations);
    else for (const observation of transit.observations) facts.handedOver(observation);
    transit.counted = "handed_over";
  }

  #events(transit: Transit<P>): Array<PartEvent<P>> {
    const { ledger, runId, seams, taps } = this.#host;
    const owner = this.#owner;
    const attempt = owner.number;
    let events: Array<PartEvent<P>> | undefined;
    // A manual index, because `entries` would allocate a pair for each part.
    let index = 0;
    if (seams !== undefined)
      for (const part of transit.parts) seams.recordSent(part, transit.observations[index++] ?? none);
    index = 0;
    for (const part of transit.parts) {
      this.#ordinal += 1;
      const ordinal = this.#ordinal;
      const observation = transit.observations[index];
      index += 1;
      if (observation !== undefined && observation.shows !== "nothing") {
        this.#hasShown = true;
        if (observation.shows === "text") this.#lastTextOrdinal = ordinal;
      }
      const calls =
        observation === undefined || observation.calls.length === 0
          ? noCalls
          : ledger.registerCalls(owner, runId, ordinal, observation.calls);
      const event: PartEvent<P> =
        calls.length === 0 ? { _tag: "Part", attempt, ordinal, part } : { _tag: "Part", attempt, ordinal, part, calls };
      if (taps?.weighed !== undefined && observation !== undefined) taps.weighed(event, observation);
      // Nearly every batch has one part, and V8 reserves room for seventeen elements when an empty array grows. So the array starts with
      // one element.
      if (events === undefined) events = [event];
      else events.push(event);
    }
    return events ?? [];
  }

  #countDecoded(transit: Transit<P>): void {
    if (transit.counted !== "no") return;
    for (const observation of transit.observations) this.#owner.facts.decoded(observation);
    transit.counted = "decoded";
  }
}

const noCalls: ReadonlyArray<ReadyCall> = [];

/** Concatenates parts that are not counted yet. */
const concat = <P>(first: Transit<P>, second: Batch<P>): Transit<P> => ({
  parts: [...first.parts, ...second.parts],
  observations: [...first.observations, ...second.observations],
  counted: "no",
});

/** Splits uncounted parts into batches for one turn each. */
const cut = <P>(transit: Transit<P>): Array<Transit<P>> => {
  const { observations, parts } = transit;
  if (parts.length <= turnPartsMax) return [transit];
  const pieces: Array<Transit<P>> = [];
  for (let at = 0; at < parts.length; at += turnPartsMax) {
    const end = at + turnPartsMax;
    pieces.push({ parts: parts.slice(at, end), observations: observations.slice(at, end), counted: "no" });
  }
  return pieces;
};

/** Shared by all attempts without frozen parts. */
const noParts: ReadonlyArray<never> = [];

const wholeOf = <P>({ observations }: Transit<P>): ReadonlyArray<NamedCall> =>
  observations.flatMap(({ calls }) => completedCalls(calls));

/** Returns the first `count` parts. */
const firstOf = <P>(transits: ReadonlyArray<Transit<P>>, count: number): Array<Transit<P>> => {
  let left = count;
  return transits.flatMap((transit) => {
    const taken = Math.min(left, transit.parts.length);
    left -= taken;
    if (taken === 0) return [];
    return { ...transit, parts: transit.parts.slice(0, taken), observations: transit.observations.slice(0, taken) };
  });
};

const onlyText = <P>(transit: Transit<P>): Transit<P> => {
  const keep = transit.observations.map((it) => it.shows !== "nothing" && it.calls.length === 0);
  return {
    ...transit,
    parts: transit.parts.filter((_, index) => keep[index] === true),
    observations: transit.observations.filter((_, index) => keep[index] === true),
  };
};
