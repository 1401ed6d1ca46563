/**
 * Kills the server's backend of a connection exactly during its commit: with the server's own means, which end that backend, and with
 * `kill -9`, after which the server ends all backends and recovers.
 */
import { assert, describe, it } from "@effect/vitest";
import { Cause, Effect, Exit, Fiber } from "effect";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import { polled } from "../../Polling.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";

const database = "postgres";

/** A separate server, because the test kills it. */
const own = Effect.acquireRelease(
  Effect.sync(() => Cluster.make(Cluster.programs() ?? "")),
  (it) => Effect.sync(() => it.remove()),
);

/** Queries a server that may still be recovering until it returns a value. */
const answered = (cluster: Cluster.Cluster, sql: string): Effect.Effect<string> =>
  polled(Effect.promise(async () => (await cluster.query(database, sql).catch(() => "")) || undefined));

/** Holds the lock that a COMMIT waits for. */
const holding = "SELECT pg_advisory_lock(7); SELECT pg_sleep(600)";

/** Takes a transaction number, and ends with the server. */
const numbered = "SELECT pg_current_xact_id(); SELECT pg_sleep(600)";

/**
 * Transaction numbers before that of the held transaction, which the recovered server gives out first. It gives one to each process of
 * this program that listens again and sends its greeting, and to any other client.
 */
const numbersBefore = 8;

const takeNumbers = Effect.fnUntraced(function* (cluster: Cluster.Cluster) {
  for (let i = 0; i < numbersBefore; i += 1) cluster.query(database, numbered).catch(() => "");
  const taken = `SELECT 'taken' FROM pg_stat_activity WHERE query = '${numbered}' AND backend_xid IS NOT NULL`;
  yield* answered(cluster, `${taken} HAVING count(*) = ${numbersBefore}`);
});

const set = (cluster: Cluster.Cluster, setting: string): void => {
  cluster.psql(database, `ALTER SYSTEM ${setting}`);
  cluster.psql(database, "SELECT pg_reload_conf()");
};

/** Held in the deferred triggers. */
const heldByTrigger = {
  waits: "Lock advisory",
  hold: Effect.fnUntraced(function* (cluster: Cluster.Cluster) {
    cluster.psql(
      database,
      `CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
       CREATE CONSTRAINT TRIGGER held AFTER INSERT ON stream_recovery_runs DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW WHEN (NEW.run_id = 'held') EXECUTE FUNCTION held()`,
    );
    // It ends by a signal, or with the server.
    cluster.query(database, holding).catch(() => "");
    yield* answered(cluster, "SELECT 'held' FROM pg_locks WHERE locktype = 'advisory' AND granted");
  }),
  release: (cluster: Cluster.Cluster) =>
    answered(cluster, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = '${holding}'`),
} as const;

/** The place at which a COMMIT is held, how the server releases it, and whether its outcome can be known after a crash. */
const places = {
  "before it counts": { ...heldByTrigger, reached: () => undefined, isKnownBehindACrash: true },
  /** Its number is in the log on disk, and is not given out again. */
  "before it counts, with its rows on the disk": {
    ...heldByTrigger,
    reached: (cluster: Cluster.Cluster) => void cluster.psql(database, "SELECT pg_switch_wal()"),
    isKnownBehindACrash: true,
  },
  /** It is on disk, and waits for a standby. */
  "when it counts": {
    waits: "IPC SyncRep",
    hold: (cluster: Cluster.Cluster) => Effect.sync(() => set(cluster, "SET synchronous_standby_names = 'nobody'")),
    release: (cluster: Cluster.Cluster) =>
      Effect.andThen(
        answered(cluster, "SELECT 'it is back'"),
        Effect.sync(() => set(cluster, "RESET synchronous_standby_names")),
      ),
    reached: () => undefined,
    // Another process's transaction may have its number by then.
    isKnownBehindACrash: false,
  },
} as const;

const kills = {
  pg_terminate_backend: (cluster: Cluster.Cluster, pid: number) =>
    void cluster.psql(database, `SELECT pg_terminate_backend(${pid})`),
  "kill -9": (_: Cluster.Cluster, pid: number) => void process.kill(pid, "SIGKILL"),
} as const;

describe("a server backend that is killed during a commit", () => {
  for (const [where, place] of Object.entries(places)) {
    for (const [how, kill] of Object.entries(kills)) {
      it.live(
        `by ${how}, ${where}: acknowledged entries are kept, and the outcome of the others is decided correctly`,
        () =>
          Effect.gen(function* () {
            const cluster = yield* own;
            // By default it writes its log to disk five times a second.
            set(cluster, "SET wal_writer_delay = '10s'");
            const address = cluster.address(database);
            const recorder = yield* Databases.open({ address });
            yield* recorder.write("before", [E.begun("before"), E.attempt(1)]);
            yield* place.hold(cluster);
            yield* takeNumbers(cluster);
            const entries = [E.begun("held"), E.attempt(1)];
            const writing = yield* Effect.forkChild(Effect.exit(recorder.write("held", entries)));
            const waiting = `SELECT pid FROM pg_stat_activity WHERE query LIKE 'COMMIT%' AND state = 'active'
            AND wait_event_type || ' ' || wait_event = '${place.waits}'`;
            const pid = Number(yield* answered(cluster, waiting));
            yield* Effect.sync(() => place.reached(cluster));
            yield* Effect.sync(() => kill(cluster, pid));
            yield* answered(
              cluster,
              `SELECT 'gone' WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = ${pid})`,
            );
            yield* place.release(cluster);
            const written = yield* Fiber.join(writing);
            if (how === "pg_terminate_backend" || place.isKnownBehindACrash)
              assert.isTrue(Exit.isSuccess(written), Exit.isFailure(written) ? Cause.pretty(written.cause) : "");
            else
              assert.match(
                String(Exit.isFailure(written) && Cause.squash(written.cause)),
                /we cannot tell whether this write is on record$/,
              );
            assert.deepStrictEqual(yield* record(recorder, "before"), E.folded([E.begun("before"), E.attempt(1)]));
            assert.deepStrictEqual(yield* record(recorder, "held"), E.folded(entries));
            yield* recorder.write("held", [E.ended()]);
            const other = yield* Databases.open({ address });
            assert.deepStrictEqual(yield* record(other, "held"), E.folded([...entries, E.ended()]));
          }).pipe(Effect.scoped),
      );
    }
  }
});
