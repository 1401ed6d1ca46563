/** A server's information about a transaction whose commit it never acknowledged, after it has restarted. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import * as SqlPostgres from "../../../src/recorder/sql/postgres/SqlPostgres.ts";
import * as Databases from "./Databases.ts";

/** A separate server, because the test stops it. */
const own = Effect.acquireRelease(
  Effect.sync(() => Cluster.make(Cluster.programs() ?? "", undefined, ["wal_writer_delay=10s"])),
  (it) => Effect.sync(() => it.remove()),
);

/** Runs a transaction, and returns its id as the store records it. */
const transaction = Effect.fnUntraced(function* (client: SqlClient, how: Exit.Exit<void, string> = Exit.void) {
  let id = "";
  const body = Effect.flatMap(
    client<{ readonly xid: string }>`SELECT 1 AS one ${client.literal(SqlPostgres.idColumn)}`,
    ([row]) => {
      id = row?.xid ?? assert.fail("no id");
      return how;
    },
  );
  yield* Effect.ignore(client.withTransaction(body));
  return id;
});

const numberOf = (id: string): string => id.split("@")[0] ?? "";

describe("A commit whose connection broke", () => {
  it.live("is not confused with one that has the same number after a crash of the server", () =>
    Effect.gen(function* () {
      const cluster = yield* own;
      const client = yield* Databases.client(cluster.address("postgres"));
      const committed = yield* transaction(client);
      assert.strictEqual(yield* SqlPostgres.readOutcome(client, committed), "committed");
      // A server that recovers by itself resets its statistics and keeps its start time.
      yield* client`SELECT pg_stat_reset_shared('bgwriter')`;
      // Below PostgreSQL 15 another process does that a moment later.
      for (let n = 0, isDone = false; n < 100 && !isDone; n += 1) {
        const [row] = yield* client<{ readonly done: boolean }>`SELECT pg_sleep(0.05)::text AS slept,
          extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) >= ${committed.split("@")[1]}::double precision AS done`;
        isDone = row?.done === true;
      }
      assert.strictEqual(yield* SqlPostgres.readOutcome(client, committed), "unknown");
      // The server's log contains nothing of it, like of a transaction whose commit has not arrived.
      const lost = yield* transaction(client, Exit.fail("undone"));
      assert.strictEqual(yield* SqlPostgres.readOutcome(client, lost), "aborted");
      yield* Effect.promise(() => cluster.restart("immediate"));
      const other = yield* Databases.client(cluster.address("postgres"));
      // The server has not given out its number again yet.
      assert.strictEqual(yield* SqlPostgres.readOutcome(other, lost), "aborted");
      let given = "";
      for (let n = 0; n < 100 && given !== numberOf(lost); n += 1) given = numberOf(yield* transaction(other));
      assert.strictEqual(given, numberOf(lost));
      const [row] = yield* other`SELECT pg_xact_status(${given}::text::xid8) AS status`;
      assert.deepStrictEqual(row, { status: "committed" });
      assert.strictEqual(yield* SqlPostgres.readOutcome(other, lost), "unknown");
    }).pipe(Effect.scoped),
  );
});
