/**
 * Carries the parts of one attempt to the reader: through the slot, or frozen until a decision says what becomes of them.
 *
 * It counts what was decoded and what was handed over, each part in its turn, so that text and calls keep their order. A part
 * whose hand-over must be on record waits for its one write, whatever becomes of the pull or of the attempt meanwhile (L8).
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { none } from "../../domain/Observation.ts";
import type { TextSeam } from "../../seam/TextSeam.ts";
import type { ReaderWord } from "../contract/Presence.ts";
import type { PartEvent } from "../contract/RunEvent.ts";
import type { Taps } from "../contract/Taps.ts";
import type { ReadyCall } from "../contract/ToolCall.ts";
import { type LedgerAttempt, type NamedCall, type ToolLedger, wholeCalls } from "../tools/ToolLedger.ts";
import type { Handoff, Slot } from "./Handoff.ts";
import type { Batch, Carried, Reveal } from "./Reveal.ts";

/** What the flow needs of its run. */
export interface FlowHost<P> {
  readonly runId: string;
  readonly handoff: Handoff<P>;
  readonly ledger: ToolLedger;
  /** Follows what leaves, where text may go on. */
  readonly seams: Pick<TextSeam<P>, "left"> | undefined;
  readonly taps: Taps<P> | undefined;
}

/** What the flow needs of its attempt. */
export interface FlowOwner extends LedgerAttempt {
  /**
   * Commits the attempt's facts before something of it is handed over, with the calls that become whole by it. Says whether they
   * may be handed over: at once, where the store took the write in this very step.
   */
  readonly recordShown: (calls: ReadonlyArray<NamedCall>) => true | Deferred.Deferred<boolean>;
  /** The slot is free again. */
  readonly taken: () => void;
}

/** Parts on their way, and how far the facts count them. */
interface Transit<P> extends Batch<P> {
  counted: "no" | "decoded" | "handed_over";
  /** The write that the hand-over waits for, once it has begun; its result says whether the parts may be handed over. */
  record?: Deferred.Deferred<boolean> | undefined;
}

/** Most parts that are handed over in one turn of the event loop: what was held may be many more. */
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
  /** Parts that wait for the slot: a hold has ended while its reader was busy, or gave more than fit in one turn. */
  #next: Array<Transit<P>> = [];
  #frozen: ReadonlyArray<Transit<P>> = noParts;
  /** The newest write, which may be over. */
  #lastWrite: Deferred.Deferred<boolean> | undefined;

  constructor(host: FlowHost<P>, owner: FlowOwner, reveal: Reveal<P>) {
    this.#host = host;
    this.#owner = owner;
    this.#reveal = reveal;
  }

  /**
   * An earlier process may have handed over parts of the attempt; only its caller knows which.
   *
   * @param keeps some of them stay when the run goes on from what has settled
   */
  handedOverBefore(keeps: boolean): void {
    this.#ordinal = 1;
    this.#lastTextOrdinal = keeps ? 1 : 0;
  }

  /** Parts handed over so far. */
  get ordinal(): number {
    return this.#ordinal;
  }

  /** Whether something that shows text or reasoning has left. */
  get hasShown(): boolean {
    return this.#hasShown;
  }

  /** Ordinal of the last text part that was handed over; 0 when there is none. */
  get lastTextOrdinal(): number {
    return this.#lastTextOrdinal;
  }

  /** Whether parts wait for the reader: nothing more is read meanwhile. A reader that is away keeps nothing from being read. */
  get full(): boolean {
    return this.#inSlot !== undefined && this.#host.taps?.presence?.isAway !== true;
  }

  /** Hears of the run's reader. What is held passes on exactly as it would have, once a reader is there again. */
  reader(word: ReaderWord): void {
    if (word === "left") {
      this.#reveal.readerLeft(this.#untaken());
    } else if (word === "evicted") {
      this.#throwAway(this.#reveal.release());
    } else {
      if (this.#inSlot !== undefined) this.#put(this.#inSlot);
      this.handOver(this.#reveal.readerCameBack());
    }
  }

  /** What of these parts may be handed over now. A run that no reader can have any more only counts what it sees. */
  pass(batch: Batch<P>): Batch<P> {
    if (this.#host.taps?.presence?.isEvicted !== true) return this.#reveal.pass(batch);
    this.#throwAway(batch);
    return { parts: [], observations: [] };
  }

  /** Hands over what has passed. What does not fit while the reader is away cannot be, nor what was held before it (L11). */
  handOver(passed: Batch<P>): void {
    if (this.#reveal.isOverfull) this.#host.taps?.presence?.evict();
    else if (passed.parts.length > 0) this.#offer(passed);
  }

  /** What the reader has not taken. What waits for a write that was begun for it stays here, out of its reach (L8). */
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

  /** No reader will have these parts: they were seen, not shown (L4). */
  #throwAway(batch: Batch<P>): void {
    this.#countDecoded({ ...batch, counted: "no" });
  }

  /** Waits for a write that an interrupted pull has left behind, so that later entries stand behind it. */
  get written(): Effect.Effect<unknown> {
    return Effect.suspend(() =>
      this.#lastWrite === undefined ? Effect.void : Effect.exit(Deferred.await(this.#lastWrite)),
    );
  }

  /** Whether such a write is under way, or parts are frozen. */
  get isUnsettled(): boolean {
    return this.#frozen.length > 0 || (this.#lastWrite !== undefined && !Deferred.isDoneUnsafe(this.#lastWrite));
  }

  /** Hands parts to a reader that waits, or leaves them in the slot. */
  #offer(batch: Batch<P>): void {
    const transit: Transit<P> = { parts: batch.parts, observations: batch.observations, counted: "no" };
    if (this.#inSlot !== undefined) {
      const last = this.#next.pop();
      this.#next.push(...(last === undefined ? cut(transit) : cut(joined(last, transit))));
      return;
    }
    if (transit.parts.length > turnPartsMax) {
      this.#next = cut(transit);
      this.#putNext(false);
      return;
    }
    const { handoff } = this.#host;
    if (handoff.wanted && !this.#raises(transit)) {
      this.#count(transit);
      handoff.give(this.#events(transit));
      return;
    }
    this.#put(transit);
  }

  /** Puts what waits first into the slot. Says whether something waited. */
  #putNext(inNextTurn: boolean): boolean {
    const next = this.#next.shift();
    if (next !== undefined) this.#put(next, inNextTurn);
    return next !== undefined;
  }

  #put(transit: Transit<P>, inNextTurn = false): void {
    this.#inSlot = transit;
    this.#host.handoff.put(this.#slot(transit, inNextTurn));
  }

  /** Keeps parts that came directly before the failure: they were seen, not shown. */
  keepFrozen(batch: Batch<P>): void {
    const transit: Transit<P> = { ...batch, counted: "no" };
    this.#frozen = [...this.#frozen, transit];
    this.#countDecoded(transit);
  }

  /** Takes back what was not handed over, with what was held, and counts it as decoded. */
  freeze(held: Batch<P>): void {
    const waiting = this.#inSlot === undefined ? this.#next : [this.#inSlot, ...this.#next];
    if (waiting.length > 0) this.#frozen = [...waiting, ...this.#frozen];
    this.#inSlot = undefined;
    this.#next = [];
    this.#host.handoff.clear();
    if (held.parts.length > 0) this.#frozen = [...this.#frozen, { ...held, counted: "no" }];
    for (const transit of this.#frozen) this.#countDecoded(transit);
  }

  /** The parts that wait for the decision. */
  get frozen(): ReadonlyArray<P> {
    return this.#frozen.flatMap(({ parts }) => parts);
  }

  /** Throws the frozen parts away. */
  discardFrozen(): void {
    this.#frozen = noParts;
  }

  /**
   * Takes those frozen parts out that a caller which cannot discard must not receive yet: all from the first call on, and
   * everything while no content has come.
   *
   * @param begun content of the response was handed over before
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

  /** Throws away the frozen text that no call closes: its next words would stand directly behind it. */
  dropOpen(): void {
    const observations = this.#frozen.flatMap((transit) => transit.observations);
    const firstCall = observations.findIndex((it) => it.calls.length > 0);
    this.#frozen = firstCall < 0 ? noParts : firstOf(this.#frozen, firstCall);
  }

  /**
   * Takes out all that is frozen: while the reader is away the attempt that resumes the response holds it.
   *
   * @param begun content of the response was handed over before
   */
  takeAll(begun: boolean): Carried<P> | undefined {
    const parts = this.#frozen.flatMap((transit) => transit.parts);
    const observations = this.#frozen.flatMap((transit) => transit.observations);
    this.#frozen = noParts;
    return parts.length === 0 && !begun ? undefined : { parts, observations, begun };
  }

  /**
   * Counts frozen parts as handed over, puts that on record and gives their events.
   *
   * @param textOnly only what shows something and holds no call
   * @returns undefined where they may not be handed over
   */
  releaseFrozen(textOnly: boolean): Effect.Effect<ReadonlyArray<PartEvent<P>> | undefined> {
    return Effect.suspend(() => {
      const kept = textOnly ? this.#frozen.map(onlyText) : this.#frozen;
      this.#frozen = noParts;
      const raising = kept.filter((transit) => this.#raises(transit));
      for (const transit of kept) this.#count(transit);
      if (raising.length > 0) {
        const record = this.#written(raising.flatMap(wholeOf));
        for (const transit of raising) transit.record = record;
      }
      return this.#recorded(kept);
    });
  }

  /** The events of these parts, once every write that they wait for has ended. */
  #recorded(parts: ReadonlyArray<Transit<P>>): Effect.Effect<ReadonlyArray<PartEvent<P>> | undefined> {
    const writes = [...new Set(parts.flatMap(({ record }) => record ?? []))];
    return Effect.map(
      Effect.forEach(writes, (write) => Deferred.await(write)),
      (may) => (may.every(Boolean) ? parts.flatMap((transit) => this.#events(transit)) : undefined),
    );
  }

  /** Begins the write, which goes on also where its pull is interrupted. Undefined where it is written by now. */
  #written(calls: ReadonlyArray<NamedCall>): Deferred.Deferred<boolean> | undefined {
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
        if (!this.#raises(transit)) return undefined;
        this.#count(transit);
        transit.record = this.#written(wholeOf(transit));
        return transit.record && Deferred.await(transit.record);
      },
      deliver: () => {
        this.#inSlot = undefined;
        this.#count(transit);
        return this.#events(transit);
      },
      taken: () => {
        if (!this.#putNext(true)) this.#owner.taken();
      },
    };
  }

  /** Whether the hand-over of these parts raises facts that must be on record first (L8). */
  #raises(transit: Transit<P>): boolean {
    if (transit.counted === "handed_over") return false;
    const { facts } = this.#owner;
    for (const observation of transit.observations) {
      if (facts.wouldShow(observation)) return true;
      // The record names every whole call, also where its row was folded and shows nothing new.
      if (observation.calls.length > 0 && wholeCalls(observation.calls).length > 0) return true;
    }
    return false;
  }

  /** Counts parts as decoded and handed over, each in its turn, so that text and calls keep their order. */
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
    // Counted by hand, here and wherever every part passes: `entries` makes a pair for each.
    let index = 0;
    if (seams !== undefined) for (const part of transit.parts) seams.left(part, transit.observations[index++] ?? none);
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
          : ledger.handedOver(owner, runId, ordinal, observation.calls);
      const event: PartEvent<P> =
        calls.length === 0 ? { _tag: "Part", attempt, ordinal, part } : { _tag: "Part", attempt, ordinal, part, calls };
      if (taps?.weighed !== undefined && observation !== undefined) taps.weighed(event, observation);
      // Most are alone. A list that grows has room for seventeen.
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

/** Parts that were not counted yet, behind each other. */
const joined = <P>(first: Transit<P>, second: Batch<P>): Transit<P> => ({
  parts: [...first.parts, ...second.parts],
  observations: [...first.observations, ...second.observations],
  counted: "no",
});

/** Cuts parts that were not counted yet into what one turn may hand over. */
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

/** Shared by all attempts that have nothing frozen. */
const noParts: ReadonlyArray<never> = [];

const wholeOf = <P>({ observations }: Transit<P>): ReadonlyArray<NamedCall> =>
  observations.flatMap(({ calls }) => wholeCalls(calls));

/** The first `count` parts. */
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
