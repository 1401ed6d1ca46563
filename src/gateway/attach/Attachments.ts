/**
 * Manages the runs of a gateway that may outlive their clients: finds the run that a request repeats, ends expired runs, and lists runs for
 * an operator.
 *
 * A client that leaves does not cancel its run, because a user's Stop and a lost network look the same to a server: both arrive as FIN. The
 * run is cancelled in the user's name when it expires (L10), or at once by a DELETE of its stream. A shutdown ends the runs that have no
 * client.
 */
import { Clock, type Context, Effect, type Redacted, type Scope } from "effect";
import { Alarm, Alarms } from "../../adapters/relay/Alarms.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import type { AttachableRun } from "../api/Traffic.ts";
import { wholeBytesMax } from "../body/BodyOutline.ts";
import { countAttached, countEvicted } from "../log/RequestMeasures.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import type { TrafficMeter } from "../proxy/TrafficMeter.ts";
import { AttachKeys, type Holder, type KeyedRequest } from "./AttachKey.ts";
import { type AttachEntry, type AttachLimits, AttachRegistry } from "./AttachRegistry.ts";
import type { AttachWish } from "./AttachWish.ts";
import type { StreamWish } from "./HopMessage.ts";
import type { HopResult } from "./HopRequest.ts";
import {
  LingeringRun,
  type LingeringServing,
  type Refusal,
  repeatHeaders,
  type StopReason,
  streamHeaders,
} from "./LingeringRun.ts";
import type { Siblings } from "./Siblings.ts";

/** Services of the gateway that `Attachments` uses. */
export interface AttachListeners {
  readonly meter: Pick<TrafficMeter["Service"], "changed">;
  /** Succeeds when a shutdown begins. */
  readonly closing: Effect.Effect<void>;
  /** The other processes; undefined if this process serves alone. */
  readonly siblings?: Siblings | undefined;
  /** Secret from which all processes of the store derive their keys. */
  readonly secret?: Redacted.Redacted<string> | undefined;
}

/** A new run, with its request and the options that its client asked for. */
export interface Beginning {
  readonly request: KeyedRequest;
  /** Key of the request, from `keyOf`. If undefined, it is computed when a repeat might match it (`mayKeyLater`). */
  readonly key: string | undefined;
  readonly wish: AttachWish;
  readonly refuse: Refusal;
}

interface Known {
  readonly run: LingeringRun;
  readonly upstream: string;
  readonly token: string | undefined;
  /** Start of the run, in monotonic milliseconds. */
  readonly begunAt: number;
  /** Fires when the run expires. It is set only while the run has no reader. */
  readonly due: Alarm;
  isTold: boolean;
  /** The request, until its key is computed or no repeat can match it any more. */
  unkeyed: KeyedRequest | undefined;
}

/**
 * Maximum size of the requests of ended runs that are kept because their keys are not computed yet, in bytes: 32 MiB. Beyond it, the keys of
 * the oldest are computed.
 */
export const unkeyedBytesMax = 32 * 1024 * 1024;

/** Number of keys that are computed in one turn of the event loop, because a long body takes a third of a millisecond. */
const keysPerTurn = 8;

const none = Effect.succeed(false);
const noClients: ReadonlySet<ClientResponse> = new Set();

/** The runs of a gateway that may outlive their clients. */
export class Attachments {
  readonly #registry: AttachRegistry;
  readonly #keys: AttachKeys;
  readonly #known = new Map<AttachEntry, Known>();
  /** Ended runs without a key, oldest first, and the size of their requests. */
  readonly #unkeyed = new Set<Known>();
  #unkeyedBytes = 0;
  readonly #listeners: AttachListeners;
  readonly #clock: Clock.Clock;
  readonly #alarms: Alarms;
  readonly #context: Context.Context<never>;
  readonly #serving: LingeringServing;
  #closing = false;

  private constructor(
    listeners: AttachListeners,
    limits: Partial<AttachLimits>,
    [clock, context]: [Clock.Clock, Context.Context<never>],
  ) {
    this.#registry = new AttachRegistry(limits);
    this.#listeners = listeners;
    this.#keys = new AttachKeys(listeners.secret);
    this.#clock = clock;
    this.#alarms = Alarms.of(clock);
    this.#context = context;
    this.#serving = {
      registry: this.#registry,
      now: () => this.#now(),
      onChange: (of, what) => this.#onChange(of, what),
      onUpdate: (of) => this.#look(of),
      onOverflow: (of) => this.#onOverflow(of),
    };
  }

  /** Creates the service. The remaining runs are dropped when the scope closes. */
  static readonly make = Effect.fnUntraced(function* (
    listeners: AttachListeners,
    limits: Partial<AttachLimits> = {},
  ): Effect.fn.Return<Attachments, never, Scope.Scope> {
    const context = yield* Effect.context<never>();
    const made = new Attachments(listeners, limits, [yield* Clock.Clock, context]);
    yield* Effect.addFinalizer(() => Effect.sync(() => made.#forgetAll()));
    yield* Effect.forkScoped(Effect.map(listeners.closing, () => made.#close()));
    return made;
  });

  /** Lists the runs that a client can attach to, oldest first, for an operator. The list contains no keys. */
  readonly list = (): ReadonlyArray<AttachableRun> => {
    const now = this.#now();
    const wall = this.#clock.currentTimeMillisUnsafe();
    const wallTimeOf = (at: number) => Math.round(wall - (now - at));
    return this.#registry.entries.flatMap((entry) => {
      const known = this.#known.get(entry);
      const expires = this.#registry.expiryOf(entry);
      if (known === undefined || entry.runId === undefined) return [];
      return [
        {
          run_id: entry.runId,
          upstream: known.upstream,
          ...(known.token === undefined ? {} : { token: known.token }),
          state: entry.end !== undefined ? ("ended" as const) : entry.isRead ? ("read" as const) : ("left" as const),
          bytes: entry.log.length,
          began_at: wallTimeOf(known.begunAt),
          linger_ms: entry.terms.lingerMs,
          ...(entry.leftAt === undefined ? {} : { left_at: wallTimeOf(entry.leftAt) }),
          ...(expires === undefined ? {} : { expires_at: wallTimeOf(expires) }),
          attached: known.run.attached,
        },
      ];
    });
  };

  /** Registers a run that its first client is about to read. */
  begin({ key, refuse, request, wish }: Beginning): LingeringRun {
    const { idempotencyKey, lingerMs } = wish;
    const terms = { idempotencyKey, lingerMs, request: key ?? "", holder: this.#keys.holderKey(request) };
    const { entry, evicted } = this.#registry.begin(terms);
    const run = new LingeringRun(entry, this.#serving, refuse);
    const due = new Alarm(() => this.#look(run));
    const { tenant: token, upstream } = request;
    const unkeyed = key === undefined ? request : undefined;
    this.#known.set(entry, { run, due, upstream, token, begunAt: this.#now(), isTold: false, unkeyed });
    this.onEvicted(evicted);
    return run;
  }

  /**
   * True if the key of a request may be computed later. That requires that no run could match the key now, that no other process needs it,
   * and that the body is small enough for a synchronous digest.
   */
  mayKeyLater({ body }: KeyedRequest, wish: AttachWish): boolean {
    const isSmall = typeof body !== "object" || body.byteLength <= wholeBytesMax;
    return isSmall && this.#listeners.siblings === undefined && !this.mightRepeat(wish);
  }

  #computeKey(known: Known): void {
    const request = this.#takeUnkeyed(known);
    const key = request && this.#keys.request(request);
    if (typeof key === "string") this.#registry.setRequest(known.run.entry, key);
  }

  /** Returns the request of a run without a key, which is not kept any longer. */
  #takeUnkeyed(known: Known): KeyedRequest | undefined {
    const request = known.unkeyed;
    known.unkeyed = undefined;
    if (request !== undefined && this.#unkeyed.delete(known)) this.#unkeyedBytes -= sizeOf(request);
    return request;
  }

  /** Computes all missing keys. Without a sign of a repeat a request matches only runs whose readers have left, and these have keys. */
  #computeKeys({ asked, idempotencyKey, repeats }: AttachWish): Effect.Effect<void> {
    if (!asked && !repeats && idempotencyKey === undefined) return Effect.void;
    return Effect.gen({ self: this }, function* () {
      let computed = 0;
      for (const known of this.#known.values()) {
        if (known.unkeyed === undefined) continue;
        this.#computeKey(known);
        computed += 1;
        if (computed % keysPerTurn === 0) yield* Effect.yieldNow;
      }
    });
  }

  /** Called when a run has ended. A response that is not whole answers no repeat, so its request is not kept. */
  onEnd({ entry }: LingeringRun): void {
    const known = this.#known.get(entry);
    if (known?.unkeyed === undefined) return;
    if (entry.end?.how !== "whole") {
      this.#takeUnkeyed(known);
      return;
    }
    this.#unkeyed.add(known);
    this.#unkeyedBytes += sizeOf(known.unkeyed);
    for (const oldest of this.#unkeyed) {
      if (this.#unkeyedBytes <= unkeyedBytesMax) return;
      this.#computeKey(oldest);
    }
  }

  keyOf(request: KeyedRequest): Effect.Effect<string> {
    return Effect.suspend(() => {
      const key = this.#keys.request(request);
      return typeof key === "string" ? Effect.succeed(key) : Effect.promise(() => key);
    });
  }

  setRunId(run: LingeringRun, runId: string): void {
    const { entry } = run;
    if (entry.runId === undefined) this.#registry.setRunId(entry, runId);
  }

  /** Counts evicted entries and notifies their runs. An evicted run without a reader ends. */
  onEvicted(entries: ReadonlyArray<AttachEntry>): void {
    for (const entry of entries) {
      countEvicted(entry.evicted ?? "runs", this.#context);
      this.#known.get(entry)?.run.notifyChange();
    }
  }

  /** Evicts a run whose buffered output exceeded the limit while it had no client. */
  #onOverflow({ entry }: LingeringRun): void {
    if (entry.evicted !== undefined) return;
    this.#registry.evict(entry, "run_bytes");
    this.onEvicted([entry]);
  }

  /** True if a request might attach to an existing run; `serveRepeat` determines whether it does. */
  mightRepeat(wish: AttachWish): boolean {
    if (this.#closing) return false;
    return this.#registry.mightAnswer(wish) || this.#listeners.siblings?.mightAnswer(wish) === true;
  }

  /**
   * Answers a request with the response of the run that it repeats, whichever process owns that run.
   *
   * @param key key of the request
   * @returns true if the request was served from such a run
   */
  serveRepeat(key: string, wish: AttachWish, client: ClientResponse): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (!this.mightRepeat(wish)) return none;
      const { siblings } = this.#listeners;
      if (siblings === undefined)
        return Effect.flatMap(this.#computeKeys(wish), () => this.serveRepeatHere(key, wish, client));
      const taken = this.#tryServeFree(key, wish, client, noClients);
      if (taken !== undefined) return taken;
      // While the siblings reply, a run of this process may lose its reader, so this process is tried again.
      return Effect.flatMap(siblings.serveRepeat(key, wish, client), (isTheirs) =>
        isTheirs ? Effect.succeed(true) : this.serveRepeatHere(key, wish, client),
      );
    });
  }

  /** Answers a request with the response of a run of this process. */
  serveRepeatHere(key: string, wish: AttachWish, client: ClientResponse): Effect.Effect<boolean> {
    return Effect.suspend(() =>
      this.#closing
        ? none
        : (this.#tryServeFree(key, wish, client, noClients) ?? this.#replaceSilentClient(key, wish, client)),
    );
  }

  /**
   * Serves a run that has no reader. The run is found and taken in one step, so that two repeats cannot get the same run.
   *
   * @param silent clients that may be replaced, because their sockets are silent
   * @returns undefined if there is no such run
   */
  #tryServeFree(
    key: string,
    wish: AttachWish,
    client: ClientResponse,
    silent: ReadonlySet<ClientResponse>,
  ): Effect.Effect<boolean> | undefined {
    const found = this.#registry.findRepeated(key, wish, (entry) => {
      const reader = this.#known.get(entry)?.run.client;
      return reader !== undefined && silent.has(reader);
    });
    const run = found === undefined ? undefined : this.#known.get(found)?.run;
    return run === undefined ? undefined : Effect.as(this.serve(run, client, 0, "repeat"), true);
  }

  /** Replaces a client that has left without closing its connection. Its socket accepts no bytes, which shows that it has left. */
  #replaceSilentClient(key: string, wish: AttachWish, client: ClientResponse): Effect.Effect<boolean> {
    if (!wish.repeats && wish.idempotencyKey === undefined) return none;
    const clients = this.#registry.read(key).flatMap((entry) => this.#known.get(entry)?.run.client ?? []);
    return Effect.flatMap(
      Effect.filter(clients, ({ isSilent }) => isSilent, { concurrency: "unbounded" }),
      // Another repeat may have replaced the silent client in the meantime. That repeat's own client is not in the set, so it keeps its
      // place.
      (silent) => (silent.length > 0 ? this.#tryServeFree(key, wish, client, new Set(silent)) : undefined) ?? none,
    );
  }

  /** True if a run of this process has a request's key. */
  hasRequest(key: string): boolean {
    return !this.#closing && this.#registry.has(key);
  }

  holderOf(holder: Holder): string {
    return this.#keys.holderKey(holder);
  }

  /**
   * Finds a run by id, for the client that may read it.
   *
   * @param holder key of the requesting client
   */
  find(runId: string, holder: string): LingeringRun | "evicted" | undefined {
    const found = this.#registry.find(runId, holder);
    return typeof found === "object" ? this.#known.get(found)?.run : found;
  }

  /** Serves the response of a sibling's run, found by the run's id. */
  serveStreamElsewhere(asked: StreamWish, client: ClientResponse): Effect.Effect<HopResult | "unreachable"> {
    return this.#listeners.siblings?.serveStream(asked, client) ?? Effect.succeed("none");
  }

  /** Serves a run to an attaching client, from an offset. */
  serve(run: LingeringRun, client: ClientResponse, from: number, how: "repeat" | "stream"): Effect.Effect<void> {
    const reader = run.take(client, from);
    run.attached += 1;
    countAttached(how, this.#context);
    client.access.addFacts({ run_id: run.entry.runId, attached_at: from });
    this.#onChange(run, "attached");
    return run.serve(reader, how === "repeat" ? repeatHeaders : streamHeaders(from));
  }

  /** Cancels a run at once, on behalf of its user. */
  cancel(run: LingeringRun): void {
    this.#stop(run, "cancelled");
  }

  #stop(run: LingeringRun, why: StopReason): void {
    this.#registry.drop(run.entry);
    run.requestStop(why);
  }

  /**
   * Ends an expired run, and drops a run that has ended. Called after every change and at the run's deadline, so that a lingering run needs
   * neither a fiber nor a timer.
   */
  #look(run: LingeringRun): void {
    const { entry } = run;
    const due = this.#known.get(entry)?.due;
    if (due === undefined) return;
    const isOver = run.stop !== undefined || (entry.evicted !== undefined && entry.end !== undefined);
    const at = this.#dueAt(run);
    if (isOver) this.#forget(run);
    else if (at === undefined) this.#alarms.clear(due);
    else if (at <= this.#now())
      this.#stop(run, this.#closing ? "closing" : entry.evicted === undefined ? "expired" : "evicted");
    else if (due.place === -1 || due.dueAt !== at) this.#alarms.set(due, at);
  }

  /** Returns the time at which a run expires; undefined while it has a reader. */
  #dueAt({ entry }: LingeringRun): number | undefined {
    if (entry.isRead) return undefined;
    return this.#closing || entry.evicted !== undefined ? 0 : this.#registry.expiryOf(entry);
  }

  #forget({ entry }: LingeringRun): void {
    this.#registry.drop(entry);
    const known = this.#known.get(entry);
    this.#known.delete(entry);
    if (known === undefined) return;
    this.#takeUnkeyed(known);
    this.#alarms.clear(known.due);
    if (known.isTold) this.#listeners.siblings?.held.recordOver(entry.terms.request);
  }

  /** Publishes a run to the siblings. */
  #publish(known: Known): void {
    const { siblings } = this.#listeners;
    if (siblings === undefined || known.isTold) return;
    siblings.held.add(known.run.entry.terms.request);
    known.isTold = true;
  }

  #forgetAll(): void {
    for (const { run } of this.#known.values()) this.#forget(run);
  }

  #close(): void {
    this.#closing = true;
    for (const { run } of this.#known.values()) run.notifyChange();
  }

  #onChange({ entry }: LingeringRun, what: "attached" | "left"): void {
    const known = what === "left" && entry.end === undefined ? this.#known.get(entry) : undefined;
    // From now on, even a request without a sign of a repeat may attach to the run.
    if (known !== undefined) {
      this.#computeKey(known);
      this.#publish(known);
    }
    if (entry.runId !== undefined) this.#listeners.meter.changed({ run_id: entry.runId, what });
  }

  #now(): number {
    return monotonicMs(this.#clock);
  }
}

/** Size of a request in memory, in bytes: its body and its headers. */
const sizeOf = ({ body, headers }: KeyedRequest): number =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length, body?.length ?? 0);
