/**
 * Shares announced cooldowns between all processes of a store. If a provider asks one process to slow down, requests with the same
 * credential wait in all processes. A cooldown is a row in the store until it expires, so processes that start later also find it.
 *
 * Each process determines for itself if a path is up, since that takes only a probe connection and no request. The workers of one gateway
 * share a network, so they also publish the paths that they have reached or lost, and siblings probe such a path at once. Waiting requests
 * are released in batches, and each worker releases its share of a batch.
 */
import { createHash } from "node:crypto";
import { Clock, Effect, Layer, Option, Schema, type Scope } from "effect";
import * as CredentialDigest from "../../client/CredentialDigest.ts";
import { dropOldest, Label, Milliseconds } from "../../domain/Limits.ts";
import type { PathWord } from "../../paths/Entry.ts";
import { makeAmong, Paths, type PathsAmong } from "../../paths/Paths.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import * as FactPolling from "../../recorder/shared/FactPolling.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import { type Fact, factsMax, type SharedFacts, type ToldKind } from "../../recorder/shared/SharedFacts.ts";
import { sharedKey } from "../workers/SharedKey.ts";
import { WorkerSockets } from "../workers/WorkerSockets.ts";

const Path = Schema.String.check(Schema.isMaxLength(2_048));

const Refused = Schema.Struct({
  path: Path,
  /** Digest of the credential, equal in all processes of the store. */
  credential: Label,
  model: Schema.UndefinedOr(Label),
  kind: Schema.Literals(["rate_limited", "overloaded"]),
  waitMs: Milliseconds,
});
type Refused = typeof Refused.Type;

/** An observation of a path by a worker. */
const Found = Schema.Struct({
  /** Folder of the gateway's sockets, which identifies the gateway. */
  gateway: Schema.String.check(Schema.isMaxLength(4_096)),
  path: Path,
  word: Schema.Literals(["reached", "down", "returning"]),
});

const isSendable = Schema.is(Refused);
const readRefused = Schema.decodeUnknownOption(Schema.fromJsonString(Refused));
const readFound = Schema.decodeUnknownOption(Schema.fromJsonString(Found));

/**
 * A cooldown is published again only if its end is at least this much later than the published end, in milliseconds. A burst of refusals
 * therefore causes few writes.
 */
export const laterMs = 250;

/** Lifetime of a published observation, in milliseconds, for workers that start later. */
const foundMs = 24 * 3_600_000;

/** Provides the paths of this process, shared through the store if there is one. */
export const layer: Layer.Layer<Paths> = Layer.effect(
  Paths,
  Effect.gen(function* () {
    const workers = Option.getOrUndefined(yield* Effect.serviceOption(WorkerSockets));
    const facts = Option.getOrUndefined(yield* Effect.serviceOption(RunRecorder))?.shared;
    if (facts === undefined) return yield* Paths.make;
    CredentialDigest.setKey(sharedKey(facts.secret, "credential"));
    const put = yield* makePublisher(facts);
    const paths = workers === undefined ? yield* makeAmong({}) : yield* makePathsAmong(workers, facts, put);
    const { own } = paths;
    yield* listenForFacts(facts, "cooldown", ({ ageMs, leftMs, value }) => {
      const word = Option.getOrUndefined(readRefused(value));
      if (word === undefined) return;
      const { credential, kind, model, path } = word;
      const refusal = { kind, waitMs: Math.ceil(leftMs), onlyThis: false };
      paths.recordRefusal({ path, credential, model }, refusal, Math.max(0, ageMs));
    });
    const tell = yield* makeAnnouncer(put);
    return {
      ...own,
      recordRefusal: (scope, refusal) => {
        own.recordRefusal(scope, refusal);
        const { kind, onlyThis, waitMs } = refusal;
        const word = { path: scope.path, credential: scope.credential, model: scope.model, kind, waitMs };
        if (!onlyThis && isSendable(word)) tell(word);
      },
    };
  }),
);

type Put = (kind: ToldKind, key: string, value: string, keepMs: number) => void;

const outageWords = {
  away: "cannot read the cooldowns announced to other gateways",
  back: "the cooldowns announced to other gateways can be read again",
};

/** Returns a function that publishes a fact in the background. */
const makePublisher = Effect.fnUntraced(function* (facts: SharedFacts): Effect.fn.Return<Put> {
  const outage = new OutageLog(outageWords);
  const run = yield* Effect.map(Effect.context<never>(), Effect.runForkWith);
  return (...fact) =>
    void run(
      Effect.catch(Effect.andThen(facts.put(...fact), outage.recordSuccess), ({ message }) =>
        outage.recordFailure(message),
      ),
    );
});

/** Calls `onFact` once for each fact of one kind that another process publishes. */
const listenForFacts = (
  facts: SharedFacts,
  kind: ToldKind,
  onFact: (fact: Fact) => void,
): Effect.Effect<void, never, Scope.Scope> => {
  let known: ReadonlySet<string> = new Set();
  return FactPolling.make(facts, kind, outageWords, (all) => {
    for (const fact of all) if (fact.node !== facts.node && !known.has(fact.stamp)) onFact(fact);
    known = new Set(all.map(({ stamp }) => stamp));
  });
};

const makePathsAmong = Effect.fnUntraced(function* (
  { folder, workers }: WorkerSockets["Service"],
  facts: SharedFacts,
  put: Put,
): Effect.fn.Return<PathsAmong, never, Scope.Scope> {
  const processes = () => workers;
  // Without a folder this process cannot recognise the facts of its siblings.
  if (folder === undefined) return yield* makeAmong({ processCount: processes });
  const publishFound = (path: string, word: PathWord) => {
    const value = { gateway: folder, path, word };
    put("path", digestOf([folder, path]), JSON.stringify(value), foundMs);
  };
  const paths = yield* makeAmong({ processCount: processes, reportFinding: publishFound });
  yield* listenForFacts(facts, "path", ({ value }) => {
    const it = Option.getOrUndefined(readFound(value));
    if (it?.gateway === folder) paths.onFinding(it.path, it.word);
  });
  return paths;
});

const makeAnnouncer = Effect.fnUntraced(function* (put: Put): Effect.fn.Return<(word: Refused) => void> {
  const clock = yield* Clock.Clock;
  const announced = new Map<string, number>();
  return (word) => {
    const key = keyOf(word);
    const until = monotonicMs(clock) + word.waitMs;
    if (until < (announced.get(key) ?? Number.NEGATIVE_INFINITY) + laterMs) return;
    announced.delete(key);
    announced.set(key, until);
    dropOldest(announced, factsMax);
    put("cooldown", key, JSON.stringify(word), word.waitMs);
  };
});

/**
 * Computes the key of a cooldown's row. Overloads have a row per credential, because the wait depends on the number of affected
 * credentials.
 */
const keyOf = ({ credential, kind, model, path }: Refused): string => digestOf([path, credential, model ?? null, kind]);

const digestOf = (words: ReadonlyArray<string | null>): string =>
  createHash("sha256").update(JSON.stringify(words)).digest("hex");
