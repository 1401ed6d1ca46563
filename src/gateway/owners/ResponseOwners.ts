/**
 * Remembers which token made a stored response or conversation, where the operator's credential makes all of them one account's.
 *
 * The workers of a machine tell each other, and gateways over PostgreSQL also ask their store, which remembers for `keptMs`. A gateway
 * over a file forgets with its process. An id that is not known belongs to no token. What is kept of an id is a keyed digest.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { Effect, FiberSet, Option, Schema, type Scope } from "effect";
import { dropOldest, Label } from "../../domain/Limits.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import type { FactsFault, SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { sharedKey } from "../workers/SharedKey.ts";
import { WorkerBus } from "../workers/WorkerBus.ts";
import { notice } from "../workers/WorkerMessage.ts";

/** Maximum ids that are remembered for one token. A token that makes more forgets its own oldest ones, and no other token's. */
export const idsMax = 16_384;

/** Maximum tokens for which ids are remembered. */
const tokensMax = 1_024;

/** How long the store remembers an id, in milliseconds: providers keep a stored response for 30 days. */
export const keptMs = 30 * 24 * 3_600_000;

/** Maximum wait for the store, in milliseconds. */
const storeWaitMs = 500;

/** Characters of a digest that are kept: 132 bits. */
const digestCharacters = 22;

/** Ids of one message to a worker that begins. */
const toldMax = 512;

const Owned = Schema.Struct({ digest: Label, token: Schema.String.check(Schema.isMaxLength(64)) });

const made = notice("responses_made", Schema.Array(Owned).check(Schema.isMaxLength(toldMax)));

/** Ids by the token that made them. */
export class OwnerMemory {
  readonly #tokens = new Map<string, Set<string>>();
  readonly #max: number;

  constructor(max = idsMax) {
    this.#max = max;
  }

  /** A token has made an id. The first maker owns it, because some servers let a client choose the id of its response. */
  keep(token: string, digest: string): void {
    if (this.find(digest) !== undefined) return;
    const ids = this.#tokens.get(token) ?? new Set();
    this.#tokens.set(token, ids);
    dropOldest(this.#tokens, tokensMax);
    ids.add(digest);
    dropOldest(ids, this.#max);
  }

  /** The token that made an id. */
  find(digest: string): string | undefined {
    for (const [token, ids] of this.#tokens) if (ids.has(digest)) return token;
    return undefined;
  }

  /** All of them, the oldest of each token first. */
  all(): ReadonlyArray<typeof Owned.Type> {
    return [...this.#tokens].flatMap(([token, ids]) => [...ids].map((digest) => ({ digest, token })));
  }
}

/** What the gateway asks of it. A request without a token belongs to the one client that a gateway without tokens has. */
export interface ResponseOwners {
  /** A response or conversation of this id has come for a token. */
  readonly keep: (token: string | undefined, id: string) => void;
  /** Whose it is. */
  readonly ownerOf: (id: string, token: string | undefined) => Effect.Effect<"own" | "other" | "unknown">;
}

/** Makes the memory of a gateway. */
export const make: Effect.Effect<ResponseOwners, never, Scope.Scope> = Effect.gen(function* () {
  const bus = Option.getOrUndefined(yield* Effect.serviceOption(WorkerBus));
  const facts = Option.getOrUndefined(yield* Effect.serviceOption(RunRecorder))?.shared;
  const secret = facts?.secret ?? bus?.secret;
  const key: KeyObject = secret === undefined ? createSecretKey(randomBytes(32)) : sharedKey(secret, "response");
  const digestOf = (id: string) => createHmac("sha256", key).update(id).digest("base64url").slice(0, digestCharacters);
  const memory = new OwnerMemory();
  const store = facts && storeOf(facts);
  const run = yield* Effect.flatMap(FiberSet.make<void>(), (fibers) => FiberSet.runtime(fibers)<never>());
  if (bus !== undefined) {
    yield* bus.on(made, (told) => {
      for (const { digest, token } of told) memory.keep(token, digest);
    });
    yield* bus.onToBeTold((worker) => {
      const all = memory.all();
      for (let at = 0; at < all.length; at += toldMax) bus.tell(made, all.slice(at, at + toldMax), worker);
    });
  }
  return {
    keep: (tenant, id) => {
      const [token, digest] = [tenant ?? "", digestOf(id)];
      memory.keep(token, digest);
      bus?.tell(made, [{ digest, token }]);
      if (store !== undefined) run(store.keep(digest, token));
    },
    ownerOf: (id, tenant) => {
      const digest = digestOf(id);
      // The store knows which gateway was first.
      const stored = store?.find(digest) ?? Effect.undefined;
      return Effect.map(stored, (first) => {
        const token = first ?? memory.find(digest);
        return token === undefined ? "unknown" : token === (tenant ?? "") ? "own" : "other";
      });
    },
  };
});

const tokenIn = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.String));

/** A store that is away knows no owner: that is logged once. */
const storeOf = (facts: SharedFacts) => {
  const outage = new OutageLog({
    away: "the tokens that made stored responses at other gateways are not known now",
    back: "the tokens that made stored responses at other gateways are known again",
  });
  const tried = <A>(asked: Effect.Effect<A, FactsFault>) => outage.tried(asked, storeWaitMs);
  return {
    keep: (digest: string, token: string) =>
      Effect.asVoid(
        tried(
          Effect.flatMap(facts.find("owner", digest), (first) =>
            first === undefined ? facts.put("owner", digest, JSON.stringify(token), keptMs) : Effect.void,
          ),
        ),
      ),
    find: (digest: string) =>
      Effect.map(tried(facts.find("owner", digest)), (fact) =>
        fact === undefined ? undefined : Option.getOrUndefined(tokenIn(fact.value)),
      ),
  };
};
