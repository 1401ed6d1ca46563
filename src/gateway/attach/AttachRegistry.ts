/**
 * Tracks the runs whose responses a client can attach to: finds the run that a request repeats, and decides how much of each response is
 * kept, and for how long.
 *
 * Life of an entry:
 *
 * 1. `begin` registers it for the client that may read it. It is read while a client is connected. The key of its request may follow later
 * (`setRequest`), because most runs are never repeated. Until then no repeat finds it.
 *
 * 2. `recordDetach`: its reader has left. The entry expires after `lingerMs`, and its watcher ends the run, unless a reader attaches
 * before.
 *
 * 3. `recordEnd`: its run has ended. The response is kept for `lingerMs` after the run's end or the last reader's departure, whichever is
 * later, because the last packets are the ones most often lost.
 *
 * 4. `evict`: the response is too long or there are too many. The run continues for its reader, but no client can attach any more.
 *
 * The registry is pure: the caller passes times in milliseconds and acts on evictions. It keeps neither credentials nor requests, only
 * their keys (`AttachKey.ts`).
 */
import { dropOldest } from "../../domain/Limits.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { isSameKey } from "./AttachKey.ts";
import type { AttachWish } from "./AttachWish.ts";
import { ByteLog } from "./ByteLog.ts";

/** Maximum number of kept bytes per response: ten times the longest response that a model writes. */
export const runBytesMax = 8 * 1024 * 1024;

/** Maximum number of kept bytes of all responses. */
export const processBytesMax = 256 * 1024 * 1024;

/** Maximum number of registered runs. */
export const runsMax = 1024;

/** Limits of a registry. If a limit is exceeded, the registry evicts responses. */
export interface AttachLimits {
  readonly runBytes: number;
  readonly processBytes: number;
  readonly runs: number;
}

const limitsDefault: AttachLimits = { runBytes: runBytesMax, processBytes: processBytesMax, runs: runsMax };

/** Reason why a response is no longer kept. */
export type Eviction = "run_bytes" | "process_bytes" | "runs";

type AttachPeriod = Pick<AttachWish, "idempotencyKey" | "lingerMs">;

/** Keys and options of an entry. */
export interface AttachTerms extends AttachPeriod {
  /** Key of the request, which its repeats share; empty until it is known. */
  readonly request: string;
  /** Key of the client that may read the response. */
  readonly holder: string;
}

/** End of a run. `broken` and `cancelled` runs answer no repeat. */
export type EntryEnd = "whole" | "broken" | "cancelled";

/** A run to whose response a client can attach. Only the registry changes it. */
export interface AttachEntry {
  readonly terms: AttachTerms;
  readonly log: ByteLog;
  /** Undefined until the run's first event. */
  readonly runId: string | undefined;
  readonly isRead: boolean;
  /** Time at which the last reader left; undefined while there is a reader. */
  readonly leftAt: number | undefined;
  readonly end: { readonly how: EntryEnd; readonly at: number } | undefined;
  /** True if a reader received everything. */
  readonly isDelivered: boolean;
  readonly evicted: Eviction | undefined;
}

type Entry = { -readonly [Key in keyof AttachEntry]: AttachEntry[Key] };

/** Returns true if the socket of an entry's reader accepts no bytes. */
export type IsSilent = (entry: AttachEntry) => boolean;

/** The registry of runs that a client can attach to. A process has one. */
export class AttachRegistry {
  readonly #limits: AttachLimits;
  /** Registered entries, oldest first. */
  readonly #entries = new Set<Entry>();
  /** Returns the oldest entry, which is then evicted. A new iterator would pass over the places of all that are gone. */
  readonly #oldest = this.#entries.values();
  readonly #byRequest = new Map<string, Set<Entry>>();
  readonly #byRun = new Map<string, Entry>();
  /** Ids of evicted runs, each with the key of the client that may read the run. */
  readonly #gone = new Map<string, string>();
  /** Live runs without a reader. */
  readonly #unread = new Set<Entry>();
  #bytes = 0;

  /** @param limits defaults to the limits of a process */
  constructor(limits: Partial<AttachLimits> = {}) {
    this.#limits = { ...limitsDefault, ...limits };
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** All registered runs, oldest first. */
  get entries(): ReadonlyArray<AttachEntry> {
    return [...this.#entries];
  }

  /**
   * Registers a run that is being read.
   *
   * @returns its entry, and the entries that were evicted to make room
   */
  begin({ holder, idempotencyKey, lingerMs, request }: AttachTerms): {
    readonly entry: AttachEntry;
    readonly evicted: ReadonlyArray<AttachEntry>;
  } {
    const entry: Entry = {
      ...{ terms: { holder, idempotencyKey, lingerMs, request: "" }, log: new ByteLog(), runId: undefined },
      ...{ isRead: true, leftAt: undefined, end: undefined, isDelivered: false, evicted: undefined },
    };
    this.#entries.add(entry);
    if (request !== "") this.setRequest(entry, request);
    return { entry, evicted: this.#isFull ? this.#makeRoom([]) : none };
  }

  /** Sets the key of an entry's request. Repeats find the entry from now on. */
  setRequest(of: AttachEntry, request: string): void {
    const entry = toWritable(of);
    if (!this.#entries.has(entry)) return;
    entry.terms = { ...entry.terms, request };
    const same = this.#byRequest.get(request) ?? new Set();
    this.#byRequest.set(request, same.add(entry));
  }

  /** Updates the set of live runs without a reader. */
  #updateUnread(entry: Entry): void {
    if (!entry.isRead && entry.end === undefined && this.#entries.has(entry)) this.#unread.add(entry);
    else this.#unread.delete(entry);
  }

  setRunId(of: AttachEntry, runId: string): void {
    const entry = toWritable(of);
    entry.runId = runId;
    if (this.#entries.has(entry)) this.#byRun.set(runId, entry);
  }

  /**
   * Appends bytes of a response. The bytes of an evicted entry are kept until its reader has received them.
   *
   * @returns the entries that were evicted because of the new bytes
   */
  append(of: AttachEntry, chunks: ReadonlyArray<Bytes>): ReadonlyArray<AttachEntry> {
    const entry = toWritable(of);
    const before = entry.log.allocated;
    for (const bytes of chunks) entry.log.append(bytes);
    if (entry.log.allocated === before && entry.log.length <= this.#limits.runBytes) return none;
    if (!this.#entries.has(entry)) return none;
    this.#bytes += entry.log.allocated - before;
    const evicted: Array<AttachEntry> = [];
    if (entry.log.length > this.#limits.runBytes) evicted.push(this.#evict(entry, "run_bytes"));
    return this.#makeRoom(evicted);
  }

  get #isFull(): boolean {
    return this.#entries.size > this.#limits.runs || this.#bytes > this.#limits.processBytes;
  }

  #makeRoom(evicted: Array<AttachEntry>): ReadonlyArray<AttachEntry> {
    while (this.#isFull) {
      const { value: oldest } = this.#oldest.next();
      if (oldest === undefined) break;
      evicted.push(this.#evict(oldest, this.#entries.size > this.#limits.runs ? "runs" : "process_bytes"));
    }
    return evicted;
  }

  /** Records that a reader has started to read a response or has replaced another reader. */
  recordAttach(of: AttachEntry): void {
    const entry = toWritable(of);
    entry.isRead = true;
    entry.leftAt = undefined;
    this.#updateUnread(entry);
  }

  /**
   * Records that the reader has left.
   *
   * @param delivered true if it received everything
   */
  recordDetach(of: AttachEntry, now: number, delivered: boolean): void {
    const entry = toWritable(of);
    entry.isRead = false;
    entry.leftAt = now;
    entry.isDelivered ||= delivered;
    this.#updateUnread(entry);
  }

  /** Records the end of the run. Only the first call counts. */
  recordEnd(of: AttachEntry, how: EntryEnd, now: number): void {
    const entry = toWritable(of);
    entry.end ??= { how, at: now };
    const before = entry.log.allocated;
    entry.log.trim();
    if (this.#entries.has(entry)) this.#bytes -= before - entry.log.allocated;
    this.#updateUnread(entry);
  }

  /** Returns the time at which an entry expires unless a reader attaches; undefined while it has a reader. */
  expiryOf({ end, isRead, leftAt, terms }: AttachEntry): number | undefined {
    if (isRead) return undefined;
    if (end?.how === "cancelled") return end.at;
    return Math.max(leftAt ?? 0, end?.at ?? 0) + terms.lingerMs;
  }

  drop(of: AttachEntry): void {
    const entry = toWritable(of);
    if (!this.#entries.delete(entry)) return;
    this.#unread.delete(entry);
    this.#bytes -= entry.log.allocated;
    if (entry.runId !== undefined) this.#byRun.delete(entry.runId);
    const same = this.#byRequest.get(entry.terms.request);
    same?.delete(entry);
    if (same?.size === 0) this.#byRequest.delete(entry.terms.request);
  }

  /**
   * Finds the run that a request repeats and may attach to. Runs without a reader come first.
   *
   * @param request key of the request
   * @param isSilent if all candidates have readers, the first one whose reader is silent is returned
   */
  findRepeated(request: string, wish: AttachWish, isSilent: IsSilent): AttachEntry | undefined {
    const same = this.#byRequest.get(request);
    if (wish.forbidden || same === undefined) return undefined;
    const found = [...same].filter((entry) => mayAnswer(entry, wish));
    const inOrder = found.toSorted((a, b) => rankOf(a, wish) - rankOf(b, wish) || detachTimeOf(a) - detachTimeOf(b));
    return inOrder.find((entry) => !entry.isRead) ?? inOrder.find(isSilent);
  }

  /**
   * True if a request might attach to a run. This check is cheap, because it needs no key. A request without a sign of a repeat can match
   * only a live run without a reader, and usually there is none.
   */
  mightAnswer({ asked, forbidden, idempotencyKey, repeats }: AttachWish): boolean {
    if (this.#entries.size === 0 || forbidden) return false;
    return asked || repeats || idempotencyKey !== undefined || this.#unread.size > 0;
  }

  has(request: string): boolean {
    return this.#byRequest.has(request);
  }

  /** Returns the runs with a request's key that are being read. */
  read(request: string): ReadonlyArray<AttachEntry> {
    return [...(this.#byRequest.get(request) ?? [])].filter(({ isRead }) => isRead);
  }

  /**
   * Finds a run by id, for the client that may read it.
   *
   * @param holder key of the requesting client
   * @returns `evicted` if the response is no longer kept, undefined if there is no run with this id that the client may read
   */
  find(runId: string, holder: string): AttachEntry | "evicted" | undefined {
    const entry = this.#byRun.get(runId);
    const known = entry?.terms.holder ?? this.#gone.get(runId);
    if (!isSameKey(known ?? nobody, holder) || known === undefined) return undefined;
    return entry ?? "evicted";
  }

  /** Evicts a response, for example because its buffered output exceeded the limit while it had no client. */
  evict(entry: AttachEntry, why: Eviction): void {
    if (entry.evicted === undefined) this.#evict(toWritable(entry), why);
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

/** Matches no key. Unknown ids are compared with this key too, so that the response time does not reveal which ids exist. */
const nobody = "0".repeat(64);

/** Gives write access to an entry. All entries are created here, and only the registry writes their fields. */
const toWritable = (entry: AttachEntry): Entry => entry as Entry;

/**
 * True if a run may answer a request with the same key. A failed run may not, since its repeat should get a new run. Programs may send
 * equal requests on purpose, to sample several responses. Without a sign of a repeat, a request therefore attaches only to a live run
 * without a reader.
 */
const mayAnswer = (entry: AttachEntry, wish: AttachWish): boolean => {
  const { end, isRead, terms } = entry;
  if (end !== undefined && end.how !== "whole") return false;
  if (wish.asked) return true;
  const same = wish.idempotencyKey === terms.idempotencyKey;
  // A client that uses idempotency keys distinguishes its requests by them.
  if (wish.idempotencyKey !== undefined && terms.idempotencyKey !== undefined && !same) return false;
  const says = wish.repeats || (same && wish.idempotencyKey !== undefined);
  return says || (end === undefined && !isRead);
};

/** Prefers runs with the same idempotency key, then those whose response no client has received completely. */
const rankOf = ({ isDelivered, terms }: AttachEntry, { idempotencyKey }: AttachWish): number =>
  (idempotencyKey !== undefined && terms.idempotencyKey === idempotencyKey ? 0 : 2) + (isDelivered ? 1 : 0);

const detachTimeOf = ({ leftAt }: AttachEntry): number => leftAt ?? Number.POSITIVE_INFINITY;
