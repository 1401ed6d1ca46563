/**
 * Opens a real hot standby, which can be read but not written, and promotes it to the primary server.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope } from "effect";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import * as SqlPostgres from "../../../src/recorder/sql/postgres/SqlPostgres.ts";
import { polled } from "../../Polling.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";

const programs = Cluster.programs() ?? "";
const place = "recovery";

/** A temporary folder that the server may write to. */
const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = mkdtempSync(join(tmpdir(), "recorder-standby-"));
    chmodSync(path, 0o777);
    return path;
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
);

const started = (base?: string) =>
  Effect.acquireRelease(
    Effect.sync(() => Cluster.make(programs, undefined, [], base)),
    (cluster) => Effect.sync(() => cluster.remove()),
  );

/** Repeats a query until the server answers yes. */
const until = (cluster: Cluster.Cluster, question: string): Effect.Effect<void> =>
  Effect.asVoid(
    polled(Effect.promise(async () => ((await cluster.query(place, `SELECT ${question}`)) === "t" ? true : undefined))),
  );

/** A server and its standby; both have the runs `r` and `over`. */
const followed = Effect.gen(function* () {
  const primary = yield* started();
  primary.psql("postgres", `CREATE DATABASE ${place}`);
  const scope = yield* Scope.make();
  const writer = yield* Scope.provide(Databases.open({ address: primary.address(place) }), scope);
  yield* writer.write("over", E.life("over"));
  const base = join(yield* folder, "base");
  const from = ["--pgdata", base, "--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf"];
  execFileSync(join(programs, "pg_basebackup"), [...from, "-h", primary.socket, "-U", "postgres"]);
  const standby = yield* started(base);
  yield* writer.write("r", [E.begun("r"), E.attempt(1)]);
  yield* until(standby, "EXISTS (SELECT 1 FROM stream_recovery_runs WHERE run_id = 'r')");
  return { primary, standby, gone: Scope.close(scope, Exit.void) };
});

describe("a hot standby", () => {
  it.live(
    "is read, refuses whatever is written with an error that names it, and accepts writes once it is the primary server",
    () =>
      Effect.gen(function* () {
        const { gone, primary, standby } = yield* followed;
        const recorder = yield* Databases.open({ address: standby.address(place), leaseMs: 600 });
        assert.deepStrictEqual(yield* record(recorder, "over"), E.folded(E.life("over")));
        assert.strictEqual((yield* record(recorder, "r")).state, "live");
        const words = /accepts no writes: its server is a standby or is set to read-only\. Name the primary server$/;
        // A transaction of the store is refused by its kind, a single statement by its effect.
        const inTransaction = yield* Effect.flip(recorder.write("s", [E.begun("s")]));
        const { shared } = recorder;
        if (shared === undefined) return assert.fail("a server is shared");
        const alone = yield* Effect.flip(shared.spend("g", { retries: 1, tokens: 0 }, 60_000));
        assert.strictEqual(inTransaction.reason, "read_only");
        for (const { message } of [inTransaction, alone]) assert.match(message, words);
        assert.strictEqual((yield* Effect.flip(recorder.probe ?? Effect.void)).reason, "read_only");
        const reader = yield* Databases.client(standby.address(place));
        // The primary may have given out a number that the standby does not know yet.
        assert.strictEqual(yield* SqlPostgres.readOutcome(reader, "1000000@0"), "unknown");
        const primarys = yield* Databases.client(primary.address(place));
        const [row] = yield* primarys<{
          readonly xid: string;
        }>`SELECT 1 AS one ${primarys.literal(SqlPostgres.idColumn)}`;
        const xid = row?.xid ?? "";
        assert.strictEqual(yield* SqlPostgres.readOutcome(primarys, xid), "committed");
        yield* gone;
        primary.stop("fast");
        standby.psql("postgres", "SELECT pg_promote()");
        yield* recorder.write("s", [E.begun("s")]);
        assert.strictEqual(yield* SqlPostgres.readOutcome(reader, "1000000@0"), "aborted");
        // The standby's status of a number concerns the transaction that has it there; the primary's may never have arrived.
        for (let n = 0; n < 20; n += 1) yield* reader`SELECT pg_current_xact_id()::text AS id`;
        const [known] = yield* reader`SELECT pg_xact_status(${xid.split("@")[0]}::text::xid8) AS status`;
        assert.deepStrictEqual(known, { status: "committed" });
        assert.strictEqual(yield* SqlPostgres.readOutcome(reader, xid), "unknown");
        yield* recorder.claim("r");
        yield* recorder.write("r", [{ _tag: "RunResumed" }, E.attempt(2)]);
        assert.strictEqual((yield* record(recorder, "r")).attempts.length, 2);
      }).pipe(Effect.scoped),
  );
});
