/**
 * Remembers requests that have just failed, so that a client's own retries do not multiply what a run may spend.
 *
 * Clients retry too (the SDKs twice by default), with a byte-identical body. Such a repeat is a new run with the remaining
 * budget of the run before. Identical requests that run side by side are separate.
 */
import { Effect } from "effect";
import { dropOldest } from "../../domain/Limits.ts";
import * as Runs from "../../domain/RunFacts.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { headerOf, type RelayHeaders, type RelayRequest } from "./RelayTransport.ts";

/** How long a failed request is remembered, in milliseconds: longer than any SDK waits between its retries. */
export const repeatMs = 60_000;

/** Most failed requests that are remembered; the oldest is forgotten. */
export const repeatsMax = 1024;

/** What a failed run leaves to the client's repeat of its request. */
export interface FailedRequest {
  readonly run_id: string;
  /** Automatic retries that this run and the runs that it repeated have spent. */
  readonly spent: number;
  /** The client had given the request up: only a request that is marked as a retry counts as its repeat. */
  readonly cancelled: boolean;
}

/** What the client of a run that was given up was told. */
export interface ToldClient {
  readonly message: string;
  /** What broke; undefined where it is not known. */
  readonly code: string | undefined;
  readonly headers: RelayHeaders;
}

/** What a request is told from memory. */
export interface Recalled {
  readonly told: ToldClient;
  /** Milliseconds since the run was given up. */
  readonly ageMs: number;
}

/** An identical request that comes within so long, in milliseconds, repeats a run that was given up without saying so. */
export const unmarkedRepeatMs = 5_000;

/** Remembers failed requests by a digest of credential, address and body. */
export class RelayRepeats {
  readonly #failed = new Map<string, FailedRequest & { readonly at: number }>();
  readonly #told = new Map<
    string,
    { readonly told: ToldClient; readonly idempotencyKey: string; readonly at: number }
  >();

  /** Remembers what the client of a request was told when its run was given up. */
  tell(request: RelayRequest, told: ToldClient): Effect.Effect<void> {
    return Effect.map(Effect.all([keyOf(request), now]), ([key, at]) => {
      this.#told.delete(key);
      this.#told.set(key, { told, idempotencyKey: idempotencyKeyOf(request), at });
      dropOldest(this.#told, repeatsMax);
    });
  }

  /**
   * What the client of a request was told a moment ago, if the request repeats one whose run was given up: it says so, has the
   * same idempotency key, or comes within `unmarkedRepeatMs`.
   */
  recall(request: RelayRequest): Effect.Effect<Recalled | undefined> {
    return Effect.suspend(() => {
      if (this.#told.size === 0) return Effect.undefined;
      return Effect.map(Effect.all([keyOf(request), now]), ([key, at]) => {
        const found = this.#told.get(key);
        if (found === undefined) return undefined;
        const ageMs = at - found.at;
        if (ageMs > repeatMs) {
          this.#told.delete(key);
          return undefined;
        }
        const given = idempotencyKeyOf(request);
        const repeats = saysRetry(request) || (given !== "" && given === found.idempotencyKey);
        return repeats || ageMs <= unmarkedRepeatMs ? { told: found.told, ageMs } : undefined;
      });
    });
  }

  /** Finds the failed request that a request repeats, and forgets it: of several repeats only the first one counts. */
  take(request: RelayRequest): Effect.Effect<FailedRequest | undefined> {
    return Effect.suspend(() => {
      if (this.#failed.size === 0) return Effect.undefined;
      return Effect.map(Effect.all([keyOf(request), now]), ([key, at]) => {
        const found = this.#failed.get(key);
        if (found === undefined || (found.cancelled && !saysRetry(request))) return undefined;
        this.#failed.delete(key);
        return at - found.at > repeatMs ? undefined : found;
      });
    });
  }

  /** Remembers a request whose run has failed. */
  put(request: RelayRequest, failed: FailedRequest): Effect.Effect<void> {
    return Effect.map(Effect.all([keyOf(request), now]), ([key, at]) => {
      this.#failed.delete(key);
      this.#failed.set(key, { ...failed, at });
      dropOldest(this.#failed, repeatsMax);
    });
  }
}

/** What is left of a budget. */
export const remainingBudget = (
  budget: Partial<Runs.Budget>,
  repeated: FailedRequest | undefined,
): Partial<Runs.Budget> => {
  if (repeated === undefined) return budget;
  const full = { ...Runs.defaultBudget, ...budget };
  return {
    ...budget,
    max_auto_retries: Math.max(0, full.max_auto_retries - repeated.spent),
    max_not_processed: Math.max(0, full.max_not_processed - repeated.spent),
  };
};

/** The OpenAI and Anthropic SDKs count their own retries in this header. */
const saysRetry = (request: RelayRequest): boolean =>
  Number(headerOf(request.headers, "x-stainless-retry-count") ?? 0) > 0;

const now = Effect.clockWith((clock) => Effect.sync(() => monotonicMs(clock)));

const idempotencyKeyOf = (request: RelayRequest): string => headerOf(request.headers, "idempotency-key") ?? "";

const credentials = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/** A digest, so that no key and no prompt is kept. */
const keyOf = (request: RelayRequest): Effect.Effect<string> =>
  Effect.promise(async () => {
    const text = new TextEncoder();
    const given = credentials.map((name) => headerOf(request.headers, name) ?? "");
    const head = text.encode(JSON.stringify([request.method, request.url, ...given]));
    const body = typeof request.body === "string" ? text.encode(request.body) : (request.body ?? new Uint8Array(0));
    const all = new Uint8Array(head.byteLength + body.byteLength);
    all.set(head);
    all.set(body, head.byteLength);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", all));
    return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  });
