/**
 * Keeps the runs of a gateway that may outlive their clients: finds the one that a request repeats, ends those whose time is over,
 * and tells an operator of them.
 *
 * A run's client that leaves has not cancelled it: a user's Stop and a lost network are the same FIN. The run is cancelled in the
 * user's name when its time is over (L10), and a DELETE of its stream signs that at once. A shutdown ends what nobody reads.
 */
import { Clock, type Context, Effect, type Redacted, type Scope } from "effect";
import { type Deadline, Deadlines } from "../../adapters/relay/deadline/Deadlines.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import type { AttachableRun } from "../api/Traffic.ts";
import { wholeBytesMax } from "../body/BodyOutline.ts";
import { secretOf } from "../delivery/ClientSecret.ts";
import { Deliveries, type Returning } from "../delivery/Deliveries.ts";
import type { DeliveryBeginning } from "../delivery/DeliveryOwner.ts";
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

/** Who is told of runs that linger. */
export interface AttachListeners {
  readonly meter: Pick<TrafficMeter["Service"], "changed">;
  /** Done when a shutdown begins. */
  readonly closing: Effect.Effect<void>;
  /** The other workers; undefined where this process serves alone. */
  readonly siblings?: Siblings | undefined;
  /** What all of them make their keys of. */
  readonly secret?: Redacted.Redacted<string> | undefined;
  /** The delivery log; undefined where a client comes back to this machine only. */
  readonly deliveries?: Deliveries | undefined;
  /** The digest of a token of the gateway's own. */
  readonly tokenDigest?: ((name: string) => Uint8Array | undefined) | undefined;
}

/** A run that begins, and what of its request is told an operator. */
export interface Beginning {
  readonly request: KeyedRequest;
  /** Its key, as `keyOf` gives it; undefined where it is told later (`keyed`). */
  readonly key: string | undefined;
  readonly wish: AttachWish;
  readonly refuse: Refusal;
}

/** What is known of a run beside its entry. */
interface Known {
  readonly run: LingeringRun;
  readonly upstream: string;
  readonly token: string | undefined;
  /** Monotonic milliseconds. */
  readonly begunAt: number;
  /** When its time is over, while nobody reads it. */
  readonly due: Deadline;
  /** The siblings are told of it. */
  isTold: boolean;
  /** How it is kept for clients that come back elsewhere; undefined where it is not. */
  readonly delivered: Omit<DeliveryBeginning, "runId"> | undefined;
}

const none = Effect.succeed(false);
const noClients: ReadonlySet<ClientResponse> = new Set();

/** The runs of a gateway that may outlive their clients. */
export class Attachments {
  /** The delivery log; undefined where there is none. */
  readonly deliveries: Deliveries | undefined;
  readonly #registry: AttachRegistry;
  readonly #keys: AttachKeys;
  readonly #known = new Map<AttachEntry, Known>();
  readonly #listeners: AttachListeners;
  readonly #clock: Clock.Clock;
  readonly #deadlines: Deadlines;
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
    this.deliveries = listeners.deliveries;
    this.#keys = new AttachKeys(listeners.secret);
    this.#clock = clock;
    this.#deadlines = Deadlines.of(clock);
    this.#context = context;
    this.#serving = {
      registry: this.#registry,
      now: () => this.#now(),
      changed: (of, what) => this.#changed(of, what),
      looked: (of) => this.#look(of),
      overflowed: (of) => this.#overflowed(of),
    };
  }

  /** Makes it; what lingers still is forgotten with the scope. */
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

  /** The runs that may be attached to now, the oldest first: for an operator, without any key. */
  readonly list = (): ReadonlyArray<AttachableRun> => {
    const now = this.#now();
    const wall = this.#clock.currentTimeMillisUnsafe();
    const told = (at: number) => Math.round(wall - (now - at));
    return this.#registry.entries.flatMap((entry) => {
      const known = this.#known.get(entry);
      const expires = this.#registry.expiresAt(entry);
      if (known === undefined || entry.runId === undefined) return [];
      return [
        {
          run_id: entry.runId,
          upstream: known.upstream,
          ...(known.token === undefined ? {} : { token: known.token }),
          state: entry.end !== undefined ? ("ended" as const) : entry.isRead ? ("read" as const) : ("left" as const),
          bytes: entry.log.length,
          began_at: told(known.begunAt),
          linger_ms: entry.terms.lingerMs,
          ...(entry.leftAt === undefined ? {} : { left_at: told(entry.leftAt) }),
          ...(expires === undefined ? {} : { expires_at: told(expires) }),
          attached: known.run.attached,
        },
      ];
    });
  };

  /** Takes a run in whose client reads it. */
  begin({ key, refuse, request, wish }: Beginning): LingeringRun {
    const { idempotencyKey } = wish;
    const entry = this.#registry.open(wish);
    const run = new LingeringRun(entry, this.#serving, refuse);
    const due: Deadline = { act: () => this.#look(run), at: 0, place: -1 };
    const { tenant: token, upstream } = request;
    const known: Known = {
      run,
      due,
      upstream,
      token,
      begunAt: this.#now(),
      isTold: false,
      delivered: key === undefined ? undefined : this.#delivered(key, request, wish),
    };
    this.#known.set(entry, known);
    if (key !== undefined) this.#admit(run, key, this.#keys.holder(request));
    if (idempotencyKey !== undefined) this.#tell(known, "soon");
    return run;
  }

  #admit({ entry }: LingeringRun, request: string, holder: string): void {
    this.evicted(this.#registry.admit(entry, { request, holder }));
  }

  /**
   * Whether the key of a request may be made once its run has begun: there is nothing now that it could find, no other process knows
   * runs by it, and it is made in one step.
   */
  mayKeyLater({ body }: KeyedRequest, wish: AttachWish): boolean {
    const isSmall = typeof body !== "object" || body.byteLength <= wholeBytesMax;
    const isAlone = this.#listeners.siblings === undefined && this.deliveries === undefined;
    return isSmall && isAlone && !this.mightRepeat(wish);
  }

  /** Makes the keys of a run that has begun without, in the step in which it began. From now on its request's repeats find it. */
  keyed(run: LingeringRun, request: KeyedRequest): void {
    const { holder, request: key } = this.#keys.both(request);
    // One that was stopped in the meantime is forgotten.
    const isKnown = this.#known.has(run.entry) && run.entry.evicted === undefined;
    if (typeof key === "string" && isKnown) this.#admit(run, key, holder);
  }

  /** The key by which a request is known. */
  keyOf(request: KeyedRequest): Effect.Effect<string> {
    return Effect.suspend(() => {
      const key = this.#keys.request(request);
      return typeof key === "string" ? Effect.succeed(key) : Effect.promise(() => key);
    });
  }

  /** How a run is to be kept for clients that come back elsewhere. */
  #delivered(request: string, holder: Holder, { idempotencyKey }: AttachWish): Known["delivered"] {
    if (this.deliveries === undefined) return undefined;
    const secret = this.#secretOf(holder);
    return secret === undefined ? undefined : { request, named: this.#nameOf(idempotencyKey), secret };
  }

  #secretOf(holder: Holder): string | undefined {
    const { tenant } = holder;
    return secretOf(holder, tenant === undefined ? undefined : this.#listeners.tokenDigest?.(tenant));
  }

  #nameOf(idempotencyKey: string | undefined): string | undefined {
    return idempotencyKey === undefined ? undefined : this.#keys.named(idempotencyKey);
  }

  /** The run has its name. */
  named(run: LingeringRun, runId: string): void {
    const { entry } = run;
    if (entry.runId !== undefined) return;
    this.#registry.named(entry, runId);
    const delivered = this.#known.get(entry)?.delivered;
    if (delivered !== undefined) this.deliveries?.owner.begin(run, { runId, ...delivered });
  }

  /** Tells and counts what was evicted; a run that nobody can have any more is over. */
  evicted(entries: ReadonlyArray<AttachEntry>): void {
    for (const entry of entries) {
      countEvicted(entry.evicted ?? "runs", this.#context);
      this.#known.get(entry)?.run.changed();
    }
  }

  /** What was held for a client that is away did not fit. */
  #overflowed({ entry }: LingeringRun): void {
    if (entry.evicted !== undefined) return;
    this.#registry.evict(entry, "run_bytes");
    this.evicted([entry]);
  }

  /** Whether a request might attach to a run that there is: `repeated` says whether it does. */
  mightRepeat(wish: AttachWish): boolean {
    if (this.#closing) return false;
    if (this.#registry.mightAnswer(wish) || this.#listeners.siblings?.mightAnswer(wish) === true) return true;
    return this.deliveries !== undefined && Deliveries.mightRepeat(wish);
  }

  /**
   * Gives a request the response of the run that it repeats, whichever worker has it.
   *
   * @param key that of the request
   * @returns whether there is one that it may attach to
   */
  repeated(key: string, wish: AttachWish, client: ClientResponse): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (!this.mightRepeat(wish)) return none;
      const taken = this.#taken(key, wish, client, noClients);
      if (taken !== undefined) return taken;
      const { siblings } = this.#listeners;
      if (siblings === undefined) return this.#replaced(key, wish, client);
      // While they are asked the reader of a run of this process may leave.
      return Effect.flatMap(siblings.repeated(key, wish, client), (isTheirs) =>
        isTheirs ? Effect.succeed(true) : this.repeatedHere(key, wish, client),
      );
    });
  }

  /** The same for a run of another machine. */
  repeatedElsewhere(
    request: KeyedRequest,
    key: string,
    wish: AttachWish,
    client: ClientResponse,
  ): Effect.Effect<boolean> {
    const { deliveries } = this;
    if (deliveries === undefined || !Deliveries.mightRepeat(wish)) return none;
    return Effect.suspend(() =>
      this.#closing
        ? none
        : deliveries.repeated([key, this.#nameOf(wish.idempotencyKey)], wish, this.returning(request, client)),
    );
  }

  /** A client that comes back, and what it shows. */
  returning(holder: Holder, client: ClientResponse): Returning {
    return { client, secret: this.#secretOf(holder) };
  }

  /** The same for a run of this process. */
  repeatedHere(key: string, wish: AttachWish, client: ClientResponse): Effect.Effect<boolean> {
    return Effect.suspend(() =>
      this.#closing ? none : (this.#taken(key, wish, client, noClients) ?? this.#replaced(key, wish, client)),
    );
  }

  /**
   * Serves a run that nobody reads. It is found and taken in one step: of two repeats each has its own.
   *
   * @param silent clients that lose their place
   * @returns undefined where there is none
   */
  #taken(
    key: string,
    wish: AttachWish,
    client: ClientResponse,
    silent: ReadonlySet<ClientResponse>,
  ): Effect.Effect<boolean> | undefined {
    const found = this.#registry.repeated(key, wish, (entry) => {
      const reader = this.#known.get(entry)?.run.client;
      return reader !== undefined && silent.has(reader);
    });
    const run = found === undefined ? undefined : this.#known.get(found)?.run;
    return run === undefined ? undefined : Effect.as(this.serve(run, client, 0, "repeat"), true);
  }

  /** Serves a run in the place of a client that gave up and has not said so yet: its socket shows it. */
  #replaced(key: string, wish: AttachWish, client: ClientResponse): Effect.Effect<boolean> {
    if (!wish.repeats && wish.idempotencyKey === undefined) return none;
    const clients = this.#registry.read(key).flatMap((entry) => this.#known.get(entry)?.run.client ?? []);
    return Effect.flatMap(
      Effect.filter(clients, ({ isSilent }) => isSilent, { concurrency: "unbounded" }),
      // Another repeat may have taken the same place meanwhile: its client is no silent one.
      (silent) => (silent.length > 0 ? this.#taken(key, wish, client, new Set(silent)) : undefined) ?? none,
    );
  }

  /** Whether a run of this process has a request's key. */
  hasRequest(key: string): boolean {
    return !this.#closing && this.#registry.has(key);
  }

  /** The key of who shows these credentials. */
  holderOf(holder: Holder): string {
    return this.#keys.holder(holder);
  }

  /**
   * The run of a name, for who may have its response.
   *
   * @param holder the key of who asks
   */
  found(runId: string, holder: string): LingeringRun | "evicted" | undefined {
    const found = this.#registry.found(runId, holder);
    return typeof found === "object" ? this.#known.get(found)?.run : found;
  }

  /** Serves a sibling's run of a name. */
  streamedElsewhere(asked: StreamWish, client: ClientResponse): Effect.Effect<HopResult | "unheard"> {
    return this.#listeners.siblings?.streamed(asked, client) ?? Effect.succeed("none");
  }

  /** Serves a run to a client that attaches to it, from a byte on. */
  serve(run: LingeringRun, client: ClientResponse, from: number, how: "repeat" | "stream"): Effect.Effect<void> {
    const reader = run.take(client, from);
    run.attached += 1;
    countAttached(how, this.#context);
    client.access.learned({ run_id: run.entry.runId, attached_at: from });
    this.#changed(run, "attached");
    return run.serve(reader, how === "repeat" ? repeatHeaders : streamHeaders(from));
  }

  /** Ends a run in its user's name, at once. */
  cancel(run: LingeringRun): void {
    const { runId } = run.entry;
    if (runId !== undefined) this.deliveries?.owner.drop(runId);
    this.#stop(run, "cancelled");
  }

  #stop(run: LingeringRun, why: StopReason): void {
    this.#registry.drop(run.entry);
    run.stopped(why);
  }

  /**
   * Ends a run whose time is over, and forgets one that has ended so. It is looked at with every change and when its time is over: a
   * run that lingers has neither a fiber nor a timer of its own.
   */
  #look(run: LingeringRun): void {
    const { entry } = run;
    const due = this.#known.get(entry)?.due;
    if (due === undefined) return;
    const isOver = run.stop !== undefined || (entry.evicted !== undefined && entry.end !== undefined);
    const at = this.#dueAt(run);
    if (isOver) this.#forget(run);
    else if (at === undefined) this.#deadlines.clear(due);
    else if (at <= this.#now())
      this.#stop(run, this.#closing ? "closing" : entry.evicted === undefined ? "expired" : "evicted");
    else if (due.place === -1 || due.at !== at) this.#deadlines.set(due, at);
  }

  /** When a run's time is over; undefined while somebody reads it. */
  #dueAt({ entry }: LingeringRun): number | undefined {
    if (entry.isRead) return undefined;
    return this.#closing || entry.evicted !== undefined ? 0 : this.#registry.expiresAt(entry);
  }

  #forget({ entry }: LingeringRun): void {
    this.#registry.drop(entry);
    const known = this.#known.get(entry);
    this.#known.delete(entry);
    if (known === undefined) return;
    this.#deadlines.clear(known.due);
    this.deliveries?.owner.over(known.run);
    if (known.isTold) this.#listeners.siblings?.held.over(entry.terms.request);
  }

  /** Tells the siblings of a run that a request which says nothing may attach to. */
  #tell(known: Known, when: "soon" | "now"): void {
    const { siblings } = this.#listeners;
    if (siblings === undefined) return;
    if (known.isTold) siblings.held.hurry();
    else siblings.held.holds(known.run.entry.terms.request, when);
    known.isTold = true;
  }

  #forgetAll(): void {
    for (const { run } of this.#known.values()) this.#forget(run);
  }

  #close(): void {
    this.#closing = true;
    for (const { run } of this.#known.values()) run.changed();
  }

  #changed({ entry }: LingeringRun, what: "attached" | "left"): void {
    const known = what === "left" && entry.end === undefined ? this.#known.get(entry) : undefined;
    if (known !== undefined) this.#tell(known, "now");
    if (entry.runId !== undefined) this.#listeners.meter.changed({ run_id: entry.runId, what });
  }

  #now(): number {
    return monotonicMs(this.#clock);
  }
}
