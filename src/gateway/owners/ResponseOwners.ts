/**
 * Remembers which token created each stored response or conversation. For the provider they all belong to one account, that of the
 * operator's credential.
 *
 * The processes of a store share this memory for `keptMs`. Without a store, it ends with the process. An id that is not remembered belongs
 * to no token. Ids are kept as keyed digests.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { Effect, FiberSet, Option, Schema, type Scope } from "effect";
import { dropOldest } from "../../domain/Limits.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import type { FactsFault, SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { sharedKey } from "../workers/SharedKey.ts";

/** Maximum number of remembered ids per token. If a token creates more, its own oldest ids are evicted. */
export const idsMax = 16_384;

const tokensMax = 1_024;

/** Time for which the store remembers an id, in milliseconds. Providers keep a stored response for 30 days. */
export const keptMs = 30 * 24 * 3_600_000;

const storeWaitMs = 500;

/** Number of characters of a digest that are kept: 132 bits. */
const digestCharacters = 22;

/** Ids in the memory of this process, by the token that created them. */
export class OwnerMemory {
  readonly #tokens = new Map<string, Set<string>>();
  readonly #max: number;

  constructor(max = idsMax) {
    this.#max = max;
  }

  /**
   * Records that a token created an id. If the id already has an owner, the owner keeps it, because some servers let a client choose the id
   * of its response.
   */
  keep(token: string, digest: string): void {
    if (this.find(digest) !== undefined) return;
    const ids = this.#tokens.get(token) ?? new Set();
    this.#tokens.set(token, ids);
    dropOldest(this.#tokens, tokensMax);
    ids.add(digest);
    dropOldest(ids, this.#max);
  }

  find(digest: string): string | undefined {
    for (const [token, ids] of this.#tokens) if (ids.has(digest)) return token;
    return undefined;
  }
}

/** Owners of stored objects. A gateway without tokens has a single client, whose requests have no token. */
export interface ResponseOwners {
  /** Records that a token received a response or conversation with this id. */
  readonly keep: (token: string | undefined, id: string) => void;
  /** Determines whether an id belongs to this token, to another token, or to no known token. */
  readonly ownerOf: (id: string, token: string | undefined) => Effect.Effect<"own" | "other" | "unknown">;
}

/** Creates a gateway's memory of owners. If there is a store, its processes share the memory. */
export const make: Effect.Effect<ResponseOwners, never, Scope.Scope> = Effect.gen(function* () {
  const facts = Option.getOrUndefined(yield* Effect.serviceOption(RunRecorder))?.shared;
  const key: KeyObject = facts === undefined ? createSecretKey(randomBytes(32)) : sharedKey(facts.secret, "response");
  const digestOf = (id: string) => createHmac("sha256", key).update(id).digest("base64url").slice(0, digestCharacters);
  const memory = new OwnerMemory();
  const store = facts && storeOf(facts);
  const run = yield* Effect.flatMap(FiberSet.make<void>(), (fibers) => FiberSet.runtime(fibers)<never>());
  return {
    keep: (tenant, id) => {
      const [token, digest] = [tenant ?? "", digestOf(id)];
      memory.keep(token, digest);
      if (store !== undefined) run(store.keep(digest, token));
    },
    ownerOf: (id, tenant) => {
      const digest = digestOf(id);
      // Only the store knows the ids that were created at other gateways.
      const stored = store?.find(digest) ?? Effect.undefined;
      return Effect.map(stored, (first) => {
        const token = first ?? memory.find(digest);
        return token === undefined ? "unknown" : token === (tenant ?? "") ? "own" : "other";
      });
    },
  };
});

const tokenIn = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.String));

/** Accesses the owners in the store. While the store is unavailable it finds no owner, and the outage is logged once. */
const storeOf = (facts: SharedFacts) => {
  const outage = new OutageLog({
    away: "cannot read which tokens own the stored responses of other gateways",
    back: "the owners of other gateways' stored responses can be read again",
  });
  const tryStore = <A>(asked: Effect.Effect<A, FactsFault>) => outage.tryWithin(asked, storeWaitMs);
  return {
    keep: (digest: string, token: string) =>
      Effect.asVoid(
        tryStore(
          Effect.flatMap(facts.find("owner", digest), (first) =>
            first === undefined ? facts.put("owner", digest, JSON.stringify(token), keptMs) : Effect.void,
          ),
        ),
      ),
    find: (digest: string) =>
      Effect.map(tryStore(facts.find("owner", digest)), (fact) =>
        fact === undefined ? undefined : Option.getOrUndefined(tokenIn(fact.value)),
      ),
  };
};
