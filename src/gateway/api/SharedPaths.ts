/**
 * Lets the workers of `serve --workers`, and all processes of a store on a server, keep the waits that providers announce together: a
 * credential that one of them was told to slow down with waits at all of them.
 *
 * Workers tell each other, and one that takes the place of another one what holds. In the store a wait is a row until it is over, and its processes hear that there is one: a process that has
 * just started, or has heard nothing for a while, finds those that hold.
 *
 * Whether a path is up each worker finds out by itself, since a probe is a connection and no request; but it is told by the one that has
 * found out first, and asks at once. Of the requests that are let go together each worker has its part.
 */
import { createHash } from "node:crypto";
import { Clock, Effect, Layer, Option, Queue, Schema, type Scope } from "effect";
import * as CredentialDigest from "../../client/CredentialDigest.ts";
import { dropOldest, Label, Milliseconds } from "../../domain/Limits.ts";
import { cooldownsMax } from "../../paths/Cooldowns.ts";
import { makeAmong, Paths, type PathsAmong } from "../../paths/Paths.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import { factsMax, type SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { sharedKey } from "../workers/SharedKey.ts";
import { WorkerBus } from "../workers/WorkerBus.ts";
import { notice } from "../workers/WorkerMessage.ts";

const Path = Schema.String.check(Schema.isMaxLength(2_048));

const Refused = Schema.Struct({
  path: Path,
  /** A digest that is the same in all workers. */
  credential: Label,
  model: Schema.UndefinedOr(Label),
  kind: Schema.Literals(["rate_limited", "overloaded"]),
  waitMs: Milliseconds,
  /** Milliseconds since it was announced, of one that a worker is told which comes later. */
  agoMs: Schema.optionalKey(Milliseconds),
});

/** A provider has announced a wait. */
const refused = notice("path_refused", Refused);

/** What a worker has found out of a path. */
const found = notice(
  "path_found",
  Schema.Struct({ path: Path, word: Schema.Literals(["reached", "down", "returning"]) }),
);

const isSendable = Schema.is(Refused);

type Refused = typeof Refused.Type;

const readRefused = Schema.decodeUnknownOption(Schema.fromJsonString(Refused));

/** A wait that ends so much later than the one that was told, in milliseconds, is told too: not each refusal of a whole storm. */
export const laterMs = 250;

/** Puts what all processes hear in the place of what this one does, where there are several. */
export const layer: Layer.Layer<Paths> = Layer.effect(
  Paths,
  Effect.gen(function* () {
    const bus = Option.getOrUndefined(yield* Effect.serviceOption(WorkerBus));
    const facts = Option.getOrUndefined(yield* Effect.serviceOption(RunRecorder))?.shared;
    if (bus === undefined && facts === undefined) return yield* Paths.make;
    const paths = bus === undefined ? yield* makeAmong({}) : yield* among(bus);
    const { own } = paths;
    const heard = ({ agoMs, credential, kind, model, path, waitMs }: Refused) =>
      paths.refused({ path, credential, model }, { kind, waitMs, onlyThis: false }, agoMs);
    const told = bus === undefined ? undefined : yield* toldTo(bus, paths, heard);
    const stored = facts === undefined ? undefined : yield* storedIn(facts, heard);
    return {
      ...own,
      refused: (scope, refusal) => {
        own.refused(scope, refusal);
        const { kind, onlyThis, waitMs } = refusal;
        const word = { path: scope.path, credential: scope.credential, model: scope.model, kind, waitMs };
        if (onlyThis || !isSendable(word)) return;
        told?.(word);
        stored?.(word);
      },
    };
  }),
);

/** The paths of one of several workers. Each asks a path itself, and is told when there is something to ask. */
const among = Effect.fnUntraced(function* (
  bus: WorkerBus["Service"],
): Effect.fn.Return<PathsAmong, never, Scope.Scope> {
  const paths = yield* makeAmong({
    found: (path, word) => void bus.tell(found, { path, word }),
    processes: () => bus.others().length + 1,
  });
  yield* bus.on(found, ({ path, word }) => paths.heard(path, word));
  yield* bus.onToBeTold((worker) => {
    for (const [path, word] of paths.words()) bus.tell(found, { path, word }, worker);
  });
  return paths;
});

/** A wait, when it was announced and when it is over. */
interface Known {
  readonly word: Refused;
  readonly at: number;
  readonly until: number;
}

/** Tells the siblings of waits, and hears of theirs. Gives how they are told of one. */
const toldTo = Effect.fnUntraced(function* (
  bus: WorkerBus["Service"],
  paths: PathsAmong,
  heard: (word: Refused) => void,
): Effect.fn.Return<(word: Refused) => void, never, Scope.Scope> {
  const clock = yield* Clock.Clock;
  const known = new Map<string, Known>();
  const keep = ({ agoMs = 0, ...word }: Refused): void => {
    const key = keyOf(word);
    const now = monotonicMs(clock);
    const until = Math.max(now + word.waitMs, known.get(key)?.until ?? 0);
    known.delete(key);
    known.set(key, { word, at: now - agoMs, until });
    dropOldest(known, cooldownsMax);
  };
  /** A second sibling says it, too: a request that went meanwhile may have found that it is over. */
  const isKnown = (word: Refused): boolean => {
    const it = word.agoMs === undefined ? undefined : known.get(keyOf(word));
    return it !== undefined && it.until + laterMs > monotonicMs(clock) + word.waitMs;
  };
  yield* bus.on(refused, (word) => {
    if (isKnown(word)) return;
    heard(word);
    keep(word);
  });
  yield* bus.onToBeTold((worker) => {
    const now = monotonicMs(clock);
    for (const { at, until, word } of known.values()) {
      // A run that went meanwhile may have found that it is over.
      const waitMs = Math.min(until - now, paths.leftOf(word, word.kind));
      if (waitMs > 0) bus.tell(refused, { ...word, waitMs, agoMs: Math.max(0, now - at) }, worker);
    }
  });
  return (word) => {
    keep(word);
    bus.tell(refused, word);
  };
});

/** Puts waits into the store, and hears of those that other processes have put there. Gives how a wait is put. */
const storedIn = Effect.fnUntraced(function* (
  facts: SharedFacts,
  heard: (word: Refused) => void,
): Effect.fn.Return<(word: Refused) => void, never, Scope.Scope> {
  CredentialDigest.keyedBy(sharedKey(facts.secret, "credential"));
  const clock = yield* Clock.Clock;
  const outage = new OutageLog({
    away: "what providers have announced to other gateways is not known now",
    back: "what providers have announced to other gateways is known again",
  });
  const asking = <E extends { readonly message: string }>(asked: Effect.Effect<void, E>) =>
    Effect.catch(Effect.andThen(asked, outage.worked), ({ message }) => outage.failed(message));
  let known: ReadonlySet<string> = new Set();
  const look = Effect.map(facts.all("cooldown"), (all) => {
    for (const { ageMs, leftMs, node, stamp, value } of all) {
      const word = node === facts.node || known.has(stamp) ? undefined : Option.getOrUndefined(readRefused(value));
      if (word !== undefined) heard({ ...word, waitMs: Math.ceil(leftMs), agoMs: Math.max(0, ageMs) });
    }
    known = new Set(all.map(({ stamp }) => stamp));
  });
  // What comes while it looks is looked at with the next look.
  const bells = yield* Queue.sliding<void>(1);
  const rung = () => void Queue.offerUnsafe(bells, undefined);
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      facts.on((word) => {
        if (word._tag === "Look" || (word._tag === "Put" && word.kind === "cooldown")) rung();
      }),
    ),
    (ends) => Effect.sync(ends),
  );
  rung();
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(bells), asking(look))));
  const run = yield* Effect.map(Effect.context<never>(), Effect.runForkWith);
  const told = new Map<string, number>();
  return (word) => {
    const key = keyOf(word);
    const until = monotonicMs(clock) + word.waitMs;
    if (until < (told.get(key) ?? Number.NEGATIVE_INFINITY) + laterMs) return;
    told.delete(key);
    told.set(key, until);
    dropOldest(told, factsMax);
    run(asking(facts.put("cooldown", key, JSON.stringify(word), word.waitMs)));
  };
});

/** Names the scope of a wait. An overload stands for itself at each credential that has heard it, because two of them hold all. */
const keyOf = ({ credential, kind, model, path }: Refused): string =>
  createHash("sha256")
    .update(JSON.stringify([path, credential, model ?? null, kind]))
    .digest("hex");
