/**
 * Lets the clients of each process attach to the runs of all of them: the workers of one gateway, and the gateways over one store that have
 * an address.
 *
 * A run stays at its process, which alone decides who reads it. A client that returns at another process gets the response by a hop
 * (`HopMessage`). Between workers, passing its socket to the owner would avoid the hop, but would lose what TLS has read from the socket,
 * and the body that was read to identify the repeat.
 *
 * Two simultaneous requests at two processes that do not indicate a repeat are two runs, as in a single process. An unmarked repeat also
 * starts a new run if it arrives before its process knows of the first run (`HeldElsewhere`).
 *
 * A hop from another gateway may arrive at any worker. The worker serves it like a client: from its own runs, or from those of its siblings
 * on the machine. A hop therefore passes through at most three processes.
 */
import { Cause, Effect, Exit, Result, Schema, type Scope } from "effect";
import { Label } from "../../domain/Limits.ts";
import type { SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { logDefect } from "../log/Defect.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import { type AskError, type HopListener, type HopTarget, type Query, query } from "../workers/SignedWire.ts";
import type { WorkerSockets } from "../workers/WorkerSockets.ts";
import type { AttachWish } from "./AttachWish.ts";
import { HeldElsewhere, type SiblingName } from "./HeldElsewhere.ts";
import { HopAsked, HopKey, type HopWish, read, type StreamWish } from "./HopMessage.ts";
import { type HopResult, hop } from "./HopRequest.ts";
import { HopResponse, type HopSetting } from "./HopResponse.ts";
import type { OtherGateways } from "./OtherGateways.ts";

/** Timeout for a process's answer, in milliseconds. Without an answer, a repeat starts a new run. */
const askMs = 1_000;

/**
 * Time for which the store keeps a cancel for a worker that does not answer, in milliseconds. A worker that hangs is killed within this
 * time.
 */
const stopMs = 60_000;

/** Asks whether a process has a run with a request's key. */
const repeatKnown = query("repeat_known", HopKey, Schema.Boolean, askMs);

const Held = Schema.Struct({ run_id: Label, holder: HopKey });

/** Asks whether a process has, or has evicted, a run with this id for this holder. */
const streamKnown = query("stream_known", Held, Schema.Boolean, askMs);

const Hop = Schema.Struct({ worker: Schema.Natural, hop: Schema.Natural });

/** Asks whether the socket of a hop's client is silent. */
const hopSilent = query("hop_silent", Hop, Schema.Boolean);

/** Services of a process for its siblings. */
export interface SiblingServing extends Pick<HopServing, "run">, Pick<HopSetting, "now"> {
  readonly hasRequest: (key: string) => boolean;
  readonly hasRun: (runId: string, holder: string) => boolean;
  /** Serves a hop from the runs of this process. Returns true if there is a run for it. */
  readonly serve: (wish: HopWish, client: ClientResponse) => Effect.Effect<boolean>;
  readonly slowMs: () => number;
}

/** Processes that are reached in the same way. `workers`: those of this gateway. `gateways`: the other gateways over the store. */
type Among = "workers" | "gateways";

/** Another process, to which this one can send queries and hops. */
interface Sibling {
  readonly name: SiblingName;
  readonly ask: <A, B>(query: Query<A, B>, value: A) => Effect.Effect<B, AskError>;
  readonly target: HopTarget;
}

const workersOf = (sockets: WorkerSockets["Service"] | undefined): ReadonlyArray<Sibling> =>
  sockets === undefined
    ? []
    : sockets.others.map((name) => ({
        name,
        ask: (asked, value) => sockets.ask(asked, value, name),
        target: sockets.hopTo(name),
      }));

const gatewaysOf = (gateways: OtherGateways | undefined): Effect.Effect<ReadonlyArray<Sibling>> =>
  gateways === undefined
    ? Effect.succeed([])
    : Effect.map(gateways.others, (others) =>
        others.map((name) => ({
          name,
          ask: (asked, value) => gateways.ask(asked, value, name),
          target: gateways.wire.hopTo(gateways.destinationOf(name)),
        })),
      );

/** The other processes, as seen by one of them. */
export class Siblings {
  readonly held: HeldElsewhere;
  readonly #sockets: WorkerSockets["Service"] | undefined;
  readonly #gateways: OtherGateways | undefined;
  readonly #facts: SharedFacts;
  readonly #clients = new Map<number, ClientResponse>();
  #hops = 0;

  private constructor(
    sockets: WorkerSockets["Service"] | undefined,
    gateways: OtherGateways | undefined,
    facts: SharedFacts,
    held: HeldElsewhere,
  ) {
    this.#sockets = sockets;
    this.#gateways = gateways;
    this.#facts = facts;
    this.held = held;
  }

  /** Creates the service; undefined if this process serves alone or cannot reach any other process. */
  static readonly make = Effect.fnUntraced(function* (
    sockets: WorkerSockets["Service"] | undefined,
    gateways: OtherGateways | undefined,
    facts: SharedFacts | undefined,
  ): Effect.fn.Return<Siblings | undefined, never, Scope.Scope> {
    const near = sockets === undefined || sockets.others.length === 0 ? undefined : sockets;
    if (facts === undefined || (near === undefined && gateways === undefined)) return undefined;
    const place = { folder: near?.folder, self: near?.self ?? 0, origin: gateways?.origin };
    const made = new Siblings(near, gateways, facts, yield* HeldElsewhere.make(place, facts));
    yield* near?.serveQuery(hopSilent, (of) => made.#isSilent(of)) ?? Effect.void;
    yield* gateways?.wire.serveQuery(hopSilent, (of) => made.#isSilentAt(of)) ?? Effect.void;
    return made;
  });

  /** Number of this worker; 0 if its gateway has one process. */
  get #self(): number {
    return this.#sockets?.self ?? 0;
  }

  #isSilent({ hop: id }: typeof Hop.Type): Effect.Effect<boolean> {
    return this.#clients.get(id)?.isSilent ?? Effect.succeed(true);
  }

  /**
   * Checks a client of any worker of this gateway. The clients of a dead worker are gone. If a worker does not answer in time, its client
   * counts as connected.
   */
  #isSilentAt(of: typeof Hop.Type): Effect.Effect<boolean> {
    const sockets = this.#sockets;
    if (sockets === undefined || of.worker === sockets.self) return this.#isSilent(of);
    return Effect.catch(sockets.ask(hopSilent, of, of.worker), ({ reason }) => Effect.succeed(reason === "gone"));
  }

  /** Serves the runs of this process to the clients of its siblings while the scope is open. */
  readonly serve = Effect.fnUntraced(
    { self: this },
    function* (this: Siblings, serving: SiblingServing): Effect.fn.Return<void, never, Scope.Scope> {
      const { hasRequest, hasRun, now, run, serve, slowMs } = serving;
      const sockets = this.#sockets;
      const settingOf = ({ from, hop: id, worker }: HopAsked): HopSetting => ({
        ...{ now, slowMs: slowMs(), isRemote: from !== null },
        isSilent:
          from === null ? this.#isSilentAt({ hop: id, worker }) : this.#isSilentThere(from, { hop: id, worker }),
      });
      if (sockets !== undefined) {
        yield* sockets.serveQuery(repeatKnown, (key) => Effect.sync(() => hasRequest(key)));
        yield* sockets.serveQuery(streamKnown, ({ holder, run_id }) => Effect.sync(() => hasRun(run_id, holder)));
        yield* sockets.serveHops(listenerOf({ setting: settingOf, serve, run }));
      }
      if (this.#gateways !== undefined) yield* this.#serveFar(this.#gateways.wire, serving, settingOf);
    },
  );

  /** Serves the runs of this gateway, at any of its workers, to the clients of other gateways. */
  readonly #serveFar = Effect.fnUntraced(
    { self: this },
    function* (
      this: Siblings,
      wire: OtherGateways["wire"],
      { hasRequest, hasRun, run, serve }: SiblingServing,
      setting: HopServing["setting"],
    ): Effect.fn.Return<void, never, Scope.Scope> {
      const askAny = <A>(asked: Query<A, boolean>, value: A, isHere: boolean): Effect.Effect<boolean> => {
        if (isHere || this.#sockets === undefined) return Effect.succeed(isHere);
        return Effect.map(this.#sockets.askOthers(asked, value), (all) => all.some((it) => it.value));
      };
      yield* wire.serveQuery(repeatKnown, (key) => askAny(repeatKnown, key, hasRequest(key)));
      yield* wire.serveQuery(streamKnown, (of) => askAny(streamKnown, of, hasRun(of.run_id, of.holder)));
      const serveAny: HopServing["serve"] = (wish, client) =>
        Effect.flatMap(serve(wish, client), (isServed) =>
          isServed ? Effect.succeed(true) : this.#forward(wish, client),
        );
      yield* wire.serveHops(listenerOf({ setting, serve: serveAny, run }));
    },
  );

  /** Checks a client of another gateway. If the gateway is unreachable, its client counts as connected. */
  #isSilentThere(from: string, of: typeof Hop.Type): Effect.Effect<boolean> {
    const gateways = this.#gateways;
    if (gateways === undefined) return Effect.succeed(false);
    // Reading the addresses also updates the difference between the clocks, which the signature needs.
    const asked = Effect.flatMap(gateways.others, () => gateways.ask(hopSilent, of, from));
    return Effect.orElseSucceed(asked, () => false);
  }

  /** Serves another gateway's client from a run of another worker. */
  #forward(wish: HopWish, client: ClientResponse): Effect.Effect<boolean> {
    if (wish._tag === "Stream")
      return Effect.map(this.#serveStreamAmong(wish, client, "workers"), ({ result }) => result !== "none");
    const { asked, idempotencyKey, key, repeats } = wish;
    const repeat = { asked, repeats, lingerMs: 0, forbidden: false, idempotencyKey: idempotencyKey ?? undefined };
    return this.#serveRepeated(key, repeat, client, "workers");
  }

  /** True if a request might attach to a sibling's run. */
  mightAnswer(wish: AttachWish): boolean {
    return !wish.forbidden && (isPossibleRepeat(wish) || !this.held.isEmpty);
  }

  /**
   * Answers a request with the response of the sibling's run that it repeats. If the request indicates a repeat, all siblings are asked.
   *
   * @returns true if there is a run that it may attach to
   */
  serveRepeat(key: string, wish: AttachWish, client: ClientResponse): Effect.Effect<boolean> {
    return Effect.flatMap(this.#serveRepeated(key, wish, client, "workers"), (isTheirs) =>
      isTheirs ? Effect.succeed(true) : this.#serveRepeated(key, wish, client, "gateways"),
    );
  }

  readonly #serveRepeated = Effect.fnUntraced(
    { self: this },
    function* (
      this: Siblings,
      key: string,
      wish: AttachWish,
      client: ClientResponse,
      among: Among,
    ): Effect.fn.Return<boolean> {
      if (!this.mightAnswer(wish)) return false;
      const { idempotencyKey = null, repeats } = wish;
      const hopWish: HopWish = { _tag: "Repeat", key, repeats, asked: wish.asked, idempotencyKey };
      const owners = this.held.ownersOf(key);
      if (owners.size === 0 && !isPossibleRepeat(wish)) return false;
      const all = yield* this.#siblingsAmong(among);
      const published = all.filter(({ name }) => owners.has(name));
      // Runs that have a reader or were read to their end are not published, so a possible repeat is also sent to the other siblings.
      const others = all.filter(({ name }) => !owners.has(name));
      const asked = isPossibleRepeat(wish) ? [...published, ...others] : published;
      const known = yield* Effect.filter(asked, (it) => Effect.orElseSucceed(it.ask(repeatKnown, key), () => false), {
        concurrency: "unbounded",
      });
      for (const sibling of known) if ((yield* this.#hop(sibling, client, hopWish)) !== "none") return true;
      return false;
    },
  );

  /**
   * Serves a sibling's run by id.
   *
   * @returns `unreachable` if no sibling that answers has the run, but a worker does not answer in time; a cancel is then put in the store
   *   for that worker. A gateway that does not answer counts as not having the run
   */
  readonly serveStream = Effect.fnUntraced(
    { self: this },
    function* (this: Siblings, asked: StreamWish, client: ClientResponse): Effect.fn.Return<HopResult | "unreachable"> {
      const { holder, method, run_id } = asked;
      const near = yield* this.#serveStreamAmong(asked, client, "workers");
      if (near.result !== "none") return near.result;
      const far = yield* this.#serveStreamAmong(asked, client, "gateways");
      if (far.result !== "none" || !near.isLate) return far.result;
      const cancel = JSON.stringify({ run_id, holder });
      if (method === "DELETE") yield* Effect.ignore(this.#facts.put("cancel", `${run_id} ${holder}`, cancel, stopMs));
      return "unreachable";
    },
  );

  /** Serves a run by id from the workers, or from the gateways. `isLate`: one of them did not answer in time. */
  readonly #serveStreamAmong = Effect.fnUntraced(
    { self: this },
    function* (
      this: Siblings,
      asked: StreamWish,
      client: ClientResponse,
      among: Among,
    ): Effect.fn.Return<{ readonly result: HopResult; readonly isLate: boolean }> {
      const { holder, run_id } = asked;
      const askSibling = (sibling: Sibling) =>
        Effect.map(Effect.result(sibling.ask(streamKnown, { holder, run_id })), (said) => ({ sibling, said }));
      const all = yield* Effect.forEach(yield* this.#siblingsAmong(among), askSibling, { concurrency: "unbounded" });
      for (const { said, sibling } of all) {
        const has = Result.isSuccess(said) && said.success;
        const result = has ? yield* this.#hop(sibling, client, asked) : "none";
        if (result !== "none") return { result, isLate: false };
      }
      // A dead worker has no runs any more, so only a worker that is late may still have this one.
      const isLate = all.some(({ said }) => Result.isFailure(said) && said.failure.reason === "late");
      return { result: "none", isLate };
    },
  );

  #siblingsAmong(among: Among): Effect.Effect<ReadonlyArray<Sibling>> {
    return among === "workers" ? Effect.succeed(workersOf(this.#sockets)) : gatewaysOf(this.#gateways);
  }

  #hop({ name, target }: Sibling, client: ClientResponse, wish: HopWish): Effect.Effect<HopResult> {
    this.#hops += 1;
    const id = this.#hops;
    this.#clients.set(id, client);
    const from = typeof name === "number" ? null : (this.#gateways?.origin ?? null);
    return Effect.ensuring(
      hop({ from, hop: id, worker: this.#self, wish }, target, client),
      Effect.sync(() => this.#clients.delete(id)),
    );
  }
}

/** True if a request indicates that it may repeat another. A client with idempotency keys sends the same key with each repeat. */
const isPossibleRepeat = ({ asked, idempotencyKey, repeats }: AttachWish): boolean =>
  repeats || asked || idempotencyKey !== undefined;

/** Callbacks of a process that serves hops. */
export interface HopServing {
  /** Returns the current settings for a hop, since the configuration may change. */
  readonly setting: (asked: HopAsked) => HopSetting;
  /** Serves a hop. Returns true if there is a run for it. */
  readonly serve: (wish: HopWish, client: HopResponse) => Effect.Effect<boolean>;
  /** Runs a hop as a request of this worker, for which a shutdown waits. */
  readonly run: (hop: Effect.Effect<void>) => void;
}

/** Creates the listener for hops. A message that cannot be decoded gets status 400. */
export const listenerOf =
  (serving: HopServing): HopListener =>
  (_, response, word) => {
    const asked = read(HopAsked, word);
    if (asked === undefined) return void response.writeHead(400, { connection: "close" }).end();
    const client = new HopResponse(response, serving.setting(asked));
    serving.run(
      serving.serve(asked.wish, client).pipe(
        Effect.map((isServed) => (isServed ? undefined : client.answerNone())),
        Effect.onExit((exit) =>
          Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
            ? client.settle
            : Effect.andThen(logDefect("a defect ended a request", exit.cause), client.fail),
        ),
        Effect.ignoreCause,
      ),
    );
  };
