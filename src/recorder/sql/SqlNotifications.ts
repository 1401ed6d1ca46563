/**
 * Sends and receives the notifications ("words") of a store's processes, and polls for missed ones.
 *
 * A server notifies processes on many machines (NOTIFY). The processes that share a file poll it for writes by others: every `filePollMs`
 * while they own a run, and otherwise when the system reports a write. The processes of a server and those of a file read the same rows.
 *
 * - W1: a notification carries no data. Its row is written before it is sent, so a lost notification only delays its receivers.
 * - W2: a broken listening connection is reopened, and then everything is read once.
 * - W3: a connection counts as listening only once a notification that this process sent has arrived on it, because a pooler may accept
 *   LISTEN and drop the notifications. Everything is read every `lookMs` in either case.
 */
import { createHash } from "node:crypto";
import * as Deferred from "effect/Deferred";
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

/** The callbacks of a connection that listens for notifications. */
export interface Ear {
  readonly onNotification: (payload: string) => void;
  /** Runs once the connection listens. From then on every notification arrives. */
  readonly ready: Effect.Effect<void>;
}

/** Listens to a channel until its connection breaks. */
export type Listen = (channel: string, ear: Ear) => Effect.Effect<never, SqlError | RecorderError>;

/** Announces an answered question within the current transaction. */
export type Answered = (runId: string) => Effect.Effect<void, SqlError>;

/** The facts that a store's processes share, and the announcement of answers. */
export interface Words {
  /** Omitted if the store has no secret for the keys of facts. */
  readonly facts?: SharedFacts;
  readonly cancels: SharedCancels;
  readonly pacing: SharedPacing;
  readonly announceAnswer?: Answered;
}

/** First pause before a broken connection is reopened, in milliseconds. Each pause doubles the previous one. */
const pauseFirstMs = 100;

/** Maximum pause before a broken connection is reopened, in milliseconds. */
const pauseMaxMs = 5_000;

/** Time between two polls of a file while a process owns a run or another process writes, in milliseconds. */
export const filePollMs = 100;

/** Time between two polls of an idle file, in milliseconds, if the system cannot report writes. */
export const fileIdlePollMs = 500;

/**
 * Number of polls without a change after which a process waits until the system reports a write. More than one, because a report may arrive
 * before its write is visible.
 */
const quietLooks = 10;

/** Number of polls after which one poll reads all facts, in case a change was missed. */
const pollsToLook = lookMs / filePollMs;

/**
 * Time for which an answered question stays announced to the processes that share a SQLite file, in milliseconds. The record of the run
 * keeps the answer for longer.
 */
const answeredMs = 60_000;

/** Time between two deletions of expired facts, in milliseconds. */
const forgetMs = 60_000;

/**
 * Number of characters in a channel's name that distinguish stores with the same prefix. PostgreSQL's channels are global to a database.
 */
const channelDigits = 12;

/**
 * Creates the notifications of a store; returns undefined if a server's store has no secret.
 *
 * @param ear `listen` receives notifications, and `beating` sends the test notifications of W3 over the connection of the heartbeat.
 *   Without `ear`, the store is polled
 */
export const make = Effect.fnUntraced(function* (
  database: SqlDatabase,
  lease: SqlLease,
  now: () => number,
  ear?: { readonly listen: Listen; readonly beating: SqlDatabase },
): Effect.fn.Return<Words | undefined, never, Scope.Scope> {
  const { dialect, meta, prefix, sql } = database.tables;
  const row = sql<{ readonly value: string }>`SELECT value FROM ${meta} WHERE name = 'shared_key'`;
  // If a newer program made a store that this process cannot write, this process only reads the store, so a failure here is ignored.
  const [found] = yield* Effect.orElseSucceed(database.execute(row), () => []);
  if (dialect.name !== "postgres") return yield* makeFileWords(database, lease, now, found?.value);
  if (found === undefined) return undefined;
  const store = createHash("sha256").update(`${found.value} channel`).digest("hex").slice(0, channelDigits);
  const channel = `${prefix}words_${store}`;
  const listeners = new Listeners();
  const hearing = { now: false };
  const withNotification = (statement: Fragment, word: string) =>
    sql`WITH told AS (${statement}) SELECT pg_notify(${channel}, ${word}) FROM told`;
  const options: SqlFacts.FactsOptions = {
    ...{ database, now, listeners, notify: withNotification },
    node: globalThis.crypto.randomUUID(),
    secret: Redacted.make(found.value),
    hasNotifications: () => hearing.now,
  };
  const look = Effect.sync(() => listeners.notify({ _tag: "Look" }));
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(lookMs), look)));
  const outage = new OutageLog({ away: "cannot delete expired facts", back: "deleting expired facts again" });
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(forgetMs), deleteExpired(options, outage))));
  if (ear !== undefined) yield* Effect.forkScoped(listenOn(ear.beating, channel, ear.listen, listeners, hearing));
  const facts = SqlFacts.make(options);
  return {
    facts,
    pacing: facts,
    cancels: { ...facts, findOwner: (runId) => SqlFacts.findOwner(database, runId) },
    announceAnswer: (runId) => Effect.asVoid(sql`SELECT pg_notify(${channel}, ${`${answeredPrefix}${runId}`})`),
  };
});

/** Creates the notifications of a file. A process that puts a fact also deletes expired facts. */
const makeFileWords = Effect.fnUntraced(function* (
  database: SqlDatabase,
  lease: SqlLease,
  now: () => number,
  secret: string | undefined,
): Effect.fn.Return<Words, never, Scope.Scope> {
  const listeners = new Listeners();
  const facts = SqlFacts.make({
    ...{ database, now, listeners, notify: undefined },
    node: globalThis.crypto.randomUUID(),
    secret: Redacted.make(secret ?? ""),
    hasNotifications: () => true,
  });
  const wakes = yield* Queue.sliding<void>(1);
  const wake = () => void Queue.offerUnsafe(wakes, undefined);
  lease.onNeeded = wake;
  let waiting = 0;
  const on: SharedFacts["on"] = (listener) => {
    const ends = listeners.on(listener);
    waiting += 1;
    wake();
    return () => {
      ends();
      waiting -= 1;
    };
  };
  const bell = new FileBell(database, listeners);
  const woken = Queue.take(wakes);
  const pause = Effect.suspend(() => {
    if (!lease.isNeeded && waiting === 0) return Effect.map(woken, () => bell.markMissed());
    return lease.isNeeded || !bell.isQuiet ? Effect.sleep(filePollMs) : bell.awaitWrite(woken);
  });
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(pause, bell.look)));
  const forgotten = SqlFacts.forget({ database, now });
  const put: SharedFacts["put"] = (...fact) => Effect.andThen(forgotten, facts.put(...fact));
  const spend: SharedPacing["spend"] = (...spent) => Effect.andThen(forgotten, facts.spend(...spent));
  const draw: SharedPacing["draw"] = (...drawn) => Effect.andThen(forgotten, facts.draw(...drawn));
  return {
    ...(secret === undefined ? {} : { facts: { ...facts, put, spend, draw, on } }),
    // A process reads cancels only while it owns a run.
    cancels: { ...facts, put, findOwner: (runId) => SqlFacts.findOwner(database, runId) },
    pacing: { draw, spend },
    announceAnswer: (runId) => SqlFacts.announceAnswer({ database, now }, runId, answeredMs),
  };
});

/** Polls a file, and reports the kinds of facts that other processes have put since the last poll. */
class FileBell {
  readonly #database: SqlDatabase;
  readonly #listeners: Listeners;
  /** SQLite's `data_version` at the last poll. */
  #version: number | undefined;
  #marks: ReadonlyMap<string, string> = new Map();
  #polls = 0;
  #quietLooks = 0;
  #hasMissed = true;

  constructor(database: SqlDatabase, listeners: Listeners) {
    this.#database = database;
    this.#listeners = listeners;
  }

  /** True if no process has written for a while. */
  get isQuiet(): boolean {
    return this.#quietLooks >= quietLooks;
  }

  /** Makes the next poll read all facts, after a time without polls. */
  markMissed(): void {
    this.#hasMissed = true;
  }

  /** Waits until the system reports a write, or another event wakes this process. */
  awaitWrite(woken: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      const report = Deferred.makeUnsafe<void>();
      const ends = this.#database.tables.dialect.changes?.onWrite(() => Deferred.doneUnsafe(report, Effect.void));
      if (ends === undefined) return Effect.asVoid(Effect.timeoutOption(woken, fileIdlePollMs));
      const written = Effect.map(Deferred.await(report), () => {
        this.#quietLooks = 0;
      });
      const late = Effect.map(Effect.sleep(lookMs), () => this.markMissed());
      const waits = Effect.suspend(() => (this.isQuiet ? Effect.raceAllFirst([woken, written, late]) : Effect.void));
      // Polls once after the watch began, because a write may have arrived just before it.
      return Effect.ensuring(Effect.andThen(this.look, waits), Effect.sync(ends));
    });
  }

  /** Polls the file. If the file cannot be read now, the next poll tries again. The listeners, which read the same file, log the error. */
  readonly look: Effect.Effect<void> = Effect.suspend(() => Effect.ignore(this.#look));

  readonly #look = Effect.gen({ self: this }, function* () {
    const database = this.#database;
    this.#polls = (this.#polls + 1) % pollsToLook;
    const { changes } = database.tables.dialect;
    const version = changes === undefined ? yield* SqlFacts.readDataVersion(database) : changes.version();
    if (version === undefined) return;
    this.#quietLooks = version === this.#version ? this.#quietLooks + 1 : 0;
    const isWhole = this.#hasMissed || this.#polls === 0;
    if (version === this.#version && !isWhole) return;
    const marks = yield* SqlFacts.readMarks(database, [...toldKinds, SqlFacts.answeredKind]);
    const before = this.#marks;
    this.#version = version;
    this.#marks = marks;
    this.#hasMissed = false;
    if (isWhole) return this.#listeners.notify({ _tag: "Look" });
    const isNew = (kind: string) => marks.get(kind) !== before.get(kind);
    for (const kind of toldKinds) if (isNew(kind)) this.#listeners.notify({ _tag: "Put", kind });
    if (!isNew(SqlFacts.answeredKind)) return;
    for (const run_id of yield* SqlFacts.listAnswered(database)) this.#listeners.notify({ _tag: "Answered", run_id });
  });
}

const answeredPrefix = "answered ";

const helloPrefix = "hello ";

const deleteExpired = (options: SqlFacts.FactsOptions, outage: OutageLog): Effect.Effect<void> =>
  Effect.catch(Effect.andThen(SqlFacts.forget(options), outage.recordSuccess), ({ message }) =>
    outage.recordFailure(message),
  );

/** Parses a payload; returns undefined for one that this version does not know. */
export const parseWord = (payload: string): Word | undefined => {
  if (payload.startsWith(answeredPrefix)) return { _tag: "Answered", run_id: payload.slice(answeredPrefix.length) };
  const kind = toldKinds.find((it) => it === payload);
  return kind === undefined ? undefined : { _tag: "Put", kind };
};

/** Listens forever, and reopens broken connections (W2). */
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
    away: "cannot receive changes from other processes; polling instead",
    back: "receiving changes from other processes again",
  });
  const once = Effect.suspend(() => {
    const hello = `${helloPrefix}${globalThis.crypto.randomUUID()}`;
    const receive = (payload: string) => {
      if (payload === hello) {
        hearing.now = true;
        listeners.notify({ _tag: "Look" });
      }
      const word = parseWord(payload);
      if (word !== undefined) listeners.notify(word);
    };
    // Another connection sends the test notification of W3, because a pooler would return a connection's own notifications to it.
    const said = Effect.ignore(beating.execute(sql`SELECT pg_notify(${channel}, ${hello})`));
    const ready = Effect.suspend(() => {
      pauseMs = pauseFirstMs;
      listeners.notify({ _tag: "Look" });
      return Effect.andThen(outage.recordSuccess, said);
    });
    return listen(channel, { onNotification: receive, ready });
  });
  const onBreak = ({ message }: { readonly message: string }) =>
    Effect.suspend(() => {
      hearing.now = false;
      const ms = pauseMs;
      pauseMs = Math.min(pauseMaxMs, 2 * pauseMs);
      return Effect.andThen(outage.recordFailure(message), Effect.sleep(ms));
    });
  return Effect.forever(Effect.catch(once, onBreak));
};
