/**
 * Says and hears the words of a store's processes, and looks for what was missed.
 *
 * On a server it connects processes of many machines. A file's processes are those of one machine: they tell each other of cancels alone,
 * and each of them looks for those while it drives a run. What bounds their retries they have in common as those of a server do.
 *
 * W1 A word is a bell: what it is about stands in a row before it is said, so that a word that is lost costs time and nothing else.
 * W2 A connection that listens and breaks is opened again, and then everything is looked at once.
 * W3 That words come is believed only when a word of its own has come back on that connection: a pooler takes LISTEN and drops
 *    what is said. Without it everything is looked at every `lookMs`, as it is with it.
 */
import { createHash } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Queue from "effect/Queue";
import * as Redacted from "effect/Redacted";
import type * as Scope from "effect/Scope";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { RecorderError } from "../RecorderError.ts";
import { Listeners } from "../shared/Listeners.ts";
import { OutageLog } from "../shared/OutageLog.ts";
import type { SharedCancels } from "../shared/SharedCancels.ts";
import { lookMs, type SharedFacts, type SharedPacing, toldKinds, type Word } from "../shared/SharedFacts.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFacts from "./SqlFacts.ts";
import type { SqlLease } from "./SqlLease.ts";

/** What a connection that listens tells. */
export interface Ear {
  readonly heard: (payload: string) => void;
  /** Done once the connection listens: from then on every word comes. */
  readonly ready: Effect.Effect<void>;
}

/** Listens to a channel until its connection breaks. */
export type Listen = (channel: string, ear: Ear) => Effect.Effect<never, SqlError | RecorderError>;

/** Says that a question of a run was answered, as part of the transaction that it is called in. */
export type Answered = (runId: string) => Effect.Effect<void, SqlError>;

/** What the processes of a store know together, and how its recorder says that a question is answered. */
export interface Words {
  /** Left out for a file. */
  readonly facts?: SharedFacts;
  readonly cancels: SharedCancels;
  readonly pacing: SharedPacing;
  readonly answered?: Answered;
}

/** First pause before a connection that listens is opened again, in milliseconds; each is twice as long as the one before. */
const pauseFirstMs = 100;

/** Longest such pause, in milliseconds. */
const pauseMaxMs = 5_000;

/** From one look for cancels to the next over a file, in milliseconds: nothing tells of them there. */
const fileLookMs = 500;

/** From one time that what is over is forgotten to the next, in milliseconds. */
const forgetMs = 60_000;

/** Characters of a channel's name that tell one store from another of the same prefix: PostgreSQL's channels are those of a whole database. */
const channelDigits = 12;

/**
 * Makes them; undefined where the store says nothing of a secret.
 *
 * @param ear hears what is said; left out, it is looked for. Its second connection is that of the heartbeat
 */
export const make = Effect.fnUntraced(function* (
  database: SqlDatabase,
  lease: SqlLease,
  now: () => number,
  ear?: { readonly listen: Listen; readonly beating: SqlDatabase },
): Effect.fn.Return<Words | undefined, never, Scope.Scope> {
  const { dialect, meta, prefix, sql } = database.tables;
  if (dialect.name !== "postgres") return yield* ofFile(database, lease, now);
  const row = sql<{ readonly value: string }>`SELECT value FROM ${meta} WHERE name = 'shared_key'`;
  // A store that cannot be written to now was made by a newer program: this one only reads it.
  const [found] = yield* Effect.orElseSucceed(database.once(row), () => []);
  if (found === undefined) return undefined;
  const store = createHash("sha256").update(`${found.value} channel`).digest("hex").slice(0, channelDigits);
  const channel = `${prefix}words_${store}`;
  const listeners = new Listeners();
  const hearing = { now: false };
  const says = (told: Fragment, word: string) =>
    sql`WITH told AS (${told}) SELECT pg_notify(${channel}, ${word}) FROM told`;
  const options: SqlFacts.FactsOptions = {
    ...{ database, now, listeners, says },
    node: globalThis.crypto.randomUUID(),
    secret: Redacted.make(found.value),
    hears: () => hearing.now,
  };
  const look = Effect.sync(() => listeners.say({ _tag: "Look" }));
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(lookMs), look)));
  const outage = new OutageLog({ away: "what is over is not forgotten", back: "what is over is forgotten again" });
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(forgetMs), forgetting(options, outage))));
  if (ear !== undefined) yield* Effect.forkScoped(listenOn(ear.beating, channel, ear.listen, listeners, hearing));
  const facts = SqlFacts.make(options);
  return {
    facts,
    pacing: facts,
    cancels: { ...facts, driver: (runId) => SqlFacts.driver(database, runId) },
    answered: (runId) => Effect.asVoid(sql`SELECT pg_notify(${channel}, ${`${answeredPrefix}${runId}`})`),
  };
});

/** Those of a file's processes. Nothing is told there, and what is over is forgotten by who puts the next. */
const ofFile = Effect.fnUntraced(function* (
  database: SqlDatabase,
  lease: SqlLease,
  now: () => number,
): Effect.fn.Return<Words, never, Scope.Scope> {
  const listeners = new Listeners();
  const facts = SqlFacts.make({
    ...{ database, now, listeners, says: undefined },
    node: globalThis.crypto.randomUUID(),
    secret: Redacted.make(""),
    hears: () => false,
  });
  const needed = yield* Queue.sliding<void>(1);
  lease.whenNeeded = () => void Queue.offerUnsafe(needed, undefined);
  const pause = Effect.suspend(() => (lease.isNeeded ? Effect.sleep(fileLookMs) : Queue.take(needed)));
  const look = Effect.sync(() => listeners.say({ _tag: "Look" }));
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(pause, look)));
  const forgotten = SqlFacts.forget({ database, now });
  const put: SharedCancels["put"] = (...fact) => Effect.andThen(forgotten, facts.put(...fact));
  const spend: SharedPacing["spend"] = (...spent) => Effect.andThen(forgotten, facts.spend(...spent));
  const draw: SharedPacing["draw"] = (...drawn) => Effect.andThen(forgotten, facts.draw(...drawn));
  return {
    cancels: { ...facts, put, driver: (runId) => SqlFacts.driver(database, runId) },
    pacing: { draw, spend },
  };
});

const answeredPrefix = "answered ";

const helloPrefix = "hello ";

const forgetting = (options: SqlFacts.FactsOptions, outage: OutageLog): Effect.Effect<void> =>
  Effect.catch(Effect.andThen(SqlFacts.forget(options), outage.worked), ({ message }) => outage.failed(message));

/** What a payload says; undefined for one that this version does not know. */
export const wordOf = (payload: string): Word | undefined => {
  if (payload.startsWith(answeredPrefix)) return { _tag: "Answered", run_id: payload.slice(answeredPrefix.length) };
  const kind = toldKinds.find((it) => it === payload);
  return kind === undefined ? undefined : { _tag: "Put", kind };
};

/** Listens for ever, by one connection after the other (W2). */
const listenOn = (
  beating: SqlDatabase,
  channel: string,
  listen: Listen,
  listeners: Listeners,
  hearing: { now: boolean },
): Effect.Effect<never> => {
  const { sql } = beating.tables;
  let pauseMs = pauseFirstMs;
  const outage = new OutageLog({
    away: "what other processes say is not heard",
    back: "what other processes say is heard again",
  });
  const once = Effect.suspend(() => {
    const hello = `${helloPrefix}${globalThis.crypto.randomUUID()}`;
    const heard = (payload: string) => {
      if (payload === hello) {
        hearing.now = true;
        listeners.say({ _tag: "Look" });
      }
      const word = wordOf(payload);
      if (word !== undefined) listeners.say(word);
    };
    // Said by another connection: to the one that listens a pooler would hand its own words.
    const said = Effect.ignore(beating.once(sql`SELECT pg_notify(${channel}, ${hello})`));
    const ready = Effect.suspend(() => {
      pauseMs = pauseFirstMs;
      listeners.say({ _tag: "Look" });
      return Effect.andThen(outage.worked, said);
    });
    return listen(channel, { heard, ready });
  });
  const broken = ({ message }: { readonly message: string }) =>
    Effect.suspend(() => {
      hearing.now = false;
      const ms = pauseMs;
      pauseMs = Math.min(pauseMaxMs, 2 * pauseMs);
      return Effect.andThen(outage.failed(message), Effect.sleep(ms));
    });
  return Effect.forever(Effect.catch(once, broken));
};
