/**
 * Lets a client come back at another gateway than that which drives its run: by the delivery log, where there is one.
 *
 * A run that goes on is its owner's: a client that comes back elsewhere wishes for the place of its reader, and the owner decides within
 * `grantMs`. An owner that does not answer has died, or is cut off. A request that repeats such a run has a run of its own then, as after any
 * crash; a client that reads on from a byte is given what was written, and its connection breaks.
 */
import { randomUUID } from "node:crypto";
import { Clock, Effect, type Scope } from "effect";
import type { RelayHead, RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { Delivery, DeliveryStore, WishHow } from "../../recorder/delivery/DeliveryStore.ts";
import { inRealTime, monotonicMs } from "../../recorder/MonotonicTime.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import type { RunRecorder } from "../../recorder/RunRecorder.ts";
import { attachedHeader, lingerHeader } from "../config/OwnHeaders.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import type { Refused } from "../routing/Admission.ts";
import { without } from "../upstream/Headers.ts";
import { DeliveryKey } from "./DeliveryKey.ts";
import type { PlaceOutcome } from "./DeliveryMeasures.ts";
import * as DeliveryMeasures from "./DeliveryMeasures.ts";
import { DeliveryOwner } from "./DeliveryOwner.ts";
import { DeliveryReading, type Item, pollMs, type ReadingTerms } from "./DeliveryReading.ts";
import * as StreamRefusals from "./StreamRefusals.ts";

/** Longest that an owner is waited for to give the place of its run's reader, in milliseconds. */
export const grantMs = 2_000;

/** Longest that the store is asked whose run a request repeats, in milliseconds: a repeat waits for it. */
const findMs = 1_000;

/**
 * Longest that the delivery of a run on record is waited for, in milliseconds: its owner begins it behind the first bytes, so that a client
 * which comes back at once is quicker than the owner's write.
 */
export const beginMs = 2_000;

/** A whole run whose end is younger than this, in milliseconds of the wall clock, may have a delivery that its owner has yet to begin. */
const endedMs = 5_000;

/** What a request says of repeating another one. */
export interface RepeatWish {
  readonly repeats: boolean;
  /** It wants that request's response, whatever its idempotency key is. */
  readonly asked: boolean;
  /** It wants a run of its own. */
  readonly forbidden: boolean;
  readonly idempotencyKey: string | undefined;
}

/** What a client asks of a run by its name. */
export interface NamedWish {
  readonly run_id: string;
  readonly method: "GET" | "HEAD" | "DELETE";
  /** The byte that it has next; undefined for what is no number of bytes. */
  readonly from: number | undefined;
}

/** What became of a client that came back. */
export type Delivered = "served" | "none" | Refused;

/** A client that comes back, and what it shows. */
export interface Returning {
  readonly client: ClientResponse;
  /** What its key is made of; undefined where it shows nothing that is secret. */
  readonly secret: string | undefined;
}

/** What may be read: a run that has ended, or one whose reader's place was given. */
interface Granted {
  readonly delivery: Delivery;
  readonly token: string | undefined;
}

/** The records of runs. */
type Records = Pick<RunRecorder["Service"], "run">;

/** The delivery log, as one gateway uses it. */
export class Deliveries {
  /** What writes to it. */
  readonly owner: DeliveryOwner;
  readonly #store: DeliveryStore["Service"];
  readonly #records: Records | undefined;
  readonly #node: string;
  readonly #clock: Clock.Clock;

  private constructor(
    [store, records]: readonly [DeliveryStore["Service"], Records | undefined],
    owner: DeliveryOwner,
    node: string,
    clock: Clock.Clock,
  ) {
    this.#store = store;
    this.#records = records;
    this.owner = owner;
    this.#node = node;
    this.#clock = clock;
  }

  /**
   * Makes it; `owner.close` writes what is left.
   *
   * @param records say which runs there are; without them no delivery is waited for that has not begun
   */
  static readonly make = Effect.fnUntraced(function* (
    store: DeliveryStore["Service"],
    records?: Records,
  ): Effect.fn.Return<Deliveries, never, Scope.Scope> {
    const node = randomUUID();
    return new Deliveries([store, records], yield* DeliveryOwner.make(store, node), node, yield* Clock.Clock);
  });

  /** Whether a request may be one that the log knows: it has to say so, as a look costs a way to the store and back. */
  static mightRepeat({ asked, forbidden, idempotencyKey, repeats }: RepeatWish): boolean {
    return !forbidden && (repeats || asked || idempotencyKey !== undefined);
  }

  /**
   * Gives a request the response of the run that it repeats, where another gateway drives that or has driven it to its end.
   *
   * A delivery that has not begun is not waited for here. No record says which run a request repeats, so that each request with an idempotency
   * key would wait for a run that most of them do not have. A repeat that comes within the owner's first write has a run of its own.
   *
   * @param key that of the request
   * @param named the digest of the name that its client gave it
   */
  readonly repeated = Effect.fnUntraced(
    { self: this },
    function* (
      this: Deliveries,
      [key, named]: readonly [key: string, named: string | undefined],
      wish: RepeatWish,
      returning: Returning,
    ): Effect.fn.Return<boolean> {
      const { secret } = returning;
      if (secret === undefined || !Deliveries.mightRepeat(wish)) return false;
      for (const delivery of yield* this.#found({ request: key })) {
        const opened = DeliveryKey.of(secret, delivery.salt, delivery.run_id);
        if (!mayAnswer(delivery, named, wish) || !opened.opens(delivery.run_id, delivery.lock)) continue;
        const granted = yield* this.#granted(delivery, "repeat");
        // Its owner does not give it away, or is there no more.
        if (granted === undefined) continue;
        const terms = { delivery: granted.delivery, key: opened, from: 0, token: granted.token };
        if ((yield* this.#given(terms, returning.client, [[attachedHeader, "0"]])) === "served") return true;
      }
      return false;
    },
  );

  /** Gives a client what it asks of a run by its name. */
  readonly streamed = Effect.fnUntraced(
    { self: this },
    function* (
      this: Deliveries,
      { from, method, run_id }: NamedWish,
      { client, secret }: Returning,
    ): Effect.fn.Return<Delivered> {
      if (secret === undefined) return "none";
      // A DELETE need not wait: where there is no delivery, the run's owner is told through the store.
      const [delivery] = yield* method === "DELETE" ? this.#found({ runId: run_id }) : this.#begun(run_id, client);
      if (delivery === undefined) return client.gone ? "served" : "none";
      const key = DeliveryKey.of(secret, delivery.salt, run_id);
      if (!key.opens(run_id, delivery.lock)) return "none";
      client.access.learned({ run_id });
      if (method === "DELETE") return yield* this.#cancelled(delivery, client);
      if (delivery.state === "evicted") return StreamRefusals.evicted;
      if (from === undefined) return StreamRefusals.noSuchByte;
      const granted = method === "HEAD" ? undefined : yield* this.#granted(delivery, "stream");
      const extra: RelayHeaders = [
        ["cache-control", "no-store"],
        [attachedHeader, String(from)],
      ];
      const served = yield* this.#given(
        { delivery, token: undefined, ...granted, key, from },
        client,
        extra,
        method === "HEAD",
      );
      return served === "none" ? StreamRefusals.broken : served;
    },
  );

  /** The delivery of a run, where it is another gateway's. One that its owner has yet to begin is waited for, as long as its client is there. */
  readonly #begun = Effect.fnUntraced(
    { self: this },
    function* (this: Deliveries, runId: string, client: ClientResponse): Effect.fn.Return<ReadonlyArray<Delivery>> {
      let all = yield* this.#asked({ runId });
      if (all.length === 0 && !this.owner.keeps(runId) && (yield* this.#mayBegin(runId))) {
        const until = monotonicMs(this.#clock) + beginMs;
        while (all.length === 0 && monotonicMs(this.#clock) < until && !client.gone) {
          yield* Effect.sleep(pollMs);
          all = yield* this.#asked({ runId });
        }
      }
      return all.filter((it) => this.#elsewhere(it));
    },
  );

  /** Whether a run is on record whose owner may begin its delivery yet. Records that do not answer in time know of none. */
  #mayBegin(runId: string): Effect.Effect<boolean> {
    const { currentTimeMillis } = this.#clock;
    if (this.#records === undefined) return Effect.succeed(false);
    const late = Effect.as(inRealTime(findMs), undefined);
    const asked = Effect.orElseSucceed(this.#records.run(runId), () => undefined);
    return Effect.zipWith(Effect.raceFirst(asked, late), currentTimeMillis, isGoingOn);
  }

  /** Deliveries of other gateways. */
  #found(by: Parameters<DeliveryStore["Service"]["find"]>[0]): Effect.Effect<ReadonlyArray<Delivery>> {
    return Effect.map(this.#asked(by), (all) => all.filter((it) => this.#elsewhere(it)));
  }

  /** What is this gateway's own, it would have given already. */
  #elsewhere({ node }: Delivery): boolean {
    return node !== this.#node;
  }

  /** What the store has; one that does not answer in time has nothing. */
  #asked(by: Parameters<DeliveryStore["Service"]["find"]>[0]): Effect.Effect<ReadonlyArray<Delivery>> {
    const late = Effect.as(inRealTime(findMs), []);
    const asked = Effect.orElseSucceed(counted(this.#store.find(by)), (): ReadonlyArray<Delivery> => []);
    return Effect.raceFirst(asked, late);
  }

  /** Wishes for the place of a run's reader, where the run goes on; undefined where its owner does not give it. */
  readonly #granted = Effect.fnUntraced(
    { self: this },
    function* (this: Deliveries, delivery: Delivery, how: WishHow): Effect.fn.Return<Granted | undefined> {
      const { run_id } = delivery;
      if (delivery.state !== "live") return { delivery, token: undefined };
      const wish = randomUUID();
      const until = monotonicMs(this.#clock) + grantMs;
      if (!(yield* succeeds(counted(this.#store.wish(run_id, wish, how))))) return undefined;
      const leaves = Effect.ignore(this.#store.leave(run_id, wish));
      return yield* Effect.onInterrupt(
        Effect.gen({ self: this }, function* () {
          let outcome: PlaceOutcome = "unanswered";
          while (monotonicMs(this.#clock) < until) {
            const standing = yield* Effect.orElseSucceed(counted(this.#store.standing(run_id)), () => undefined);
            if (standing?.reader === wish) {
              yield* DeliveryMeasures.countPlace("given");
              return { delivery, token: wish };
            }
            if (standing?.refused === wish) outcome = "refused";
            if (standing === undefined || standing.refused === wish) break;
            // It has ended meanwhile: nobody need be asked.
            if (standing.state !== "live")
              return { delivery: { ...delivery, state: standing.state }, token: undefined };
            yield* Effect.sleep(pollMs / 2);
          }
          yield* Effect.andThen(DeliveryMeasures.countPlace(outcome), leaves);
          return undefined;
        }),
        () => leaves,
      );
    },
  );

  /** Ends a run in its user's name, or forgets one that has ended. */
  readonly #cancelled = Effect.fnUntraced(
    { self: this },
    function* (this: Deliveries, delivery: Delivery, client: ClientResponse): Effect.fn.Return<Delivered> {
      const granted = yield* this.#granted(delivery, "cancel");
      if (granted === undefined || !(yield* succeeds(this.#store.drop(delivery.run_id))))
        return StreamRefusals.unreached;
      client.head({ status: 204, statusText: "", headers: [["cache-control", "no-store"]] });
      yield* client.end;
      return "served";
    },
  );

  /** Gives a client a response, from a byte on. The place of the reader is left at the end, whatever that is. */
  #given(terms: ReadingTerms, client: ClientResponse, extra: RelayHeaders, headOnly = false): Effect.Effect<Delivered> {
    const { delivery, token } = terms;
    const leaves = token === undefined ? Effect.void : Effect.ignore(this.#store.leave(delivery.run_id, token));
    const served = Effect.flatMap(DeliveryReading.make(this.#store, terms), (reading) =>
      given(reading, terms, client, extra, headOnly),
    );
    return Effect.ensuring(served, leaves);
  }
}

/** Copies a response to a client. `none`: there is nothing, and nothing was written. */
const given = Effect.fnUntraced(function* (
  reading: DeliveryReading,
  { delivery, from }: ReadingTerms,
  client: ClientResponse,
  extra: RelayHeaders,
  headOnly: boolean,
): Effect.fn.Return<Delivered> {
  const next = reading.next(() => client.gone);
  const first = yield* next;
  if (first?._tag !== "Head") return first === undefined ? "served" : "none";
  // What has ended is known before a head is written.
  const second = delivery.state === "live" || headOnly ? undefined : yield* next;
  const refused = second === undefined ? undefined : refusalOf(second, from);
  if (refused !== undefined) return refused;
  client.access.learned({ run_id: delivery.run_id, attached_at: from });
  client.head(headFor(first.head, delivery, from, extra), first.streaming);
  if (headOnly) {
    yield* client.end;
    return "served";
  }
  for (let item = second ?? (yield* next); item !== undefined; item = yield* next) {
    if (item._tag === "Bytes") yield* client.write([Buffer.from(item.bytes)]);
    else {
      yield* item._tag === "End" && item.how === "end" && item.at >= from ? client.end : client.break;
      return "served";
    }
  }
  return "served";
});

/** Why a response that has ended cannot be had from a byte on. */
const refusalOf = (item: Item, from: number): "none" | Refused | undefined => {
  if (item._tag === "Lost") return item.why === "evicted" ? StreamRefusals.evicted : "none";
  if (item._tag !== "End") return undefined;
  if (item.at < from) return StreamRefusals.noSuchByte;
  return item.how === "break" ? StreamRefusals.broken : undefined;
};

/** A part of a response is shorter than its head says. */
const headFor = (head: RelayHead, { linger_ms }: Delivery, from: number, extra: RelayHeaders): RelayHead => {
  const headers = from === 0 ? head.headers : without(head.headers, "content-length");
  const kept = extra.reduce((left, [name]) => without(left, name), headers);
  return { ...head, headers: [...kept, [lingerHeader, String(linger_ms)], ...extra] };
};

/** As the registry decides it for runs of its own: what has failed answers no repeat, and other names are other requests. */
const mayAnswer = ({ named, state }: Delivery, name: string | undefined, wish: RepeatWish): boolean => {
  if (state !== "live" && state !== "whole") return false;
  if (wish.asked) return true;
  const isSame = name !== undefined && name === named;
  return isSame || (wish.repeats && (name === undefined || named === undefined));
};

/** Whether a run goes on, or its whole response has ended just now. */
const isGoingOn = (record: RunRecord | undefined, now: number): boolean =>
  record !== undefined &&
  (record.end === undefined || (record.end.state === "completed" && now - record.end.at < endedMs));

/** What the store does not say is counted. */
const counted = <A>(asked: Effect.Effect<A, RecorderError>): Effect.Effect<A, RecorderError> =>
  Effect.tapError(asked, (error) => DeliveryMeasures.countFailure(error, "read"));

const succeeds = <E>(effect: Effect.Effect<void, E>): Effect.Effect<boolean> =>
  Effect.match(effect, { onFailure: () => false, onSuccess: () => true });
