/**
 * Restores an earlier moment of a server from its base backup and its archived log, as described in docs/postgres.md.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope } from "effect";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import * as CommandLine from "../../cli/CommandLine.ts";
import { polled } from "../../Polling.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";

const programs = Cluster.programs() ?? "";

/** A temporary folder that the server may write to. */
const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = mkdtempSync(join(tmpdir(), "recorder-pitr-"));
    chmodSync(path, 0o777);
    return path;
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
);

const started = (more: ReadonlyArray<string>, base?: string) =>
  Effect.acquireRelease(
    Effect.sync(() => Cluster.make(programs, undefined, more, base)),
    (cluster) => Effect.sync(() => cluster.remove()),
  );

/** Repeats a query until the server answers yes. */
const until = (cluster: Cluster.Cluster, question: string): Effect.Effect<void> =>
  Effect.asVoid(
    polled(Effect.promise(async () => ((await cluster.query(place, `SELECT ${question}`)) === "t" ? true : undefined))),
  );

/** A run that its program could continue. */
const begun = (run_id: string): Entry => ({
  _tag: "RunStarted",
  run_id,
  provider: { id: "p", model: "m" },
  at: 1_000,
  policy: "default",
  transcript: "the digest of what the user asked",
});

const place = "recovery";

describe("a server that is restored to a moment between two writes", () => {
  it.live("contains no later events, and no open run continues without a person's answer", () =>
    Effect.gen(function* () {
      const path = yield* folder;
      const archive = join(path, "archive");
      mkdirSync(archive);
      chmodSync(archive, 0o777);
      const cluster = yield* started(["archive_mode=on", `archive_command='cp %p ${archive}/%f'`]);
      cluster.psql("postgres", `CREATE DATABASE ${place}`);
      const scope = yield* Scope.make();
      const before = yield* Scope.provide(Databases.open({ address: cluster.address(place), leaseMs: 600 }), scope);
      yield* before.write("over", E.life("over"));
      yield* before.write("pays", [begun("pays"), E.attempt(1)]);
      yield* before.write("paid", [begun("paid"), E.attempt(1)]);
      yield* before.release("paid");
      const base = join(path, "base");
      const from = [
        "--pgdata",
        base,
        "--checkpoint=fast",
        "--wal-method=stream",
        "-h",
        cluster.socket,
        "-U",
        "postgres",
      ];
      execFileSync(join(programs, "pg_basebackup"), from);
      yield* before.write("asked", [begun("asked"), E.attempt(1)]);
      cluster.psql(place, "SELECT pg_create_restore_point('before')");
      // Events that happened in the world and that the restored store will not know.
      const dispatched = { tools: [E.call("dispatched")], call_through: 1 };
      yield* before.write("pays", [E.raised(1, dispatched), E.ended()]);
      yield* before.write("later", E.life("later"));
      const wal = cluster.psql(place, "SELECT pg_walfile_name(pg_switch_wal())");
      yield* until(cluster, `coalesce(last_archived_wal >= '${wal}', false) FROM pg_stat_archiver`);
      cluster.stop("immediate");
      yield* Scope.close(scope, Exit.void);

      writeFileSync(join(base, "recovery.signal"), "");
      const back = yield* started(
        [`restore_command='cp ${archive}/%f %p'`, "recovery_target_name=before", "recovery_target_action=promote"],
        base,
      );
      yield* until(back, "NOT pg_is_in_recovery()");
      const db = back.address(place);
      const env = { ...process.env, STREAM_RECOVERY_DB: db, NO_COLOR: "1" };
      const ended = yield* Effect.promise(() => CommandLine.run(["recover", "--restored"], { env }));
      assert.strictEqual(ended.code, 0, ended.stderr);
      assert.match(ended.stderr, /recover: these records are incomplete/);
      const after = yield* Databases.open({ address: db });
      assert.deepStrictEqual(yield* record(after, "over"), E.folded(E.life("over")));
      assert.isUndefined(yield* after.run("later"));
      for (const id of ["pays", "paid", "asked"]) {
        const { parked, questions } = yield* record(after, id);
        assert.deepStrictEqual([id, parked, questions.length, questions[0]?.answer], [id, "question", 1, undefined]);
      }
      assert.deepStrictEqual(yield* after.orphans(), []);
      yield* after.write("new", E.life("new"));
    }).pipe(Effect.scoped),
  );
});
