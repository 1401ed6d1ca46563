/**
 * Remembers requests that have just failed, so that a client's own retries do not multiply what a run may spend, and what the
 * client of a run that was given up was told.
 *
 * Clients retry too (the SDKs twice by default), with the same JSON: of several runs only the first one has the whole budget. A
 * repeat is a new run with what is left. A request that says it repeats a run which was given up, or comes at its heels, is
 * told the same again and nothing is sent. Identical requests that run side by side are separate.
 *
 * A request is known by a digest of its tenant, its address, its credentials, its wishes for a route and its canonical body, so that
 * no key and no prompt is kept.
 * The digest is made once a request, and only where something is remembered or is to be.
 */
import { Effect, Fiber, type Scope } from "effect";
import { dropOldest } from "../../domain/Limits.ts";
import * as Runs from "../../domain/RunFacts.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { type FormDigest, partsOf } from "./form/RequestForm.ts";
import { headerOf, type RelayHeaders, type RelayRequest } from "./RelayTransport.ts";

/** How long a failed request is remembered, in milliseconds: longer than any SDK waits between its retries. */
export const repeatMs = 60_000;

/** Most failed requests that are remembered; the oldest is forgotten. */
export const repeatsMax = 1024;

/** An identical request that comes within so long, in milliseconds, repeats a run that was given up without saying so. */
export const unmarkedRepeatMs = 5_000;

/**
 * Most requests without such a word that one given-up run answers: as many as the most eager agent sends by itself. A program
 * that samples, and asks the same many times on purpose, loses no more of them to one fault.
 */
export const unmarkedRepeatsMax = 6;

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
  /**
   * The provider's own words, where it refused the run. They may echo a request, so they stay in the memory of this machine's
   * processes and never reach a store.
   */
  readonly said?: ProviderWords;
}

/** A provider's refusal of a request, without credentials. */
export interface ProviderWords {
  /** One bounded line. */
  readonly message: string | undefined;
  readonly code: string | undefined;
  /** The refusal itself, where it was a response and no event of a stream. */
  readonly response: ToldRefusal | undefined;
  /** The title of a web page that came in place of a response. */
  readonly title?: string | undefined;
}

/** A provider's refusal, as it can be given again. */
export interface ToldRefusal {
  readonly status: number;
  readonly headers: RelayHeaders;
  readonly body: string;
}

/** Maximum length of a refusal's body that is remembered, in UTF-16 code units. */
export const toldBodyCharactersMax = 4_096;

/** The part of an answer that is remembered for a repeat. Long bodies are not kept. */
const memorable = (told: ToldClient): ToldClient =>
  (told.said?.response?.body.length ?? 0) > toldBodyCharactersMax && told.said !== undefined
    ? { ...told, said: { ...told.said, response: undefined } }
    : told;

/** What a request is told from memory. */
export interface Recalled {
  readonly told: ToldClient;
  /** Milliseconds since the run was given up. */
  readonly ageMs: number;
}

/** What becomes of the memory of a request, for another process that remembers the same. */
export type RepeatChange =
  | { readonly _tag: "Failed"; readonly key: string; readonly failed: FailedRequest }
  | {
      readonly _tag: "Told";
      readonly key: string;
      readonly told: ToldClient;
      readonly idempotencyKey: string | undefined;
    }
  /** A request that did not say that it repeats one was told from memory. */
  | { readonly _tag: "Recalled"; readonly key: string }
  /** A repeat has begun, with what the failed run left. */
  | { readonly _tag: "Taken"; readonly key: string }
  /** What a client was told holds no more. */
  | { readonly _tag: "Untold"; readonly key: string };

/** What a process remembers of a request, for one that begins to remember the same. */
export interface RepeatMemory {
  /** What has failed, or what its client was told. */
  readonly change: RepeatChange;
  /** Milliseconds since then. */
  readonly ageMs: number;
  /** Requests that were told it without saying that they repeat one. */
  readonly unmarked: number;
}

/**
 * A memory that several processes share, asked where this one remembers nothing of a request. It is never waited for by a first
 * attempt, and whatever it cannot say is as if it were not there.
 */
export interface RepeatsElsewhere {
  /**
   * Finds and forgets the failed run that a request repeats, as its run begins, or later.
   *
   * @param begunMs since the run of the request began
   * @param says whether the request says that it is a repeat
   */
  readonly take: (key: string, begunMs: number, says: boolean) => Effect.Effect<FailedRequest | undefined>;
  /** What the client of a request was told. */
  readonly recall: (key: string) => Effect.Effect<Recalled | undefined>;
  /** Remembers a change of this process. */
  readonly remember: (change: RepeatChange) => Effect.Effect<void>;
}

interface Told {
  readonly told: ToldClient;
  readonly idempotencyKey: string | undefined;
  /** Requests that were told it without saying that they repeat one. */
  unmarked: number;
}

/** Remembers failed requests. One for all requests. */
export class RelayRepeats {
  readonly #failed = new Recent<FailedRequest>();
  readonly #told = new Recent<Told>();
  readonly #keys = new WeakMap<RelayRequest, string | Promise<string>>();
  readonly #digest: FormDigest;
  readonly #changed: (change: RepeatChange) => void;
  readonly #elsewhere: RepeatsElsewhere | undefined;

  /**
   * @param digest SHA-256 or stronger. Default that of Web Crypto, which every runtime has
   * @param changed told of each change, in the step in which it is made, so that another process can remember it too (`heard`)
   */
  constructor(
    digest: FormDigest = webDigest,
    changed: (change: RepeatChange) => void = () => undefined,
    elsewhere?: RepeatsElsewhere,
  ) {
    this.#digest = digest;
    this.#changed = changed;
    this.#elsewhere = elsewhere;
  }

  /**
   * Takes over what another process remembers or has forgotten. Its digests are made as those of this one.
   *
   * @param now monotonic milliseconds
   */
  heard(change: RepeatChange, now: number): void {
    const { key } = change;
    if (change._tag === "Failed") this.#failed.set(key, change.failed, now);
    else if (change._tag === "Taken") this.#failed.take(key, now);
    else if (change._tag === "Untold") this.#told.take(key, now);
    else if (change._tag === "Told") this.#told.set(key, { ...change, unmarked: 0 }, now);
    else {
      const found = this.#told.get(key, now);
      if (found !== undefined) found.value.unmarked += 1;
    }
  }

  /** All that is remembered, for a process that begins to remember the same (`learned`). */
  memories(now: number): ReadonlyArray<RepeatMemory> {
    const failed = this.#failed.all(now).map(([key, { ageMs, value }]): RepeatMemory => {
      return { change: { _tag: "Failed", key, failed: value }, ageMs, unmarked: 0 };
    });
    const told = this.#told.all(now).map(([key, { ageMs, value }]): RepeatMemory => {
      const { idempotencyKey, told, unmarked } = value;
      return { change: { _tag: "Told", key, told, idempotencyKey }, ageMs, unmarked };
    });
    return [...failed, ...told];
  }

  /**
   * Takes over what another process remembered before this one began. What this one has heard itself is newer: that a request was
   * taken too, which the other one had not heard when it said what it remembers.
   */
  learned(memories: ReadonlyArray<RepeatMemory>, now: number): void {
    const failed = memories.flatMap(({ ageMs, change }) =>
      change._tag === "Failed" ? [[change.key, { value: change.failed, at: now - ageMs }] as const] : [],
    );
    const told = memories.flatMap(({ ageMs, change, unmarked }) =>
      change._tag === "Told" ? [[change.key, { value: { ...change, unmarked }, at: now - ageMs }] as const] : [],
    );
    this.#failed.add(failed, now);
    this.#told.add(told, now);
  }

  #change(change: RepeatChange, now: number): void {
    this.heard(change, now);
    this.#changed(change);
  }

  #untold(key: string, now: number): void {
    if (this.#told.get(key, now) !== undefined) this.#change({ _tag: "Untold", key }, now);
  }

  /**
   * Finds the failed request that a request repeats, and forgets it: of several repeats only the first one counts. What its
   * client was told is forgotten too, because the run that begins now may end otherwise.
   */
  take(request: RelayRequest): Effect.Effect<FailedRequest | undefined> {
    const elsewhere = this.#elsewhere;
    const taken = this.#takeHere(request);
    if (elsewhere === undefined) return taken;
    // Of several repeats only the first counts, wherever they come.
    return Effect.tap(taken, (found) =>
      found === undefined ? Effect.void : this.#forgetElsewhere(elsewhere, request),
    );
  }

  /**
   * Finds the failed run of another process that a request repeats. To be made when the run of the request begins: a request that says that
   * it is a repeat is looked up beside its first attempt, any other one only once that has broken, so that a run that does not break
   * costs nothing.
   *
   * @returns what it comes to, for the run's first decision; undefined where there is no other process
   */
  elsewhere(
    request: RelayRequest,
  ): Effect.Effect<Effect.Effect<FailedRequest | undefined> | undefined, never, Scope.Scope> {
    const elsewhere = this.#elsewhere;
    if (elsewhere === undefined) return Effect.undefined;
    const says = saysRetry(request);
    return Effect.gen({ self: this }, function* () {
      const begunAt = yield* now;
      const asked = Effect.flatMap(
        this.#withKey(request, (key, at) => elsewhere.take(key, at - begunAt, says)),
        (taken) => taken,
      );
      if (says) return Fiber.join(yield* Effect.forkScoped(asked));
      return yield* Effect.cached(asked);
    });
  }

  #forgetElsewhere(elsewhere: RepeatsElsewhere, request: RelayRequest): Effect.Effect<void> {
    const forgotten = this.#withKey(request, (key) => elsewhere.remember({ _tag: "Taken", key }));
    return Effect.asVoid(Effect.forkDetach(Effect.flatten(forgotten)));
  }

  #takeHere(request: RelayRequest): Effect.Effect<FailedRequest | undefined> {
    return this.#known(request, (key, now) => {
      this.#untold(key, now);
      const found = this.#failed.get(key, now);
      if (found === undefined || (found.value.cancelled && !saysRetry(request))) return undefined;
      this.#change({ _tag: "Taken", key }, now);
      return found.value;
    });
  }

  /** Remembers a request whose run has failed. */
  put(request: RelayRequest, failed: FailedRequest): Effect.Effect<void> {
    return this.#remember(request, (key) => ({ _tag: "Failed", key, failed }));
  }

  /**
   * Remembers what a failed run has spent, beside what the run had that it repeats.
   *
   * @param failed with the retries of this run alone
   */
  spent(request: RelayRequest, failed: FailedRequest, repeated: FailedRequest | undefined): Effect.Effect<void> {
    return this.put(request, { ...failed, spent: (repeated?.spent ?? 0) + Math.max(0, failed.spent) });
  }

  /** Remembers what the client of a request was told when its run was given up. */
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
        this.#change(change, at);
        return this.#elsewhere?.remember(change) ?? Effect.void;
      }),
    );
  }

  /**
   * What the client of a request was told a moment ago, if the request repeats one whose run was given up: it says so, has the
   * same idempotency key, or comes within `unmarkedRepeatMs` as one of the first `unmarkedRepeatsMax`.
   */
  recall(request: RelayRequest): Effect.Effect<Recalled | undefined> {
    const elsewhere = this.#elsewhere;
    const here = this.#recallHere(request);
    // Another process is asked by those only that say that they are repeats: nobody else is to wait for it.
    if (elsewhere === undefined || !saysRetry(request)) return here;
    return Effect.flatMap(here, (found) =>
      found === undefined
        ? Effect.flatten(this.#withKey(request, (key) => elsewhere.recall(key)))
        : Effect.succeed(found),
    );
  }

  #recallHere(request: RelayRequest): Effect.Effect<Recalled | undefined> {
    return this.#known(request, (key, now) => {
      const found = this.#told.get(key, now);
      if (found === undefined) return undefined;
      const { ageMs, value } = found;
      const given = idempotencyKeyOf(request);
      const says = saysRetry(request) || (given !== undefined && given === value.idempotencyKey);
      if (!says) {
        if (ageMs > unmarkedRepeatMs || value.unmarked >= unmarkedRepeatsMax) return undefined;
        this.#change({ _tag: "Recalled", key }, now);
      }
      return { told: value.told, ageMs };
    });
  }

  /** Whether a request cannot repeat any: nothing is remembered here, and no other process is asked. */
  isNew(request: RelayRequest): boolean {
    return this.isEmpty && (this.#elsewhere === undefined || !saysRetry(request));
  }

  /** A run of a request has completed: what the client of another run of it was told holds no more. */
  completed(request: RelayRequest): Effect.Effect<void> {
    return this.#told.size === 0
      ? Effect.void
      : Effect.asVoid(this.#known(request, (key, now) => this.#untold(key, now)));
  }

  /** Looks a request up, where anything is remembered at all. */
  #known<A>(request: RelayRequest, find: (key: string, now: number) => A | undefined): Effect.Effect<A | undefined> {
    return Effect.suspend(() => {
      if (this.isEmpty) return Effect.undefined;
      return Effect.flatMap(now, (at) => {
        this.#failed.forget(at);
        this.#told.forget(at);
        return this.isEmpty ? Effect.undefined : this.#withKey(request, find);
      });
    });
  }

  #withKey<A>(request: RelayRequest, use: (key: string, now: number) => A): Effect.Effect<A> {
    return Effect.suspend(() => {
      const leftOut = lowersItsLimit(request) ? mannersOfLowered : manners;
      const form = { words: wordsOf(request), body: request.body, leftOut };
      const key = this.#keys.get(request) ?? this.#digest(form);
      this.#keys.set(request, key);
      // The time is that of the step in which the digest is there.
      if (typeof key === "string") return Effect.map(now, (at) => use(key, at));
      return Effect.flatMap(
        Effect.promise(() => key),
        (found) => Effect.map(now, (at) => use(found, at)),
      );
    });
  }

  /** Nothing is remembered, as nearly always: then no request repeats one. */
  get isEmpty(): boolean {
    return this.#failed.size === 0 && this.#told.size === 0;
  }
}

/** A value, and when it was set. */
interface Dated<A> {
  readonly value: A;
  readonly at: number;
}

/** Values by key, the oldest first, for `repeatMs` and at most `repeatsMax`. Times are monotonic milliseconds. */
class Recent<A> {
  readonly #values = new Map<string, Dated<A>>();
  /** When keys were taken: what another process remembers of them is from before. */
  readonly #taken = new Map<string, number>();

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

  /** Sets what is not there yet and was not taken, each at its own time: one that is older than others is forgotten before them. */
  add(values: ReadonlyArray<readonly [string, Dated<A>]>, now: number): void {
    const late = now - repeatMs;
    const added = values.filter(
      ([key]) => !this.#values.has(key) && (this.#taken.get(key) ?? Number.NEGATIVE_INFINITY) < late,
    );
    const all = [...this.#values, ...added].sort(([, a], [, b]) => a.at - b.at);
    this.#values.clear();
    for (const [key, { at, value }] of all) if (at >= late) this.set(key, value, at);
  }

  all(now: number): ReadonlyArray<readonly [string, { readonly value: A; readonly ageMs: number }]> {
    this.forget(now);
    return [...this.#values].map(([key, { at, value }]) => [key, { value, ageMs: Math.max(0, now - at) }]);
  }

  /** Deletes a value, and remembers that it is gone. */
  take(key: string, now: number): void {
    this.#values.delete(key);
    this.#taken.delete(key);
    this.#taken.set(key, now);
    dropOldest(this.#taken, repeatsMax);
  }

  /** Drops what is too old, the oldest first. */
  forget(now: number): void {
    for (const [key, { at }] of this.#values) {
      if (now - at <= repeatMs) return;
      this.#values.delete(key);
    }
  }
}

/** What is left of a budget. */
export const remainingBudget = (
  budget: Partial<Runs.Budget>,
  repeated: FailedRequest | undefined,
): Partial<Runs.Budget> => {
  return repeated === undefined ? budget : Runs.lessRetries(budget, repeated.spent);
};

const now = Effect.clockWith((clock) => Effect.sync(() => monotonicMs(clock)));

/** Whether a request says that its client repeats it: the OpenAI and Anthropic SDKs count their own retries in a header. */
export const saysRetry = (request: Pick<RelayRequest, "headers">): boolean =>
  Number(headerOf(request.headers, "x-stainless-retry-count") ?? 0) > 0;

/** Longest idempotency key that is remembered, in UTF-16 code units: those of SDKs have about 60. */
const idempotencyKeyMax = 256;

/** The idempotency key of a request; undefined where it has none that is remembered. */
export const idempotencyKeyOf = (request: Pick<RelayRequest, "headers">): string | undefined => {
  const key = headerOf(request.headers, "idempotency-key");
  return key === undefined || key === "" || key.length > idempotencyKeyMax ? undefined : key;
};

/** Headers that make another request of the same body: whose it is, and by which routes it may go. */
const choosing = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "x-recovery-route", "x-recovery-move"];

/** Members of a body that say how the response comes and not what is asked. */
const manners: ReadonlySet<string> = new Set(["stream", "stream_options"]);

const mannersOfLowered: ReadonlySet<string> = new Set([...manners, "max_tokens"]);

/**
 * Recognises a client that lowers `max_tokens` in a repeat: Anthropic permits fewer tokens without a stream, so claude-code does so in a repeat that
 * does not stream. For other clients another limit is another request: they raise it because a response was cut.
 */
const lowersItsLimit = (request: Pick<RelayRequest, "headers">): boolean =>
  /^claude-cli\//.test(headerOf(request.headers, "user-agent") ?? "") || headerOf(request.headers, "x-app") === "cli";

const wordsOf = ({ headers, method, tenant, url }: RelayRequest): ReadonlyArray<unknown> => [
  ...[tenant ?? null, method, url],
  ...choosing.map((name) => headerOf(headers, name) ?? ""),
];

const webDigest: FormDigest = async (form) => {
  const whole = await new Blob(partsOf(form)).arrayBuffer();
  return hexOf(await crypto.subtle.digest("SHA-256", whole));
};

const hexOf = (bytes: ArrayBuffer): string =>
  Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
