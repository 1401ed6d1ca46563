/**
 * Holds one run that may outlive its client: the output so far, its end, and the client that reads it.
 *
 * New output is kept in the log. A client that has received everything before gets it synchronously. A client that lags reads from the log,
 * and its fiber waits for the socket. The run is asked for more output while its client has received everything and the socket accepts
 * more. It is also asked while it has no reader; then its output is only buffered. A client that replaces another starts at its own offset.
 * The earlier connection breaks at once, because a response has one reader, whose pace the run follows.
 */
import { Effect } from "effect";
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { RelayHead, RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { Presence } from "../../stages/output/Presence.ts";
import { attachedHeader, lingerHeader } from "../config/OwnHeaders.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { without } from "../upstream/Headers.ts";
import type { AttachEntry, AttachRegistry, EntryEnd } from "./AttachRegistry.ts";

/** Reason why a run is stopped early. */
export type StopReason = "expired" | "cancelled" | "evicted" | "closing";

/** A client that reads the response. */
export interface Reader {
  readonly client: ClientResponse;
  /** Offset of the next byte for the client. */
  at: number;
  /** Headers that are appended to those of the response. */
  extra: RelayHeaders;
  isHeaded: boolean;
  /** Resumes the client's fiber with the next effect. While the fiber waits, new output is written to the client synchronously. */
  resume: ((next: Effect.Effect<void>) => void) | undefined;
  /** True if the client has left or was replaced, so that it reads no more. */
  over: boolean;
}

/** Sends a client the error of a run that ended before its head. The closure keeps the whole request with its body in memory. */
export type Refusal = (error: RelayInterrupted, client: ClientResponse) => Effect.Effect<void>;

/** Services of the gateway that lingering runs use. */
export interface LingeringServing {
  readonly registry: AttachRegistry;
  /** Returns monotonic milliseconds. */
  readonly now: () => number;
  /** Called when a client has attached or left. */
  readonly onChange: (run: LingeringRun, what: "attached" | "left") => void;
  /** Called after a change that may affect the run's deadline. */
  readonly onUpdate: (run: LingeringRun) => void;
  /** Called when the output that is held for an absent client exceeds the limit. */
  readonly onOverflow: (run: LingeringRun) => void;
}

/** Maximum number of bytes written to a socket in one step. A client that attaches late therefore gets a long response in parts. */
const stepBytesMax = 64 * 1024;

const isAlways = (): boolean => true;

const isNever = (): boolean => false;

/** One run that may outlive its client. */
export class LingeringRun {
  readonly entry: AttachEntry;
  /** Tracks if a client reads. Output without a client is buffered and does not count as shown. */
  readonly presence: Presence;
  attached = 0;
  #reader: Reader | undefined;
  #head: { readonly head: RelayHead; readonly streaming: boolean } | undefined;
  /** Returns true if the log ends with the terminal marker. */
  #isComplete = isNever;
  /** End of the body; undefined until it has ended. */
  #bodyEnd: "end" | "break" | undefined;
  #failed: RelayInterrupted | undefined;
  #stop: StopReason | undefined;
  #onStop: ((why: StopReason) => void) | undefined;
  /** Undefined once the response has a head. The run's entry outlives the run and must not keep the request in memory (L11). */
  #refuse: Refusal | undefined;
  readonly #serving: LingeringServing;
  /** Callbacks that check their conditions after every change. */
  readonly #watchers = new Set<() => void>();

  /** @param serving shared by all runs of a gateway */
  constructor(entry: AttachEntry, serving: LingeringServing, refuse: Refusal) {
    this.entry = entry;
    this.#refuse = refuse;
    this.presence = new Presence(() => entry.log.allocated);
    this.presence.whenEvicted(() => serving.onOverflow(this));
    this.#serving = serving;
  }

  get client(): ClientResponse | undefined {
    return this.#reader?.client;
  }

  /** True if the run should produce more: its client has received everything and accepts more, or there is no client. */
  get shouldProduce(): boolean {
    const reader = this.#reader;
    return reader === undefined || (reader.at >= this.entry.log.length && reader.client.isReady());
  }

  /**
   * True if the response broke and has no bytes after an offset. False if the run failed before its head, because the client then gets an
   * error.
   */
  isBrokenAt(from: number): boolean {
    return this.#bodyEnd === "break" && this.#failed === undefined && from >= this.entry.log.length;
  }

  /** Reason for which the run must end; undefined if it may continue. */
  get stop(): StopReason | undefined {
    return this.#stop;
  }

  /** Waits until `look` returns a value. `look` is called at once and after every change. */
  waitUntil<A>(look: () => A | undefined): Effect.Effect<A> {
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

  notifyChange(): void {
    if (this.#reader !== undefined) this.#copyAvailable(this.#reader);
    if (this.#watchers.size > 0) for (const watch of [...this.#watchers]) watch();
    this.#serving.onUpdate(this);
  }

  /**
   * Sets the response head.
   *
   * @param isComplete returns true once the terminal marker has arrived
   */
  setHead(head: RelayHead, streaming: boolean, isComplete = this.#isComplete): void {
    this.#head ??= { head, streaming };
    this.#isComplete = isComplete;
    this.#refuse = undefined;
    this.notifyChange();
  }

  /**
   * Adds bytes of the response.
   *
   * @returns the entries that were evicted because of the new bytes
   */
  append(chunks: ReadonlyArray<Bytes>): ReadonlyArray<AttachEntry> {
    const from = this.entry.log.length;
    const evicted = this.#serving.registry.append(this.entry, chunks);
    // No watcher needs to run if the client has received everything and accepts more.
    if (!this.#tryPassOn(chunks, from)) this.notifyChange();
    return evicted;
  }

  /** Writes new output to a client that waits for it. Returns true if the client has received everything and accepts more. */
  #tryPassOn(chunks: ReadonlyArray<Bytes>, from: number): boolean {
    const reader = this.#reader;
    const { log } = this.entry;
    if (reader?.resume === undefined || !reader.isHeaded || reader.at !== from || log.length - from > stepBytesMax)
      return false;
    if (!reader.client.isReady()) return false;
    try {
      reader.client.passOn(chunks);
    } catch (defect) {
      this.#failReader(reader, defect);
      return false;
    }
    this.#recordTaken(reader, log.length);
    return reader.client.isReady();
  }

  /** Records that the client has received the bytes before an offset. An evicted run then drops them. */
  #recordTaken(reader: Reader, at: number): void {
    reader.at = at;
    if (this.entry.evicted !== undefined) this.entry.log.dropUntil(at);
  }

  /** Ends the body, complete or broken. The first call counts. */
  endBody(how: "end" | "break"): void {
    this.#bodyEnd ??= how;
    this.notifyChange();
  }

  end(how: EntryEnd): void {
    this.#serving.registry.recordEnd(this.entry, how, this.#serving.now());
    // The run has ended and cannot be stopped any more, and the callback would keep its state in memory.
    this.#onStop = undefined;
    // The log outlives the run. The function is replaced by its result, so that the parser of the response can be freed.
    this.#isComplete = this.#isComplete() ? isAlways : isNever;
    this.endBody("break");
  }

  /** Ends the run with a complete response. */
  complete(): void {
    // Set before watchers run, so that a client that leaves after the last byte leaves a completed run.
    this.#bodyEnd ??= "end";
    this.end("whole");
  }

  /** Ends a run that failed before its head. Its client receives the error. */
  fail(error: RelayInterrupted): void {
    this.#failed = error;
    this.end("broken");
  }

  /** Requests a stop of the run. Only the first call counts. */
  requestStop(why: StopReason): void {
    if (this.#stop === undefined) {
      this.#stop = why;
      if (this.entry.end === undefined) {
        this.#serving.registry.recordEnd(this.entry, "cancelled", this.#serving.now());
        this.#onStop?.(why);
      }
    }
    this.notifyChange();
  }

  /** Registers the action that stops the live run. If a stop was already requested, the action runs at once. */
  setStopAction(act: (why: StopReason) => void): void {
    this.#onStop = act;
    if (this.#stop !== undefined) act(this.#stop);
  }

  /**
   * Serves the response to the current reader. Returns when the client has received everything, has left, or was replaced.
   *
   * @param extra headers appended to those of the response
   */
  serve(reader: Reader, extra: RelayHeaders = []): Effect.Effect<void> {
    reader.extra = extra;
    return Effect.onExit(Effect.andThen(this.#copyUntilDone(reader), reader.client.settle), () =>
      Effect.sync(() => this.#detach(reader, false)),
    );
  }

  /** Makes a client the reader, starting at an offset, and replaces the previous reader. */
  take(client: ClientResponse, at: number): Reader {
    const before = this.#reader;
    const reader: Reader = { client, at, extra: [], isHeaded: false, resume: undefined, over: false };
    this.#reader = reader;
    this.#serving.registry.recordAttach(this.entry);
    client.whenGone(
      () => this.#detach(reader, false),
      () => this.#isComplete() && reader.at >= this.entry.log.length,
    );
    if (before !== undefined) this.#releaseReader(before);
    if (this.#reader === reader) this.presence.markPresent();
    this.notifyChange();
    return reader;
  }

  /** Ends the service of a reader that was replaced. */
  #releaseReader(reader: Reader): void {
    reader.over = true;
    this.#resume(reader, Effect.void);
  }

  #detach(reader: Reader, delivered: boolean): void {
    reader.over = true;
    if (this.#reader === reader) {
      this.#reader = undefined;
      this.presence.markAway();
      this.#serving.registry.recordDetach(this.entry, this.#serving.now(), delivered);
      this.#serving.onChange(this, "left");
      this.notifyChange();
    }
    this.#resume(reader, Effect.void);
  }

  /** Copies to a client until it has received everything, has left, or was replaced. */
  #copyUntilDone(reader: Reader): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      reader.resume = resume;
      if (reader.over) this.#resume(reader, Effect.void);
      else this.notifyChange();
      return Effect.sync(() => {
        reader.resume = undefined;
      });
    });
  }

  /**
   * Writes the available output to a client whose fiber waits, and resumes the fiber if the client cannot accept more or the body has
   * ended.
   */
  #copyAvailable(reader: Reader): void {
    if (reader.resume === undefined) return;
    try {
      this.#write(reader);
    } catch (defect) {
      this.#failReader(reader, defect);
    }
  }

  /** Handles a defect while a client is served. Only this client's response ends; the run continues. */
  #failReader(reader: Reader, defect: unknown): void {
    this.#resume(reader, Effect.die(defect));
  }

  #write(reader: Reader): void {
    if (!this.#tryWriteHead(reader)) return;
    const { client } = reader;
    for (let next = this.#nextStep(reader); next !== undefined; next = this.#nextStep(reader)) {
      if (typeof next === "string") {
        this.#resume(reader, this.#nextEffect(reader, next));
        return;
      }
      client.writeNow([next]);
      this.#recordTaken(reader, reader.at + next.byteLength);
    }
  }

  /** Returns the next effect for a client that has received all available output or cannot accept more. */
  #nextEffect(reader: Reader, next: "end" | "break" | "full"): Effect.Effect<void> {
    if (next === "full") return this.#copyAfterDrain(reader);
    const { client } = reader;
    return next === "break" ? client.break : Effect.map(client.end, () => this.#detach(reader, true));
  }

  /**
   * Writes the head if there is one. If the run has ended without a head, the client gets the error or a broken connection. Returns true if
   * a head was written.
   */
  #tryWriteHead(reader: Reader): boolean {
    if (reader.isHeaded) return true;
    const { client } = reader;
    if (this.#head !== undefined) {
      client.head(this.#headFor(this.#head.head, reader.at, reader.extra), this.#head.streaming);
      reader.isHeaded = true;
    } else if (this.#failed !== undefined && this.#refuse !== undefined)
      this.#resume(reader, this.#refuse(this.#failed, client));
    else if (this.#bodyEnd !== undefined) this.#resume(reader, client.break);
    return reader.isHeaded;
  }

  #resume(reader: Reader, next: Effect.Effect<void>): void {
    const { resume } = reader;
    reader.resume = undefined;
    resume?.(next);
  }

  /** Continues after the client's socket has drained, unless the client was replaced. */
  #copyAfterDrain(reader: Reader): Effect.Effect<void> {
    const drained = Effect.raceFirst(
      reader.client.drained,
      this.waitUntil(() => (reader.over ? true : undefined)),
    );
    return Effect.andThen(drained, this.#copyUntilDone(reader));
  }

  #nextStep({ at, client }: Reader): Bytes | "end" | "break" | "full" | undefined {
    if (!client.isReady()) return "full";
    // The response was evicted while the client attached, so its first bytes are missing.
    if (at < this.entry.log.start) return "break";
    return this.entry.log.readFrom(at)?.subarray(0, stepBytesMax) ?? this.#bodyEnd;
  }

  /** Returns the head for a HEAD request at an offset. Before the run has a head, returns that of a plain stream. */
  headFrom(at: number): RelayHead {
    const { head } = this.#head ?? { head: noHead };
    return this.#headFor(head, at, streamHeaders(at));
  }

  /**
   * Adapts the head to an offset. The content length is removed if earlier bytes are omitted. The linger header shows that a client can
   * attach to the response.
   */
  #headFor(head: RelayHead, at: number, extra: RelayHeaders): RelayHead {
    const { lingerMs } = this.entry.terms;
    const headers = at === 0 ? head.headers : without(head.headers, "content-length");
    const kept = extra.reduce((left, [name]) => without(left, name), headers);
    return { ...head, headers: [...kept, [lingerHeader, String(lingerMs)], ...extra] };
  }
}

/** Head for a HEAD request before the run has one. */
const noHead: RelayHead = { status: 200, statusText: "OK", headers: [] };

/** Headers for a repeat, which receives the response from its first byte. */
export const repeatHeaders: RelayHeaders = [[attachedHeader, "0"]];

/** Headers of a response that was requested by run id. Caches must not store the response, because it requires credentials. */
export const streamHeaders = (from: number): RelayHeaders => [
  ["cache-control", "no-store"],
  [attachedHeader, String(from)],
];
