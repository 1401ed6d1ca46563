/**
 * Describes the store of the delivery log: what the gateways of several machines keep of the responses that their clients may come back to.
 *
 * The store orders and forgets, and it reads nothing: every byte of a response is sealed with a key that only the response's client
 * holds (`gateway/delivery/DeliveryKey.ts`). Its rows are kept for minutes, and a crash of the server may lose all of them.
 *
 * The life of a delivery:
 *
 * 1. Its owner, the gateway that drives the run, `begin`s it and `append`s parts in their order. It `beat`s as long as it lives.
 * 2. A gateway to which the client comes back puts a `wish` into it. The owner finds that by `wishes` and answers it: it alone decides
 *    who reads a run that goes on. The reader `renew`s its place.
 * 3. The owner says that it has `ended`, behind its last part. From then on nobody needs the owner.
 * 4. `forget` deletes what nobody may come back to any more.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { RecorderError } from "../RecorderError.ts";

/** How far a delivery is. Whoever reads it believes only the sealed end, never this word. */
export type DeliveryState = "live" | "whole" | "broken" | "evicted";

/** What a client that comes back wants of a run that goes on: the response it repeats, the run of a name, or that run's end. */
export type WishHow = "repeat" | "stream" | "cancel";

/** What is said of a delivery when it begins. */
export interface DeliveryTerms {
  readonly run_id: string;
  /** The gateway that drives the run. */
  readonly node: string;
  /** The digest of the run's request. */
  readonly request: string;
  /** The digest of the name that the client gave its request. */
  readonly named: string | undefined;
  /** What the client's key is made with, besides what the client shows. */
  readonly salt: Uint8Array;
  /** Opens with the key of the client and no other. */
  readonly lock: Uint8Array;
  readonly linger_ms: number;
}

/** A delivery, as it is found. */
export interface Delivery extends DeliveryTerms {
  readonly state: DeliveryState;
}

/** A sealed piece of a response. */
export interface DeliveryPart {
  readonly run_id: string;
  /** Its number, from 0 on, without a gap. */
  readonly n: number;
  /** The byte of the response that it begins with. */
  readonly at: number;
  readonly sealed: Uint8Array;
}

/** How a delivery has ended. */
export interface DeliveryEnd {
  readonly run_id: string;
  readonly state: DeliveryState;
  /** Its length. */
  readonly bytes: number;
}

/** What readers elsewhere say to the owner of a live run. */
export interface DeliveryWish {
  readonly run_id: string;
  /** Who wishes, until that is answered. */
  readonly wish: string | null;
  readonly wish_how: WishHow | null;
  /** Who has the place of the run's reader. */
  readonly reader: string | null;
  /** Counts up while that reader lives. */
  readonly reader_beats: number;
}

/** How a delivery stands, beside its parts. */
export interface DeliveryStanding {
  readonly state: DeliveryState;
  /** Counts up while the owner lives. */
  readonly beats: number;
  readonly reader: string | null;
  /** The last wish that was not granted. */
  readonly refused: string | null;
}

/** What a look for parts has found. */
export interface DeliveryLook {
  /** Undefined where the delivery is gone. */
  readonly standing: DeliveryStanding | undefined;
  readonly parts: ReadonlyArray<Omit<DeliveryPart, "run_id">>;
}

/** Keeps deliveries. No call is retried here, and each ends within the limits of the server. */
export class DeliveryStore extends Context.Service<
  DeliveryStore,
  {
    /** Begins deliveries; one that is there already stays as it is. */
    readonly begin: (all: ReadonlyArray<DeliveryTerms>) => Effect.Effect<void, RecorderError>;
    /** Adds parts. One that is there already stays as it is: a write whose answer was lost is written again as it was. */
    readonly append: (parts: ReadonlyArray<DeliveryPart>) => Effect.Effect<void, RecorderError>;
    /**
     * Says that the owner lives.
     *
     * @param sizes bytes of each of its live deliveries
     * @returns those that are there
     */
    readonly beat: (sizes: ReadonlyMap<string, number>) => Effect.Effect<ReadonlySet<string>, RecorderError>;
    /** Says how deliveries have ended, each behind its last part. */
    readonly ended: (all: ReadonlyArray<DeliveryEnd>) => Effect.Effect<void, RecorderError>;
    /** Forgets a delivery. */
    readonly drop: (runId: string) => Effect.Effect<void, RecorderError>;
    /** The live deliveries of a gateway that somebody elsewhere reads or wishes to read. */
    readonly wishes: (node: string) => Effect.Effect<ReadonlyArray<DeliveryWish>, RecorderError>;
    /** Grants a wish, or refuses it; nothing happens where it was withdrawn. */
    readonly answer: (runId: string, wish: string, granted: boolean) => Effect.Effect<void, RecorderError>;
    /** Takes the reader's place back, for a client of the owner. */
    readonly unseat: (runId: string) => Effect.Effect<void, RecorderError>;
    /** The deliveries of a request, or the one of a run's name, the newest first. */
    readonly find: (
      by: { readonly request: string } | { readonly runId: string },
    ) => Effect.Effect<ReadonlyArray<Delivery>, RecorderError>;
    /** Wishes to read; the last wish counts. */
    readonly wish: (runId: string, wish: string, how: WishHow) => Effect.Effect<void, RecorderError>;
    /** Withdraws a wish, or leaves the reader's place. */
    readonly leave: (runId: string, reader: string) => Effect.Effect<void, RecorderError>;
    /** Says that a reader lives. */
    readonly renew: (runId: string, reader: string) => Effect.Effect<void, RecorderError>;
    /** How a delivery stands, without its parts. */
    readonly standing: (runId: string) => Effect.Effect<DeliveryStanding | undefined, RecorderError>;
    /**
     * The next parts.
     *
     * @param from a part's number, or the byte that the first part is to hold
     */
    readonly look: (
      runId: string,
      from: { readonly n: number } | { readonly at: number },
    ) => Effect.Effect<DeliveryLook, RecorderError>;
    /**
     * Forgets what has expired.
     *
     * @returns bytes of all deliveries that are left
     */
    readonly forget: Effect.Effect<number, RecorderError>;
    /** The secret of all gateways over this store: what they make digests with. */
    readonly secret: string;
  }
>()("effect-stream-recovery/recorder/DeliveryStore") {}
