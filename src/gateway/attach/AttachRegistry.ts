/**
 * Knows the runs whose responses may be attached to: which of them a request repeats, what is kept of each, and for how long.
 *
 * The life of an entry:
 *
 * 1. `begin` with its request. It is `reading` while a client reads its response. Where nothing could be found by its key, `open` comes
 *    first and `admit`, with the keys, later in the same step: keys are made while its provider has the request.
 * 2. `left` by its reader, its time runs: `lingerMs` later it has expired, and whoever watches it ends its run. A reader that joins
 *    stops that time.
 * 3. `ended` by its run, it is kept for `lingerMs` behind that end and behind its last reader, because the commonest loss is the last
 *    packet.
 * 4. `evicted` where it has become too long, or where there are too many: its run goes on for its reader, and nobody attaches.
 *
 * The registry is pure: times are milliseconds that its caller gives, and what an eviction means for a run is the caller's to do. It
 * keeps no credential and no request, only keys of them (`AttachKey.ts`).
 */
import { dropOldest } from "../../domain/Limits.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { isSameKey } from "./AttachKey.ts";
import type { AttachWish } from "./AttachWish.ts";
import { ByteLog } from "./ByteLog.ts";

/** Most bytes of one response that are kept: ten times the longest that a model writes in one. */
export const runBytesMax = 8 * 1024 * 1024;

/** Most bytes of all responses together. */
export const processBytesMax = 256 * 1024 * 1024;

/** Most runs that may be attached to. */
export const runsMax = 1024;

/** What the registry may keep. */
export interface AttachLimits {
  readonly runBytes: number;
  readonly processBytes: number;
  readonly runs: number;
}

const limitsDefault: AttachLimits = { runBytes: runBytesMax, processBytes: processBytesMax, runs: runsMax };

/** Why a response is not kept any more. */
export type Eviction = "run_bytes" | "process_bytes" | "runs";

/** What a request says of its entry. */
type AttachPeriod = Pick<AttachWish, "idempotencyKey" | "lingerMs">;

/** By what an entry is found. */
export interface EntryKeys {
  /** The key of the request. */
  readonly request: string;
  /** The key of who may have its response. */
  readonly holder: string;
}

/** The request of an entry. */
export interface AttachTerms extends AttachPeriod, EntryKeys {}

/** How a run came to its end. `broken` and `cancelled` answer no repeat. */
export type EntryEnd = "whole" | "broken" | "cancelled";

/** A run that may be attached to. Only the registry changes it. */
export interface AttachEntry {
  readonly terms: AttachTerms;
  readonly log: ByteLog;
  /** Named by the run's first event. */
  readonly runId: string | undefined;
  readonly isRead: boolean;
  /** When its last reader left; undefined while it has one. */
  readonly leftAt: number | undefined;
  readonly end: { readonly how: EntryEnd; readonly at: number } | undefined;
  /** A reader had everything to the end. */
  readonly isDelivered: boolean;
  readonly evicted: Eviction | undefined;
}

type Entry = { -readonly [Key in keyof AttachEntry]: AttachEntry[Key] };

/** What the registry says of an entry's reader: that its socket is silent. */
export type IsSilent = (entry: AttachEntry) => boolean;

/** The runs that may be attached to. One for a process. */
export class AttachRegistry {
  readonly #limits: AttachLimits;
  /** The oldest first. */
  readonly #entries = new Set<Entry>();
  readonly #byRequest = new Map<string, Set<Entry>>();
  readonly #byRun = new Map<string, Entry>();
  /** Runs that were evicted, with the key of who may know it. */
  readonly #gone = new Map<string, string>();
  /** Runs that go on without a reader. */
  readonly #unread = new Set<Entry>();
  #bytes = 0;

  /** @param limits those of a process by default */
  constructor(limits: Partial<AttachLimits> = {}) {
    this.#limits = { ...limitsDefault, ...limits };
  }

  /** Runs that may be attached to. */
  get size(): number {
    return this.#entries.size;
  }

  /** Bytes that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The runs that may be attached to, the oldest first. */
  get entries(): ReadonlyArray<AttachEntry> {
    return [...this.#entries];
  }

  /**
   * Takes a run in; it is being read.
   *
   * @returns it, and what was evicted for it
   */
  begin(terms: AttachTerms): { readonly entry: AttachEntry; readonly evicted: ReadonlyArray<AttachEntry> } {
    const entry = this.open(terms);
    return { entry, evicted: this.admit(entry, terms) };
  }

  /** Makes the entry of a run that is being read, and that nothing finds yet. */
  open({ idempotencyKey, lingerMs }: AttachPeriod): AttachEntry {
    const terms = { ...unknown, idempotencyKey, lingerMs };
    const entry: Entry = {
      ...{ terms, log: new ByteLog(), runId: undefined, isRead: true, leftAt: undefined },
      ...{ end: undefined, isDelivered: false, evicted: undefined },
    };
    return entry;
  }

  /**
   * Takes in an entry that was opened, whatever has become of it.
   *
   * @returns what was evicted for it
   */
  admit(of: AttachEntry, { holder, request }: EntryKeys): ReadonlyArray<AttachEntry> {
    const entry = own(of);
    entry.terms = { ...entry.terms, holder, request };
    this.#entries.add(entry);
    this.#bytes += entry.log.held;
    const same = this.#byRequest.get(request) ?? new Set();
    this.#byRequest.set(request, same.add(entry));
    if (entry.runId !== undefined) this.#byRun.set(entry.runId, entry);
    this.#looked(entry);
    return this.#isFull ? this.#makesRoom([]) : none;
  }

  /** Notes whether a run goes on without a reader. */
  #looked(entry: Entry): void {
    if (!entry.isRead && entry.end === undefined && this.#entries.has(entry)) this.#unread.add(entry);
    else this.#unread.delete(entry);
  }

  /** The run has its name. */
  named(of: AttachEntry, runId: string): void {
    const entry = own(of);
    entry.runId = runId;
    if (this.#entries.has(entry)) this.#byRun.set(runId, entry);
  }

  /**
   * Keeps bytes of a response. Those of one that was evicted are kept until its reader has them.
   *
   * @returns what was evicted for them
   */
  append(of: AttachEntry, chunks: ReadonlyArray<Bytes>): ReadonlyArray<AttachEntry> {
    const entry = own(of);
    const before = entry.log.held;
    for (const bytes of chunks) entry.log.append(bytes);
    if (entry.log.held === before && entry.log.length <= this.#limits.runBytes) return none;
    if (!this.#entries.has(entry)) return none;
    this.#bytes += entry.log.held - before;
    const evicted: Array<AttachEntry> = [];
    if (entry.log.length > this.#limits.runBytes) evicted.push(this.#evict(entry, "run_bytes"));
    return this.#makesRoom(evicted);
  }

  get #isFull(): boolean {
    return this.#entries.size > this.#limits.runs || this.#bytes > this.#limits.processBytes;
  }

  #makesRoom(evicted: Array<AttachEntry>): ReadonlyArray<AttachEntry> {
    for (const oldest of this.#entries) {
      if (!this.#isFull) break;
      evicted.push(this.#evict(oldest, this.#entries.size > this.#limits.runs ? "runs" : "process_bytes"));
    }
    return evicted;
  }

  /** A reader has taken a response up, or its place. */
  joined(of: AttachEntry): void {
    const entry = own(of);
    entry.isRead = true;
    entry.leftAt = undefined;
    this.#looked(entry);
  }

  /**
   * The reader has left.
   *
   * @param delivered it had everything to the end
   */
  left(of: AttachEntry, now: number, delivered: boolean): void {
    const entry = own(of);
    entry.isRead = false;
    entry.leftAt = now;
    entry.isDelivered ||= delivered;
    this.#looked(entry);
  }

  /** The run is over. The first word counts. */
  ended(of: AttachEntry, how: EntryEnd, now: number): void {
    const entry = own(of);
    entry.end ??= { how, at: now };
    const before = entry.log.held;
    entry.log.ends();
    if (this.#entries.has(entry)) this.#bytes -= before - entry.log.held;
    this.#looked(entry);
  }

  /** When an entry has expired, if no reader joins; undefined while it has one. */
  expiresAt({ end, isRead, leftAt, terms }: AttachEntry): number | undefined {
    if (isRead) return undefined;
    if (end?.how === "cancelled") return end.at;
    return Math.max(leftAt ?? 0, end?.at ?? 0) + terms.lingerMs;
  }

  /** Forgets an entry. */
  drop(of: AttachEntry): void {
    const entry = own(of);
    if (!this.#entries.delete(entry)) return;
    this.#unread.delete(entry);
    this.#bytes -= entry.log.held;
    if (entry.runId !== undefined) this.#byRun.delete(entry.runId);
    const same = this.#byRequest.get(entry.terms.request);
    same?.delete(entry);
    if (same?.size === 0) this.#byRequest.delete(entry.terms.request);
  }

  /**
   * The run that a request repeats, if it may attach to it.
   *
   * @param request the key of the request
   * @param isSilent of several readers the first silent one loses its place
   */
  repeated(request: string, wish: AttachWish, isSilent: IsSilent): AttachEntry | undefined {
    const same = this.#byRequest.get(request);
    if (wish.forbidden || same === undefined) return undefined;
    const found = [...same].filter((entry) => mayAnswer(entry, wish));
    const inOrder = found.toSorted((a, b) => rankOf(a, wish) - rankOf(b, wish) || leftOf(a) - leftOf(b));
    return inOrder.find((entry) => !entry.isRead) ?? inOrder.find(isSilent);
  }

  /**
   * Whether a request might attach to a run, if nobody else has it by then. It costs no key to ask. A request that says nothing is
   * answered by a run without a reader alone, and there is none as a rule.
   */
  mightAnswer({ asked, forbidden, idempotencyKey, repeats }: AttachWish): boolean {
    if (this.#entries.size === 0 || forbidden) return false;
    return asked || repeats || idempotencyKey !== undefined || this.#unread.size > 0;
  }

  /** Whether there is any run of a request's key. */
  has(request: string): boolean {
    return this.#byRequest.has(request);
  }

  /** The runs of a request's key that are being read. */
  read(request: string): ReadonlyArray<AttachEntry> {
    return [...(this.#byRequest.get(request) ?? [])].filter(({ isRead }) => isRead);
  }

  /**
   * The run of a name, for who may have its response.
   *
   * @param holder the key of who asks
   * @returns `evicted` for one that is not kept any more, undefined for one that is not theirs
   */
  found(runId: string, holder: string): AttachEntry | "evicted" | undefined {
    const entry = this.#byRun.get(runId);
    const known = entry?.terms.holder ?? this.#gone.get(runId);
    if (!isSameKey(known ?? nobody, holder) || known === undefined) return undefined;
    return entry ?? "evicted";
  }

  /** Keeps a response no more that cannot be had whole. */
  evict(entry: AttachEntry, why: Eviction): void {
    if (entry.evicted === undefined) this.#evict(own(entry), why);
  }

  #evict(entry: Entry, why: Eviction): AttachEntry {
    this.drop(entry);
    entry.evicted = why;
    if (entry.runId !== undefined) {
      this.#gone.set(entry.runId, entry.terms.holder);
      dropOldest(this.#gone, this.#limits.runs);
    }
    if (!entry.isRead) entry.log.dropUntil(entry.log.length);
    return entry;
  }
}

const none: ReadonlyArray<AttachEntry> = [];

/** The keys of an entry that is not taken in yet. */
const unknown: EntryKeys = { request: "", holder: "" };

/** No key is it; an unknown name is compared too, so that the time says nothing of which names there are. */
const nobody = "0".repeat(64);

/** Every entry is made by a registry; its fields are written there alone. */
const own = (entry: AttachEntry): Entry => entry as Entry;

/**
 * Whether a run may answer a request of the same key. One that has failed answers none: its repeat is to have a new run. A request
 * that does not say that it repeats another attaches only to a run that lost its reader and goes on; programs sample.
 */
const mayAnswer = (entry: AttachEntry, wish: AttachWish): boolean => {
  const { end, isRead, terms } = entry;
  if (end !== undefined && end.how !== "whole") return false;
  if (wish.asked) return true;
  const same = wish.idempotencyKey === terms.idempotencyKey;
  // A client that names its requests says by the name which of them are the same.
  if (wish.idempotencyKey !== undefined && terms.idempotencyKey !== undefined && !same) return false;
  const says = wish.repeats || (same && wish.idempotencyKey !== undefined);
  return says || (end === undefined && !isRead);
};

/** Of several runs the one of the same name first, and one whose response somebody has had to its end last. */
const rankOf = ({ isDelivered, terms }: AttachEntry, { idempotencyKey }: AttachWish): number =>
  (idempotencyKey !== undefined && terms.idempotencyKey === idempotencyKey ? 0 : 2) + (isDelivered ? 1 : 0);

const leftOf = ({ leftAt }: AttachEntry): number => leftAt ?? Number.POSITIVE_INFINITY;
