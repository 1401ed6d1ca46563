/**
 * Lets the clients of each worker attach to the runs of all of them.
 *
 * A run stays where it began, and its worker alone decides who reads it. A client that comes back at another worker is given the response
 * by a hop (`HopMessage`). A socket that is handed to the owner would need none, but what TLS has read of it stays behind, and so does a
 * body that was read to know whose repeat it is.
 *
 * Two requests that come at the same moment at two workers, neither saying that it repeats the other, are two runs, as they are in one
 * process. A repeat that comes before the word of its run is a run of its own; that word is under way for as long as a message takes.
 */
import { Effect, Result, Schema, type Scope } from "effect";
import { Label } from "../../domain/Limits.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import type { WorkerBus } from "../workers/WorkerBus.ts";
import { notice, query } from "../workers/WorkerMessage.ts";
import type { AttachWish } from "./AttachWish.ts";
import { HeldElsewhere } from "./HeldElsewhere.ts";
import { type HopAsked, HopKey, type HopWish, type StreamWish } from "./HopMessage.ts";
import { type HopResult, hop } from "./HopRequest.ts";
import type { HopSetting } from "./HopResponse.ts";
import { type HopServing, listening, socketOf } from "./HopServer.ts";

/** A worker that does not say within so long, in milliseconds, is late. A repeat is a run of its own then. */
const askMs = 1_000;

/** Whether a worker has a run of a request's key. */
const repeatKnown = query("repeat_known", HopKey, Schema.Boolean, { replyMs: askMs });

/** Whether a worker has a run of a name, or had it and keeps it no more, for who shows the key of its holder. */
const streamKnown = query("stream_known", Schema.Struct({ run_id: Label, holder: HopKey }), Schema.Boolean, {
  replyMs: askMs,
});

/** The user of a run has stopped it. A worker that is late obeys as soon as it goes on. */
const streamEnds = notice("stream_ends", Schema.Struct({ run_id: Label, holder: HopKey }));

/** Whether the socket of a hop's client is silent. */
const hopSilent = query("hop_silent", Schema.Natural, Schema.Boolean);

/** What a worker does for its siblings. */
export interface SiblingServing extends Pick<HopServing, "run" | "serve">, Pick<HopSetting, "now"> {
  readonly hasRequest: (key: string) => boolean;
  readonly hasRun: (runId: string, holder: string) => boolean;
  /** Ends a run of this worker in its user's name, where there is such a run. */
  readonly ends: (runId: string, holder: string) => void;
  /** As it is configured now. */
  readonly slowMs: () => number;
}

/** The other workers, as one of them sees them. */
export class Siblings {
  readonly held: HeldElsewhere;
  readonly #bus: WorkerBus["Service"];
  readonly #folder: string;
  readonly #clients = new Map<number, ClientResponse>();
  #hops = 0;

  private constructor(bus: WorkerBus["Service"], folder: string, held: HeldElsewhere) {
    this.#bus = bus;
    this.#folder = folder;
    this.held = held;
  }

  /** Makes them; undefined where this process serves alone, or where the workers cannot reach each other. */
  static readonly make = Effect.fnUntraced(function* (
    bus: WorkerBus["Service"] | undefined,
  ): Effect.fn.Return<Siblings | undefined, never, Scope.Scope> {
    if (bus?.folder === undefined) return undefined;
    const made = new Siblings(bus, bus.folder, yield* HeldElsewhere.make(bus));
    yield* bus.replies(hopSilent, (id) => made.#clients.get(id)?.isSilent ?? Effect.succeed(true));
    return made;
  });

  /** Serves the runs of this worker to the clients of the others, while the scope lives. */
  readonly serve = Effect.fnUntraced(
    { self: this },
    function* (
      this: Siblings,
      { ends, hasRequest, hasRun, now, run, serve, slowMs }: SiblingServing,
    ): Effect.fn.Return<void, never, Scope.Scope> {
      const bus = this.#bus;
      yield* bus.replies(repeatKnown, (key) => Effect.sync(() => hasRequest(key)));
      yield* bus.replies(streamKnown, ({ holder, run_id }) => Effect.sync(() => hasRun(run_id, holder)));
      yield* bus.on(streamEnds, ({ holder, run_id }) => ends(run_id, holder));
      const setting = ({ hop: id, worker }: HopAsked): HopSetting => ({
        ...{ now, slowMs: slowMs() },
        // A worker that is late says nothing of its client; with one that is gone its clients are, too.
        isSilent: Effect.catch(bus.ask(hopSilent, id, worker), ({ reason }) => Effect.succeed(reason === "gone")),
      });
      const wrong = yield* listening(socketOf(this.#folder, bus.self), { secret: bus.secret, setting, serve, run });
      if (wrong !== undefined)
        yield* Effect.logWarning("clients of the other workers cannot attach to the runs of this one", { code: wrong });
    },
  );

  /** Whether a request might attach to a run of a sibling. */
  mightAnswer({ asked, forbidden, repeats }: AttachWish): boolean {
    return !forbidden && (repeats || asked || !this.held.isEmpty);
  }

  /**
   * Gives a request the response of the sibling's run that it repeats. One that says that it is a repeat is asked of all of them.
   *
   * @returns whether there is one that it may attach to
   */
  readonly repeated = Effect.fnUntraced(
    { self: this },
    function* (this: Siblings, key: string, wish: AttachWish, client: ClientResponse) {
      if (!this.mightAnswer(wish)) return false;
      const { asked, idempotencyKey = null, repeats } = wish;
      const hopWish: HopWish = { _tag: "Repeat", key, repeats, asked, idempotencyKey };
      const told = this.held.ownersOf(key);
      for (const worker of told) if ((yield* this.#hop(worker, client, hopWish)) !== "none") return true;
      if (!repeats && !asked) return false;
      // A run that was read to its end is not told of, and those that are may have no answer to this request.
      for (const { value, worker } of yield* this.#bus.askOthers(repeatKnown, key))
        if (value && !told.includes(worker) && (yield* this.#hop(worker, client, hopWish)) !== "none") return true;
      return false;
    },
  );

  /**
   * Gives a client the response of a sibling's run by its name.
   *
   * @returns `unheard` where none that says something has it, and one says nothing now. That one is told of a run's end all the same.
   */
  readonly streamed = Effect.fnUntraced(
    { self: this },
    function* (this: Siblings, asked: StreamWish, client: ClientResponse): Effect.fn.Return<HopResult | "unheard"> {
      const { holder, method, run_id } = asked;
      const saying = (worker: number) =>
        Effect.map(Effect.result(this.#bus.ask(streamKnown, { holder, run_id }, worker)), (said) => ({ worker, said }));
      const all = yield* Effect.forEach(this.#bus.others(), saying, { concurrency: "unbounded" });
      for (const { said, worker } of all) {
        const has = Result.isSuccess(said) && said.success;
        const result = has ? yield* this.#hop(worker, client, asked) : "none";
        if (result !== "none") return result;
      }
      const silent = all.filter(({ said }) => Result.isFailure(said) && isUnheard(said.failure.reason));
      if (method === "DELETE") for (const { worker } of silent) this.#bus.tell(streamEnds, { holder, run_id }, worker);
      return silent.length === 0 ? "none" : "unheard";
    },
  );

  #hop(worker: number, client: ClientResponse, wish: HopWish): Effect.Effect<HopResult> {
    this.#hops += 1;
    const id = this.#hops;
    this.#clients.set(id, client);
    return Effect.ensuring(
      hop(
        { hop: id, worker: this.#bus.self, wish },
        { socket: socketOf(this.#folder, worker), secret: this.#bus.secret },
        client,
      ),
      Effect.sync(() => this.#clients.delete(id)),
    );
  }
}

/** Whether a worker lives that has not replied. One that has died has no runs any more. */
const isUnheard = (reason: string): boolean => reason === "late" || reason === "busy";
