/**
 * Holds one run that may outlive its client: what was written of its response, how that ends, and the one client that reads it.
 *
 * What comes is kept and written to a client that has everything before it, in one step. A client that lags behind copies from the
 * log, and its fiber waits for its socket. The run is asked for more while its client has taken everything and its socket needs no drain, or while
 * nobody reads: then the relay holds what comes. A client that takes the place of another one begins at
 * its own byte, and the other one's connection breaks at once: two readers of one response would each be half of the demand.
 */
import { Effect } from "effect";
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { RelayHead, RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { Presence } from "../../runtime/contract/Presence.ts";
import { attachedHeader, lingerHeader } from "../config/OwnHeaders.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { without } from "../upstream/Headers.ts";
import type { AttachEntry, AttachRegistry, EntryEnd } from "./AttachRegistry.ts";

/** Why a run is ended before its own end. */
export type StopReason = "expired" | "cancelled" | "evicted" | "closing";

/** A client that reads. */
export interface Reader {
  readonly client: ClientResponse;
  /** The byte that it has next. */
  at: number;
  /** Headers behind those of the response. */
  extra: RelayHeaders;
  isHeaded: boolean;
  /** Gives its waiting fiber what is next for it. While it waits the client is written to in whatever step something comes. */
  resume: ((next: Effect.Effect<void>) => void) | undefined;
  /** It reads no more: it has gone, or another one has its place. */
  over: boolean;
}

/** What a client is told of a run that ended before its head. It knows the whole request, with its body. */
export type Refusal = (error: RelayInterrupted, client: ClientResponse) => Effect.Effect<void>;

/** What a lingering run needs of its gateway. */
export interface LingeringServing {
  readonly registry: AttachRegistry;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** A client has come or gone. */
  readonly changed: (run: LingeringRun, what: "attached" | "left") => void;
  /** Something has changed that may say when the run's time is over. */
  readonly looked: (run: LingeringRun) => void;
  /** What was held for a client that is away did not fit. */
  readonly overflowed: (run: LingeringRun) => void;
}

/** Most bytes that are given to a socket in one step: a client that takes over at the end of a long response reads it in parts. */
const stepBytesMax = 64 * 1024;

const always = (): boolean => true;

const never = (): boolean => false;

/** One run that may outlive its client. */
export class LingeringRun {
  readonly entry: AttachEntry;
  /** Says to the run whether a client reads it: what comes meanwhile is held, and not shown. */
  readonly presence: Presence;
  /** Clients that have attached. */
  attached = 0;
  /** The client that reads now. */
  #reader: Reader | undefined;
  #head: { readonly head: RelayHead; readonly streaming: boolean } | undefined;
  /** True once the log ends with the terminal marker. */
  #isComplete = never;
  #bodyEnd: "end" | "break" | undefined;
  #failed: RelayInterrupted | undefined;
  #stop: StopReason | undefined;
  #onStop: ((why: StopReason) => void) | undefined;
  /** Undefined once the response has a head: a run lingers behind its end, and must not keep its request with it (L11). */
  #refuse: Refusal | undefined;
  /** Somebody at another gateway reads; told where it loses its place. */
  #elsewhere: (() => void) | undefined;
  readonly #serving: LingeringServing;
  /** Each looks again with every change. */
  readonly #watchers = new Set<() => void>();

  /** @param serving that of all runs of a gateway */
  constructor(entry: AttachEntry, serving: LingeringServing, refuse: Refusal) {
    this.entry = entry;
    this.#refuse = refuse;
    this.presence = new Presence(() => entry.log.held);
    this.presence.whenEvicted(() => serving.overflowed(this));
    this.#serving = serving;
  }

  /** The client that reads now. */
  get client(): ClientResponse | undefined {
    return this.#reader?.client;
  }

  /** The head that goes to clients, once there is one. */
  get head(): { readonly head: RelayHead; readonly streaming: boolean } | undefined {
    return this.#head;
  }

  /** How the body is over. */
  get bodyEnd(): "end" | "break" | undefined {
    return this.#bodyEnd;
  }

  /** Whether the run is to bring more: its client has taken everything, or nobody reads. */
  get wants(): boolean {
    const reader = this.#reader;
    return reader === undefined || (reader.at >= this.entry.log.length && reader.client.isReady());
  }

  /** The response broke, and nothing of it stands behind a byte. What broke before its head is told in words of its own. */
  isBrokenAt(from: number): boolean {
    return this.#bodyEnd === "break" && this.#failed === undefined && from >= this.entry.log.length;
  }

  /** Why the run is to end; undefined while it may go on. */
  get stop(): StopReason | undefined {
    return this.#stop;
  }

  /** Waits until something is there; it is looked for at once and with every change. */
  until<A>(look: () => A | undefined): Effect.Effect<A> {
    return Effect.callback<A>((resume) => {
      const watch = () => {
        const found = look();
        if (found === undefined) return;
        this.#watchers.delete(watch);
        resume(Effect.succeed(found));
      };
      this.#watchers.add(watch);
      watch();
      return Effect.sync(() => void this.#watchers.delete(watch));
    });
  }

  /** Something has changed that somebody may wait for. */
  changed(): void {
    if (this.#reader !== undefined) this.#copies(this.#reader);
    if (this.#watchers.size > 0) for (const watch of [...this.#watchers]) watch();
    this.#serving.looked(this);
  }

  /**
   * The head that goes to clients.
   *
   * @param isComplete whether the terminal marker has come
   */
  headed(head: RelayHead, streaming: boolean, isComplete = this.#isComplete): void {
    this.#head ??= { head, streaming };
    this.#isComplete = isComplete;
    this.#refuse = undefined;
    this.changed();
  }

  /**
   * Bytes of the response have come.
   *
   * @returns the entries that were evicted for them
   */
  append(chunks: ReadonlyArray<Bytes>): ReadonlyArray<AttachEntry> {
    const from = this.entry.log.length;
    const evicted = this.#serving.registry.append(this.entry, chunks);
    // Nothing has changed for those who wait where the client has everything and can take more.
    if (!this.#passedOn(chunks, from)) this.changed();
    return evicted;
  }

  /** Writes what has just come to a client that waits for it. Returns whether it has everything by now, and can take more. */
  #passedOn(chunks: ReadonlyArray<Bytes>, from: number): boolean {
    const reader = this.#reader;
    const { log } = this.entry;
    if (reader?.resume === undefined || !reader.isHeaded || reader.at !== from || log.length - from > stepBytesMax)
      return false;
    if (!reader.client.isReady()) return false;
    try {
      reader.client.passOn(chunks);
    } catch (defect) {
      this.#dies(reader, defect);
      return false;
    }
    this.#took(reader, log.length);
    return reader.client.isReady();
  }

  /** A client has everything up to a byte. */
  #took(reader: Reader, at: number): void {
    reader.at = at;
    if (this.entry.evicted !== undefined) this.entry.log.dropUntil(at);
  }

  /** The body is over: as a whole one, or as a broken one. The first word counts. */
  bodyEnded(how: "end" | "break"): void {
    this.#bodyEnd ??= how;
    this.changed();
  }

  /** The run is over. */
  ended(how: EntryEnd): void {
    this.#serving.registry.ended(this.entry, how, this.#serving.now());
    // Nothing is left to stop, and what stops a run knows all of it.
    this.#onStop = undefined;
    // The log outlives the run, and must not keep the response's reader.
    this.#isComplete = this.#isComplete() ? always : never;
    this.bodyEnded("break");
  }

  /** The run is over, and the response is whole. */
  completed(): void {
    // Before its client is told: one that leaves with everything leaves a run that is over.
    this.#bodyEnd ??= "end";
    this.ended("whole");
  }

  /** The run has ended before a head; its client is told how. */
  failed(error: RelayInterrupted): void {
    this.#failed = error;
    this.ended("broken");
  }

  /** Ends the run before its own end; the first word counts. */
  stopped(why: StopReason): void {
    if (this.#stop === undefined) {
      this.#stop = why;
      if (this.entry.end === undefined) {
        this.#serving.registry.ended(this.entry, "cancelled", this.#serving.now());
        this.#onStop?.(why);
      }
    }
    this.changed();
  }

  /** What is done when the run is to end while it goes on. Called at once if it is. */
  whenStopped(act: (why: StopReason) => void): void {
    this.#onStop = act;
    if (this.#stop !== undefined) act(this.#stop);
  }

  /**
   * Serves the response to a client that has a place. It returns when the client has everything, has gone, or has lost its place.
   *
   * @param extra headers behind those of the response
   */
  serve(reader: Reader, extra: RelayHeaders = []): Effect.Effect<void> {
    reader.extra = extra;
    return Effect.onExit(Effect.andThen(this.#copied(reader), reader.client.settle), () =>
      Effect.sync(() => this.#left(reader, false)),
    );
  }

  /** Gives a client the one place, from a byte on; another one that has it loses it. */
  take(client: ClientResponse, at: number): Reader {
    this.#unseatsElsewhere();
    const before = this.#reader;
    const reader: Reader = { client, at, extra: [], isHeaded: false, resume: undefined, over: false };
    this.#reader = reader;
    this.#serving.registry.joined(this.entry);
    client.whenGone(
      () => this.#left(reader, false),
      () => this.#isComplete() && reader.at >= this.entry.log.length,
    );
    if (before !== undefined) this.#replaced(before);
    if (this.#reader === reader) this.presence.returns();
    this.changed();
    return reader;
  }

  /**
   * Gives the one place to a client of another gateway, which reads what is logged of the run.
   *
   * @param lost called when it loses the place to a client of this one
   */
  takenElsewhere(lost: () => void): void {
    const reads = this.#reader;
    this.#reader = undefined;
    this.#elsewhere = lost;
    this.#serving.registry.joined(this.entry);
    if (reads !== undefined) this.#replaced(reads);
    this.presence.returns();
    this.#serving.changed(this, "attached");
    this.changed();
  }

  /** The client of another gateway has gone. */
  leftElsewhere(): void {
    if (this.#elsewhere === undefined) return;
    this.#elsewhere = undefined;
    this.presence.leaves();
    this.#serving.registry.left(this.entry, this.#serving.now(), false);
    this.#serving.changed(this, "left");
    this.changed();
  }

  /** Its user has stopped it at another gateway. */
  cancelledElsewhere(): void {
    this.#serving.registry.drop(this.entry);
    this.stopped("cancelled");
  }

  #unseatsElsewhere(): void {
    const lost = this.#elsewhere;
    this.#elsewhere = undefined;
    lost?.();
  }

  /** Another client has its place: it waits for nothing more. */
  #replaced(reader: Reader): void {
    reader.over = true;
    this.#ends(reader, Effect.void);
  }

  #left(reader: Reader, delivered: boolean): void {
    reader.over = true;
    if (this.#reader === reader) {
      this.#reader = undefined;
      this.presence.leaves();
      this.#serving.registry.left(this.entry, this.#serving.now(), delivered);
      this.#serving.changed(this, "left");
      this.changed();
    }
    this.#ends(reader, Effect.void);
  }

  /** Copies to a client until it has everything, has gone or has lost its place. */
  #copied(reader: Reader): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      reader.resume = resume;
      if (reader.over) this.#ends(reader, Effect.void);
      else this.changed();
      return Effect.sync(() => {
        reader.resume = undefined;
      });
    });
  }

  /** Writes what is there for a client whose fiber waits, and gives the fiber what is to be waited for elsewhere. */
  #copies(reader: Reader): void {
    if (reader.resume === undefined) return;
    try {
      this.#writes(reader);
    } catch (defect) {
      this.#dies(reader, defect);
    }
  }

  /** A defect of serving a client is the client's own: the run goes on for another one. */
  #dies(reader: Reader, defect: unknown): void {
    this.#ends(reader, Effect.die(defect));
  }

  #writes(reader: Reader): void {
    if (!this.#heads(reader)) return;
    const { client } = reader;
    for (let next = this.#next(reader); next !== undefined; next = this.#next(reader)) {
      if (typeof next === "string") {
        this.#ends(reader, this.#behind(reader, next));
        return;
      }
      client.writeNow([next]);
      this.#took(reader, reader.at + next.byteLength);
    }
  }

  /** What a client waits for that has everything, or can take no more. */
  #behind(reader: Reader, next: "end" | "break" | "full"): Effect.Effect<void> {
    if (next === "full") return this.#drained(reader);
    const { client } = reader;
    return next === "break" ? client.break : Effect.map(client.end, () => this.#left(reader, true));
  }

  /** Gives a client its head, or the word that there is none; whether it has one. */
  #heads(reader: Reader): boolean {
    if (reader.isHeaded) return true;
    const { client } = reader;
    if (this.#head !== undefined) {
      client.head(this.#headFor(this.#head.head, reader.at, reader.extra), this.#head.streaming);
      reader.isHeaded = true;
    } else if (this.#failed !== undefined && this.#refuse !== undefined)
      this.#ends(reader, this.#refuse(this.#failed, client));
    else if (this.#bodyEnd !== undefined) this.#ends(reader, client.break);
    return reader.isHeaded;
  }

  #ends(reader: Reader, next: Effect.Effect<void>): void {
    const { resume } = reader;
    reader.resume = undefined;
    resume?.(next);
  }

  /** Goes on once a client's socket takes more; not where another client has its place. */
  #drained(reader: Reader): Effect.Effect<void> {
    const drained = Effect.raceFirst(
      reader.client.drained,
      this.until(() => (reader.over ? true : undefined)),
    );
    return Effect.andThen(drained, this.#copied(reader));
  }

  #next({ at, client }: Reader): Bytes | "end" | "break" | "full" | undefined {
    if (!client.isReady()) return "full";
    // What was evicted in the moment in which a client came is not there for it.
    if (at < this.entry.log.start) return "break";
    return this.entry.log.from(at)?.subarray(0, stepBytesMax) ?? this.#bodyEnd;
  }

  /** The head of the response from a byte on, for who asks for nothing else; before there is one, that of a stream. */
  headFrom(at: number): RelayHead {
    const { head } = this.#head ?? { head: noHead };
    return this.#headFor(head, at, streamHeaders(at));
  }

  /** A part of a response is shorter than its head says; a lingering one says that it may be attached to. */
  #headFor(head: RelayHead, at: number, extra: RelayHeaders): RelayHead {
    const { lingerMs } = this.entry.terms;
    const headers = at === 0 ? head.headers : without(head.headers, "content-length");
    const kept = extra.reduce((left, [name]) => without(left, name), headers);
    return { ...head, headers: [...kept, [lingerHeader, String(lingerMs)], ...extra] };
  }
}

/** Stands for the head of a response that has none yet. */
const noHead: RelayHead = { status: 200, statusText: "OK", headers: [] };

/** The headers of a response that is given to a repeat, from its first byte. */
export const repeatHeaders: RelayHeaders = [[attachedHeader, "0"]];

/** The headers of a response that is given by its run's name: no cache may keep what one credential is shown. */
export const streamHeaders = (from: number): RelayHeaders => [
  ["cache-control", "no-store"],
  [attachedHeader, String(from)],
];
