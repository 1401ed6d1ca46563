/**
 * Remembers requests that have just failed, so that a client's own retries do not multiply what a run may spend.
 *
 * Clients retry too (the SDKs twice by default), with a byte-identical body. Such a repeat is a new run with the remaining
 * budget of the run before. Identical requests that run side by side are separate.
 */
import { Clock, Effect } from "effect";
import { dropOldest } from "../../domain/Limits.ts";
import * as Runs from "../../domain/RunFacts.ts";
import { headerOf, type RelayRequest } from "./RelayTransport.ts";

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

/** Remembers failed requests by a digest of credential, address and body. */
export class RelayRepeats {
  readonly #failed = new Map<string, FailedRequest & { readonly at: number }>();

  /** Finds the failed request that a request repeats, and forgets it: of several repeats only the first one counts. */
  take(request: RelayRequest): Effect.Effect<FailedRequest | undefined> {
    return Effect.suspend(() => {
      if (this.#failed.size === 0) return Effect.undefined;
      return Effect.map(Effect.all([keyOf(request), Clock.currentTimeMillis]), ([key, now]) => {
        const found = this.#failed.get(key);
        if (found === undefined || (found.cancelled && !saysRetry(request))) return undefined;
        this.#failed.delete(key);
        return now - found.at > repeatMs ? undefined : found;
      });
    });
  }

  /** Remembers a request whose run has failed. */
  put(request: RelayRequest, failed: FailedRequest): Effect.Effect<void> {
    return Effect.map(Effect.all([keyOf(request), Clock.currentTimeMillis]), ([key, at]) => {
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
