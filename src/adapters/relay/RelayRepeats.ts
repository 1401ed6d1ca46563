/**
 * Remembers requests that have just failed, and the responses that clients of abandoned runs got. So a client's own retries do not multiply
 * the budget.
 *
 * Clients retry too (the SDKs twice by default), with the same JSON. Only the first of these runs has the whole budget, and each repeat is
 * a new run with the rest. If an abandoned run is repeated by a request that is marked as a retry, or follows it closely, the client gets
 * the same response again and nothing is sent. Identical requests in parallel are independent.
 *
 * The key of a request is a digest of its tenant, URL, credentials, route preferences and canonical body, so that no key and no prompt is
 * stored. It is computed once per request, and only if something is remembered or will be.
 */
import { Effect, Fiber, type Scope } from "effect";
import { dropOldest } from "../../domain/Limits.ts";
import * as Runs from "../../domain/RunFacts.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { type FormDigest, type FormPart, forEachPart } from "./form/RequestForm.ts";
import { headerOf, type RelayHeaders, type RelayRequest } from "./RelayTransport.ts";

/** Time for which a failed request is remembered, in milliseconds: longer than any SDK waits between its retries. */
export const repeatMs = 60_000;

/** Maximum failed requests that are remembered. The oldest is evicted. */
export const repeatsMax = 1024;

/** Time within which an identical, unmarked request counts as a repeat of an abandoned run, in milliseconds. */
export const unmarkedRepeatMs = 5_000;

/**
 * Maximum unmarked requests that one abandoned run answers: as many as the most eager agent sends by itself. A program that repeats a
 * request on purpose, to sample, loses no more requests than this to one fault.
 */
export const unmarkedRepeatsMax = 6;

/** The part of a failed run that affects the client's repeat of its request. */
export interface FailedRequest {
  readonly run_id: string;
  /** Automatic retries that this run, and the runs that it repeated, have spent. */
  readonly spent: number;
  /** True if the client had cancelled the request. Only a request that is marked as a retry then counts as its repeat. */
  readonly cancelled: boolean;
}

/** The response that the client of an abandoned run got. */
export interface ToldClient {
  readonly message: string;
  /** Code of the failure; undefined if unknown. */
  readonly code: string | undefined;
  readonly headers: RelayHeaders;
  /**
   * The provider's own words, if it refused the run. They may echo a request, so they remain in the memory of this machine's
   * processes and never reach a store.
   */
  readonly said?: ProviderWords;
}

/** A provider's refusal of a request, without credentials. */
export interface ProviderWords {
  /** A single line of limited length. */
  readonly message: string | undefined;
  readonly code: string | undefined;
  /** The refusal itself; undefined if it was an event of a stream. */
  readonly response: ToldRefusal | undefined;
  /** Title of a web page that came in place of a response. */
  readonly title?: string | undefined;
}

/** A provider's refusal that can be sent again. */
export interface ToldRefusal {
  readonly status: number;
  readonly headers: RelayHeaders;
  readonly body: string;
}

/** Maximum length of a refusal's body that is remembered, in UTF-16 code units. */
export const toldBodyCharactersMax = 4_096;

/** Returns the part of a response that is remembered for a repeat. Long bodies are dropped. */
const memorable = (told: ToldClient): ToldClient =>
  (told.said?.response?.body.length ?? 0) > toldBodyCharactersMax && told.said !== undefined
    ? { ...told, said: { ...told.said, response: undefined } }
    : told;

/** A remembered response for a request. */
export interface Recalled {
  readonly told: ToldClient;
  /** Milliseconds since the run was abandoned. */
  readonly ageMs: number;
}

/** A change of a process's memory of a request, for the processes that share this memory. */
export type RepeatChange =
  | { readonly _tag: "Failed"; readonly key: string; readonly failed: FailedRequest }
  | {
      readonly _tag: "Told";
      readonly key: string;
      readonly told: ToldClient;
      readonly idempotencyKey: string | undefined;
    };

/**
 * Memory that several processes share, queried if this process remembers nothing of a request. A first attempt never waits for it,
 * and a query that it cannot answer counts as not found.
 */
export interface RepeatsElsewhere {
  /**
   * Finds and forgets the failed run that a request repeats, when the request's own run begins, or later.
   *
   * @param begunMs milliseconds since the request's own run began
   * @param says true if the request is marked as a repeat
   */
  readonly take: (key: string, begunMs: number, says: boolean) => Effect.Effect<FailedRequest | undefined>;
  /**
   * Takes the failed run of a request for which this process remembers a failed run too. Another process may have taken it since, or spent
   * more of its budget.
   *
   * @returns undefined if this cannot be determined now
   */
  readonly claim: (key: string) => Effect.Effect<{ readonly failed: FailedRequest | undefined } | undefined>;
  /** Finds the response that the client of a request got. */
  readonly recall: (key: string) => Effect.Effect<Recalled | undefined>;
  /** Publishes a change of this process. */
  readonly remember: (change: RepeatChange) => Effect.Effect<void>;
}

interface Told {
  readonly told: ToldClient;
  readonly idempotencyKey: string | undefined;
  /** Number of unmarked requests that got this response. */
  unmarked: number;
}

/** Remembers failed requests. One instance serves all requests. */
export class RelayRepeats {
  readonly #failed = new Recent<FailedRequest>();
  readonly #told = new Recent<Told>();
  readonly #keys = new WeakMap<RelayRequest, string | Promise<string>>();
  readonly #digest: FormDigest;
  readonly #elsewhere: RepeatsElsewhere | undefined;

  /**
   * @param digest SHA-256 or stronger; the default uses Web Crypto, which every runtime has
   * @param elsewhere the memory of other processes
   */
  constructor(digest: FormDigest = webDigest, elsewhere?: RepeatsElsewhere) {
    this.#digest = digest;
    this.#elsewhere = elsewhere;
  }

  /**
   * Finds the failed run that a request repeats and forgets it, because only the first of several repeats counts. Also forgets the
   * response that its client got, because the run that begins now may end differently.
   */
  take(request: RelayRequest): Effect.Effect<FailedRequest | undefined> {
    if (this.isEmpty) return Effect.undefined;
    const elsewhere = this.#elsewhere;
    const taken = this.#takeHere(request);
    if (elsewhere === undefined) return taken;
    // Only the first of several repeats counts, even if they reach different processes.
    return Effect.flatMap(taken, (found) => {
      if (found === undefined) return Effect.undefined;
      const claimed = Effect.flatten(this.#withKey(request, (key) => elsewhere.claim(key)));
      return Effect.map(claimed, (it) => (it === undefined ? found : it.failed));
    });
  }

  /**
   * Finds the failed run of another process that a request repeats. Call this when the request's own run begins. A request that is marked
   * as a repeat is looked up during its first attempt, any other only after that attempt breaks, so that a healthy run costs nothing.
   *
   * @returns the result, which the run asks for once, before its first decision; undefined if there is no other process
   */
  elsewhere(
    request: RelayRequest,
  ): Effect.Effect<Effect.Effect<FailedRequest | undefined> | undefined, never, Scope.Scope> {
    const elsewhere = this.#elsewhere;
    if (elsewhere === undefined) return Effect.undefined;
    const says = isMarkedRetry(request);
    return Effect.flatMap(now, (begunAt) => {
      const asked = Effect.flatten(this.#withKey(request, (key, at) => elsewhere.take(key, at - begunAt, says)));
      return says ? Effect.map(Effect.forkScoped(asked), Fiber.join) : Effect.succeed(asked);
    });
  }

  #takeHere(request: RelayRequest): Effect.Effect<FailedRequest | undefined> {
    return this.#lookUp(request, (key, now) => {
      this.#told.delete(key);
      const found = this.#failed.get(key, now);
      if (found === undefined || (found.value.cancelled && !isMarkedRetry(request))) return undefined;
      this.#failed.delete(key);
      return found.value;
    });
  }

  /** Remembers the failed run of a request. */
  put(request: RelayRequest, failed: FailedRequest): Effect.Effect<void> {
    return this.#remember(request, (key) => ({ _tag: "Failed", key, failed }));
  }

  /**
   * Remembers the retries that a failed run has spent, added to those of the run that it repeats.
   *
   * @param failed the failed run, with only its own retries
   */
  recordSpent(request: RelayRequest, failed: FailedRequest, repeated: FailedRequest | undefined): Effect.Effect<void> {
    return this.put(request, { ...failed, spent: (repeated?.spent ?? 0) + Math.max(0, failed.spent) });
  }

  /** Remembers the response that the client of an abandoned run got. */
  tell(request: RelayRequest, told: ToldClient): Effect.Effect<void> {
    return this.#remember(request, (key) => ({
      _tag: "Told",
      key,
      told: memorable(told),
      idempotencyKey: idempotencyKeyOf(request),
    }));
  }

  #remember(request: RelayRequest, changeOf: (key: string) => RepeatChange): Effect.Effect<void> {
    return Effect.flatten(
      this.#withKey(request, (key, at) => {
        const change = changeOf(key);
        if (change._tag === "Failed") this.#failed.set(key, change.failed, at);
        else if (change._tag === "Told") this.#told.set(key, { ...change, unmarked: 0 }, at);
        return this.#elsewhere?.remember(change) ?? Effect.void;
      }),
    );
  }

  /**
   * Finds the response that a client just got, if the request repeats an abandoned run: it is marked as a retry, has the same
   * idempotency key, or comes within `unmarkedRepeatMs` as one of the first `unmarkedRepeatsMax`.
   */
  recall(request: RelayRequest): Effect.Effect<Recalled | undefined> {
    const elsewhere = this.#elsewhere;
    const here = this.#recallHere(request);
    // Only a request that is marked as a repeat waits for other processes.
    if (elsewhere === undefined || !isMarkedRetry(request)) return here;
    return Effect.flatMap(here, (found) =>
      found === undefined
        ? Effect.flatten(this.#withKey(request, (key) => elsewhere.recall(key)))
        : Effect.succeed(found),
    );
  }

  #recallHere(request: RelayRequest): Effect.Effect<Recalled | undefined> {
    return this.#lookUp(request, (key, now) => {
      const found = this.#told.get(key, now);
      if (found === undefined) return undefined;
      const { ageMs, value } = found;
      const given = idempotencyKeyOf(request);
      const says = isMarkedRetry(request) || (given !== undefined && given === value.idempotencyKey);
      if (!says) {
        if (ageMs > unmarkedRepeatMs || value.unmarked >= unmarkedRepeatsMax) return undefined;
        found.value.unmarked += 1;
      }
      return { told: value.told, ageMs };
    });
  }

  /** Returns true if a request cannot be a repeat: nothing is remembered here, and other processes need not be asked. */
  isNew(request: RelayRequest): boolean {
    return this.isEmpty && (this.#elsewhere === undefined || !isMarkedRetry(request));
  }

  /** Forgets the remembered response of a request, because another run of it has completed. */
  forgetResponse(request: RelayRequest): Effect.Effect<void> {
    return this.#told.size === 0 ? Effect.void : Effect.asVoid(this.#lookUp(request, (key) => this.#told.delete(key)));
  }

  /** Looks a request up, unless nothing is remembered. */
  #lookUp<A>(request: RelayRequest, find: (key: string, now: number) => A | undefined): Effect.Effect<A | undefined> {
    return Effect.suspend(() => {
      if (this.isEmpty) return Effect.undefined;
      return Effect.flatMap(now, (at) => {
        this.#failed.dropExpired(at);
        this.#told.dropExpired(at);
        return this.isEmpty ? Effect.undefined : this.#withKey(request, find);
      });
    });
  }

  #withKey<A>(request: RelayRequest, use: (key: string, now: number) => A): Effect.Effect<A> {
    return Effect.suspend(() => {
      const leftOut = canLowerLimit(request) ? mannersOfLowered : manners;
      const form = { words: wordsOf(request), body: request.body, leftOut };
      const key = this.#keys.get(request) ?? this.#digest(form);
      this.#keys.set(request, key);
      // The time is read when the digest is available.
      if (typeof key === "string") return Effect.map(now, (at) => use(key, at));
      return Effect.flatMap(
        Effect.promise(() => key),
        (found) => Effect.map(now, (at) => use(found, at)),
      );
    });
  }

  /** True if nothing is remembered, which is the usual case. */
  get isEmpty(): boolean {
    return this.#failed.size === 0 && this.#told.size === 0;
  }
}

/** A value and the time at which it was set. */
interface Dated<A> {
  readonly value: A;
  readonly at: number;
}

/** Values by key, oldest first, for `repeatMs` and at most `repeatsMax` of them. Times are monotonic milliseconds. */
class Recent<A> {
  readonly #values = new Map<string, Dated<A>>();

  get size(): number {
    return this.#values.size;
  }

  get(key: string, now: number): { readonly value: A; readonly ageMs: number } | undefined {
    const found = this.#values.get(key);
    return found === undefined || now - found.at > repeatMs
      ? undefined
      : { value: found.value, ageMs: Math.max(0, now - found.at) };
  }

  set(key: string, value: A, at: number): void {
    this.#values.delete(key);
    this.#values.set(key, { value, at });
    dropOldest(this.#values, repeatsMax);
  }

  delete(key: string): void {
    this.#values.delete(key);
  }

  /** Drops expired values. */
  dropExpired(now: number): void {
    for (const [key, { at }] of this.#values) {
      if (now - at <= repeatMs) return;
      this.#values.delete(key);
    }
  }
}

/** Returns the budget without the retries that the repeated run has spent; the whole budget if the request repeats no run. */
export const remainingBudget = (
  budget: Partial<Runs.Budget>,
  repeated: FailedRequest | undefined,
): Partial<Runs.Budget> => {
  return repeated === undefined ? budget : Runs.subtractRetries(budget, repeated.spent);
};

const now = Effect.clockWith((clock) => Effect.sync(() => monotonicMs(clock)));

/** True if a request is marked as a retry. The OpenAI and Anthropic SDKs count their own retries in a header. */
export const isMarkedRetry = (request: Pick<RelayRequest, "headers">): boolean =>
  Number(headerOf(request.headers, "x-stainless-retry-count") ?? 0) > 0;

/** Maximum length of an idempotency key that is remembered, in UTF-16 code units. Those of SDKs have about 60. */
const idempotencyKeyMax = 256;

/** Returns the idempotency key of a request; undefined if it has none that can be remembered. */
export const idempotencyKeyOf = (request: Pick<RelayRequest, "headers">): string | undefined => {
  const key = headerOf(request.headers, "idempotency-key");
  return key === undefined || key === "" || key.length > idempotencyKeyMax ? undefined : key;
};

/** Headers that distinguish requests with the same body: their credentials and the routes that they may use. */
const choosing = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "x-recovery-route", "x-recovery-move"];

/** Members of a body that affect the form of the response and not its content. */
const manners: ReadonlySet<string> = new Set(["stream", "stream_options"]);

const mannersOfLowered: ReadonlySet<string> = new Set([...manners, "max_tokens"]);

/**
 * Returns true for a client that lowers `max_tokens` in a repeat. Anthropic permits fewer tokens without a stream, so claude-code lowers
 * the limit in a repeat without streaming. For other clients a new limit is a new request, because they raise it after a response was cut.
 */
const canLowerLimit = (request: Pick<RelayRequest, "headers">): boolean =>
  /^claude-cli\//.test(headerOf(request.headers, "user-agent") ?? "") || headerOf(request.headers, "x-app") === "cli";

const wordsOf = ({ headers, method, tenant, url }: RelayRequest): ReadonlyArray<unknown> => [
  ...[tenant ?? null, method, url],
  ...choosing.map((name) => headerOf(headers, name) ?? ""),
];

const webDigest: FormDigest = async (form) => {
  const parts: Array<FormPart> = [];
  // The bytes of a part are valid only until the next part is created.
  const keep = (part: FormPart) => parts.push(typeof part === "string" ? part : part.slice());
  await Effect.runPromise(forEachPart(form, keep));
  const whole = await new Blob(parts).arrayBuffer();
  return hexOf(await crypto.subtle.digest("SHA-256", whole));
};

const hexOf = (bytes: ArrayBuffer): string =>
  Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
