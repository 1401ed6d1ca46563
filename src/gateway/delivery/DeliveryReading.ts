/**
 * Reads a delivery as its owner goes on writing it: the head, every byte once, and how the response ends.
 *
 * Only what is sealed counts. A part is taken where its number and its first byte follow on the part before it, so that neither a gap nor a
 * part that stands there twice gets through; and a response is over when its sealed end says so.
 *
 * An owner that has died is noticed as a lease is: its beats stood still while this reader watched. What the store did not say while
 * it was away proves nothing.
 */
import { Clock, Effect } from "effect";
import type { RelayHead } from "../../adapters/relay/RelayTransport.ts";
import type { Delivery, DeliveryLook, DeliveryPart, DeliveryStore } from "../../recorder/delivery/DeliveryStore.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { headIn } from "./DeliveryHead.ts";
import type { DeliveryKey } from "./DeliveryKey.ts";
import * as DeliveryMeasures from "./DeliveryMeasures.ts";
import { beatMs } from "./DeliveryOwner.ts";

/** From one look for more to the next, in milliseconds. */
export const pollMs = 100;

/** An owner that gave no sign of life for so long has died, in milliseconds. */
export const ownerSilentMs = 5 * beatMs;

/** A store that fails is looked at again after so long, and given up after so long, in milliseconds. */
const awayPollMs = 500;
const awayMs = 30_000;

/** Why there is no more to read: the owner has died, another client has the place, or the delivery is not kept any more. */
export type Loss = "owner" | "place" | "gone" | "evicted" | "store";

/** What comes next of a response. */
export type Item =
  | { readonly _tag: "Head"; readonly head: RelayHead; readonly streaming: boolean }
  /** Bytes from a place on. */
  | { readonly _tag: "Bytes"; readonly at: number; readonly bytes: Uint8Array }
  | { readonly _tag: "End"; readonly how: "end" | "break"; readonly at: number }
  | { readonly _tag: "Lost"; readonly why: Loss };

/** What is read, and for whom. */
export interface ReadingTerms {
  readonly delivery: Delivery;
  readonly key: DeliveryKey;
  /** The first byte that is wanted. */
  readonly from: number;
  /** The place of the run's reader, where the owner has given it. */
  readonly token: string | undefined;
}

/** One reading of one delivery. */
export class DeliveryReading {
  readonly #store: DeliveryStore["Service"];
  readonly #terms: ReadingTerms;
  readonly #clock: Clock.Clock;
  #parts: Array<DeliveryLook["parts"][number]> = [];
  /** The number of the next part, once the first one is known. */
  #n: number | undefined;
  /** The byte that the next part begins with. */
  #at: number | undefined;
  #isHeaded = false;
  #beats: number | undefined;
  #seenAt: number;
  #renewedAt: number;
  #answeredAt: number;

  private constructor(store: DeliveryStore["Service"], terms: ReadingTerms, clock: Clock.Clock) {
    this.#store = store;
    this.#terms = terms;
    this.#clock = clock;
    const now = monotonicMs(clock);
    this.#seenAt = now;
    this.#renewedAt = now;
    this.#answeredAt = now;
  }

  /** Makes it. */
  static readonly make = (store: DeliveryStore["Service"], terms: ReadingTerms): Effect.Effect<DeliveryReading> =>
    Effect.map(Clock.Clock, (clock) => new DeliveryReading(store, terms, clock));

  /**
   * What comes next; it waits for the owner.
   *
   * @param isOver looked at while it waits: nobody reads any more
   */
  readonly next = Effect.fnUntraced(
    { self: this },
    function* (this: DeliveryReading, isOver: () => boolean): Effect.fn.Return<Item | undefined> {
      for (;;) {
        if (isOver()) return undefined;
        const item = this.#taken();
        if (item !== undefined) return item;
        const lost = yield* this.#looks;
        if (lost !== undefined) return { _tag: "Lost", why: lost };
      }
    },
  );

  /** The next item of the parts that are here. */
  #taken(): Item | undefined {
    for (let part = this.#parts.shift(); part !== undefined; part = this.#parts.shift()) {
      const item = this.#opened(part);
      if (item !== undefined) return item;
    }
    return undefined;
  }

  #opened(part: Omit<DeliveryPart, "run_id">): Item | undefined {
    const { delivery, from, key } = this.#terms;
    const { at, n } = part;
    // The first one holds the byte that is wanted, or stands in front of it.
    const follows = this.#n === undefined ? at <= from : n === this.#n && at === (this.#at ?? at);
    const opened = follows ? key.open({ run_id: delivery.run_id, n, at }, part.sealed) : undefined;
    if (opened === undefined) return { _tag: "Lost", why: "gone" };
    const { bytes, kind } = opened;
    if (kind === "head") {
      this.#isHeaded = true;
      this.#n = from === 0 ? 1 : undefined;
      this.#at = 0;
      const head = headIn(bytes);
      return head === undefined ? { _tag: "Lost", why: "gone" } : { _tag: "Head", ...head };
    }
    this.#n = n + 1;
    this.#at = at + bytes.byteLength;
    if (kind === "end") return { _tag: "End", how: bytes.toString() === "end" ? "end" : "break", at };
    const wanted = bytes.subarray(Math.max(0, from - at));
    return wanted.byteLength === 0 ? undefined : { _tag: "Bytes", at: Math.max(at, from), bytes: wanted };
  }

  /** Looks for more. Where there is none it waits, or says why nothing comes any more. */
  readonly #looks: Effect.Effect<Loss | undefined> = Effect.suspend(() => {
    const { delivery, from } = this.#terms;
    const { run_id } = delivery;
    const renewed = this.#renews;
    const look = this.#store.look(run_id, this.#n === undefined && this.#isHeaded ? { at: from } : { n: this.#n ?? 0 });
    return Effect.matchEffect(Effect.andThen(renewed, look), {
      onFailure: (error) => Effect.andThen(DeliveryMeasures.countFailure(error, "read"), this.#away),
      onSuccess: (found) => this.#found(found),
    });
  });

  #found({ parts, standing }: DeliveryLook): Effect.Effect<Loss | undefined> {
    const now = this.#now();
    const wasAway = now - this.#answeredAt > ownerSilentMs / 2;
    this.#answeredAt = now;
    if (standing === undefined) return Effect.succeed("gone");
    // The head is there again while no byte is.
    const fresh = parts.filter(({ n }) => n > 0 || !this.#isHeaded);
    if (standing.beats !== this.#beats || fresh.length > 0 || wasAway) {
      this.#beats = standing.beats;
      this.#seenAt = now;
    }
    if (fresh.length > 0) {
      this.#parts = [...fresh];
      return Effect.succeed(undefined);
    }
    const { reader, state } = standing;
    if (state === "evicted") return Effect.succeed("evicted");
    if (state !== "live") return Effect.succeed("gone");
    const { token } = this.#terms;
    if (token !== undefined && reader !== token) return Effect.succeed("place");
    if (now - this.#seenAt >= ownerSilentMs) return Effect.succeed("owner");
    return Effect.as(Effect.sleep(pollMs), undefined);
  }

  /** The store does not answer: what it did not say proves nothing. */
  readonly #away: Effect.Effect<Loss | undefined> = Effect.suspend(() =>
    this.#now() - this.#answeredAt >= awayMs
      ? Effect.succeed<Loss>("store")
      : Effect.as(Effect.sleep(awayPollMs), undefined),
  );

  readonly #renews = Effect.suspend(() => {
    const { delivery, token } = this.#terms;
    const now = this.#now();
    if (token === undefined || now - this.#renewedAt < beatMs) return Effect.void;
    this.#renewedAt = now;
    return this.#store.renew(delivery.run_id, token);
  });

  #now(): number {
    return monotonicMs(this.#clock);
  }
}
