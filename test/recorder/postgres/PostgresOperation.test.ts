/**
 * Runs the commands that docs/postgres.md gives an operator, on a separate server.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope } from "effect";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import * as SocketProxy from "../../../scripts/postgres/SocketProxy.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import { bin } from "../../cli/CommandLine.ts";
import { serve } from "../../cli/ServeProcess.ts";
import { polled } from "../../Polling.ts";
import { blocks, shellOf } from "../../package/Markdown.ts";
import * as E from "../Entries.ts";
import { SqlProcess } from "../sql/SqlProcess.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";

const folder = mkdtempSync(join(tmpdir(), "recorder-operation-"));
const programs = Cluster.programs() ?? "";
let cluster: Cluster.Cluster;

/** The commands of a page: blocks marked `pg` and with the given word. */
const told = (page: string, language: string, ...marks: ReadonlyArray<string>): ReadonlyArray<string> =>
  blocks(readFileSync(new URL(`../../../docs/${page}`, import.meta.url), "utf8"))
    .filter((it) => it.language === language && it.marks.join(" ") === ["pg", ...marks].join(" "))
    .map(({ text }) => text);

/** The address of the database for a role. */
const as = (role: string) => cluster.address("recovery").replace("user=postgres", `user=${role}`);

/** Runs commands in a shell. */
const typed = (commands: string, role = "recovery") => {
  const env = {
    ...process.env,
    PATH: [folder, programs, process.env.PATH].join(delimiter),
    PGHOST: cluster.socket,
    PGUSER: "postgres",
    STREAM_RECOVERY_DB: as(role),
  };
  const { status, stderr, stdout } = spawnSync("bash", shellOf(commands), {
    cwd: folder,
    env,
    encoding: "utf8",
  });
  return { status, stderr, stdout };
};

const done = (commands: string, role?: string): string => {
  const { status, stderr, stdout } = typed(commands, role);
  assert.strictEqual(status, 0, `${commands}\n${stderr}`);
  return stdout;
};

const dayMs = 24 * 60 * 60 * 1_000;

const grants = (): string => told("postgres.md", "sql", "role")[0] ?? "";

const opened = (role = "recovery") => Databases.open({ address: as(role), leaseMs: 600 });

beforeAll(() => {
  const more = ["shared_preload_libraries=pg_stat_statements"];
  cluster = Cluster.make(programs, undefined, more);
  const path = join(folder, "stream-recovery");
  writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" --no-warnings "${bin}" "$@"\n`);
  chmodSync(path, 0o755);
  cluster.psql("postgres", "CREATE DATABASE recovery");
});

afterAll(() => {
  cluster.remove();
  rmSync(folder, { recursive: true, force: true });
});

describe("the commands that the PostgreSQL docs give an operator", () => {
  it.live("grant the gateways' role exactly what it needs, and the owner creates new tables", () =>
    Effect.gen(function* () {
      // The tables of the previous version, created by their owner with its own program.
      const before = yield* SqlProcess.start(as("postgres"), 1_000, 0, "previous");
      assert.notProperty(before.opened, "failed");
      yield* before.kill;
      cluster.psql("recovery", "CREATE ROLE recovery LOGIN");
      cluster.psql("recovery", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO recovery");
      const refused = yield* Effect.flip(Effect.scoped(opened()));
      assert.deepInclude(refused, { reason: "read_only" });
      assert.match(refused.message, /a right on the tables is missing/);
      const owner = typed("stream-recovery runs list", "postgres");
      assert.deepInclude(owner, { status: 1, stdout: "" });
      assert.match(owner.stderr, /no run is on record/);
      cluster.psql("recovery", "DROP OWNED BY recovery; DROP ROLE recovery");
      cluster.psql("recovery", grants());
      const recorder = yield* opened();
      yield* recorder.write("life", E.life("life"));
      assert.deepStrictEqual(yield* record(recorder, "life"), E.folded(E.life("life")));
      yield* recorder.write("asks", [E.begun("asks"), E.opened("asks", 1), E.asked("asks", 1), E.parked("question")]);
      yield* recorder.answer({ run_id: "asks", revision: 1, choice: "retry", by: "person" });
      yield* recorder.claim("asks");
      yield* recorder.release("asks");
      yield* recorder.probe ?? Effect.void;
      const { shared } = recorder;
      if (shared === undefined) return assert.fail("processes of a server know things together");
      yield* shared.put("cooldown", "k", "{}", 60_000);
      assert.strictEqual((yield* shared.all("cooldown")).length, 1);
      assert.isDefined(yield* shared.take("cooldown", "k"));
      yield* shared.spend("group", { retries: 1, tokens: 2 }, 60_000);
      assert.strictEqual(yield* shared.draw("bucket", 1, { max: 2, perSecond: 1 }), 1);
      assert.strictEqual(yield* recorder.prune({ keep: 0 }), 1);
      for (const forbidden of [
        "CREATE TABLE mine (x INT)",
        "DROP TABLE stream_recovery_runs",
        "TRUNCATE stream_recovery_runs",
      ]) {
        const client = yield* Databases.client(as("recovery"), "gateway");
        assert.match(
          String((yield* Effect.flip(client.unsafe(forbidden))).reason.cause),
          /permission denied|must be owner/,
          forbidden,
        );
      }
    }).pipe(Effect.scoped),
  );

  it.live("show the state of the server, and the settings that a role keeps behind a pooler", () =>
    Effect.gen(function* () {
      const recorder = yield* opened();
      yield* recorder.write("seen", [E.begun("seen"), E.attempt(1)]);
      const queries = told("postgres.md", "sql");
      assert.isAtLeast(queries.length, 9);
      const found = queries.map((query) => ({ query, rows: cluster.psql("recovery", query) }));
      const rowsOf = (text: string) => found.find(({ query }) => query.includes(text))?.rows ?? "none such";
      assert.match(rowsOf("pg_stat_activity"), /^stream-recovery\|/m);
      assert.match(rowsOf("stream_recovery_leases"), /@.*\|\d+\|0\|-?\d+\|1$/m);
      assert.match(rowsOf("AS driven"), /^live\|\|t\|1\|/m);
      assert.match(rowsOf("pg_stat_user_tables"), /^stream_recovery_runs\|/m);
      assert.match(rowsOf("FROM pg_stat_statements"), /stream_recovery_runs/);
      assert.match(rowsOf("min_writer"), /schema_version\|\d+/);
      const kept = cluster.psql("recovery", "SELECT unnest(setconfig) FROM pg_db_role_setting ORDER BY 1").split("\n");
      assert.deepStrictEqual(kept, [
        "enable_seqscan=off",
        "idle_in_transaction_session_timeout=10s",
        "jit=off",
        "lock_timeout=5s",
        "statement_timeout=15s",
      ]);
      yield* recorder.write("seen", [E.ended()]);
    }).pipe(Effect.scoped),
  );

  it.live("delete old runs on a timer with the role of the gateways, beside a serving one", () =>
    Effect.gen(function* () {
      const recorder = yield* opened();
      const [dry = "", wet = "", ...more] = told("postgres.md", "sh", "retain").join("\n").trim().split("\n");
      assert.lengthOf(more, 0);
      done(wet);
      yield* recorder.write("old", [E.begun("old"), E.attempt(1)]);
      yield* recorder.write("old", [E.ended({ at: Date.now() - 40 * dayMs })]);
      yield* recorder.write("asks long", E.life("asks long").slice(0, 7));
      const served = yield* serve(["--port", "0", "--db", as("recovery"), "--keep-runs", "60d"]);
      assert.match(served.url, /^http/, served.stderr());
      assert.strictEqual(done(dry), "one ended run would be deleted\n");
      assert.isDefined(yield* recorder.run("old"));
      assert.strictEqual(done(wet), "deleted one ended run\n");
      assert.isUndefined(yield* recorder.run("old"));
      assert.strictEqual(done(wet, "postgres"), "deleted 0 ended runs\n");
      assert.notStrictEqual((yield* record(recorder, "asks long")).state, "ended");
      cluster.psql("recovery", "REVOKE DELETE ON stream_recovery_runs FROM recovery");
      yield* recorder.write("last", [E.begun("last"), E.ended()]);
      const refused = typed("stream-recovery runs retain --keep-runs-max 0");
      cluster.psql("recovery", grants().split("\n").slice(1).join("\n"));
      assert.deepStrictEqual([refused.status, refused.stdout], [3, ""]);
      assert.match(refused.stderr, /^runs retain: [^\n]*a right on the tables is missing[^\n]*\n$/);
      served.child.kill("SIGTERM");
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null], served.stderr());
      assert.notMatch(served.stderr(), /WARN|ERROR/);
    }).pipe(Effect.scoped),
  );

  it.live("restore an earlier moment, and end the runs that were open then before any program continues them", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make();
      const before = yield* Scope.provide(opened(), scope);
      yield* before.write("over", E.life("over"));
      yield* before.write("safe", [E.begun("safe"), E.attempt(1)]);
      yield* before.write("parked", [E.begun("parked"), E.attempt(1), E.parked("interrupted")]);
      const forgotten = yield* Scope.make();
      const goesOn = yield* Scope.provide(opened(), forgotten);
      yield* goesOn.write("goes on", [E.begun("goes on"), E.attempt(1)]);
      for (const command of told("postgres.md", "sh")) done(command);
      yield* goesOn.write("goes on", [E.noted(1)]);
      assert.isTrue(existsSync(join(folder, "base", "PG_VERSION")));
      // Facts that the dump lacks: in its record of this run no tool has begun, and nothing was shown.
      yield* before.write("safe", [E.raised(1, { tools: [E.call("dispatched")], shown: "text", text_through: 1 })]);
      yield* before.write("later", E.life("later"));
      const digest = yield* before.digest("x");
      yield* Scope.close(scope, Exit.void);
      for (const command of told("postgres.md", "sh", "restore")) done(command);
      // A program that was never stopped: the store has forgotten its acknowledged entries, and it continues anyway.
      yield* goesOn.write("goes on", [E.noted(2)]);
      const left = E.folded([E.begun("goes on"), E.attempt(1), E.noted(2)]);
      assert.deepStrictEqual(yield* record(goesOn, "goes on"), left);
      yield* Scope.close(forgotten, Exit.void);
      for (const then of ["restored", "ended"]) {
        for (const command of told("postgres.md", "sh", then)) done(command);
      }
      const after = yield* opened();
      assert.deepStrictEqual(yield* record(after, "over"), E.folded(E.life("over")));
      assert.isUndefined(yield* after.run("later"));
      assert.strictEqual(yield* after.digest("x"), digest);
      for (const id of ["safe", "parked", "goes on"]) assert.strictEqual((yield* record(after, id)).state, "ended", id);
      assert.deepStrictEqual(yield* after.orphans(), []);
      yield* after.write("new", E.life("new"));
    }).pipe(Effect.scoped),
  );

  it.live("move a file into the server and back with the command line", () =>
    Effect.gen(function* () {
      const db = "--db moved.db";
      const out = done(
        `stream-recovery runs export --all --out runs.jsonl; stream-recovery runs import ${db} runs.jsonl
        stream-recovery runs export --all ${db} > again.jsonl; stream-recovery runs import again.jsonl`,
      );
      assert.match(out, /^\d+ runs added\n0 runs added, \d+ already present\n$/);
    }),
  );

  it.live(
    "a gateway in the middle of a stream whose server has gone away ends on a signal, and its run is found again",
    () =>
      Effect.gen(function* () {
        const open = "SELECT count(*) FROM stream_recovery_runs WHERE ended_at IS NULL";
        const provider = yield* FaultProvider.make({ script: stalled });
        const more = ["--drain-ms", "500", "--openai-url", `${provider.url}/v1`];
        const served = yield* serve(["--port", "0", "--db", as("recovery"), ...more]);
        assert.match(served.url, /^http/, served.stderr());
        const read = yield* Effect.promise(() => firstOf(`${served.url}/v1/chat/completions`));
        // The run is written after its first byte.
        yield* polled(Effect.sync(() => (cluster.psql("recovery", open) === "1" ? true : undefined)));
        cluster.stop("immediate");
        const { status, stderr } = typed("stream-recovery runs list");
        assert.strictEqual(status, 3);
        assert.match(stderr, /^runs list: [^\n]*cannot be reached[^\n]*\n$/);
        served.child.kill("SIGTERM");
        const ended = yield* Effect.promise(() => served.exited);
        cluster.start();
        assert.deepStrictEqual(ended, [0, null], served.stderr());
        yield* Effect.promise(() => read.cancel().catch(() => undefined));
        done("stream-recovery recover; stream-recovery runs prune --give-up 1s");
        assert.strictEqual(cluster.psql("recovery", open), "0");
      }).pipe(Effect.scoped),
  );
});

describe("a gateway whose server answers nothing any more", () => {
  for (const more of [[], ["--advertise", "https://gateway.test:8787", "--linger-ms", "60000"]]) {
    it.live(
      `ends at a signal within its drain and some seconds, and says what is left (${more[0] ?? "without an address"})`,
      () =>
        Effect.gen(function* () {
          const proxy = yield* SocketProxy.make(cluster.socket);
          const provider = yield* FaultProvider.make({ script: stalled });
          const [here, there] = [cluster.socket, proxy.socket].map(encodeURIComponent);
          const db = cluster.address("postgres").replace(String(here), String(there));
          const flags = ["--drain-ms", "500", "--openai-url", `${provider.url}/v1`, ...more];
          const served = yield* serve(["--port", "0", "--db", db, ...flags]);
          assert.match(served.url, /^http/, served.stderr());
          const read = yield* Effect.promise(() => firstOf(`${served.url}/v1/chat/completions`));
          // The run is written after its first byte, and the process has a lease once the commit is acknowledged.
          const isWritten = Effect.promise(async () => {
            const metrics = await (await fetch(`${served.url}/metrics`)).text();
            return /^stream_recovery_queue_bytes(\{[^}]*\})? 0$/m.test(metrics) ? true : undefined;
          });
          yield* polled(isWritten);
          proxy.silence();
          const began = performance.now();
          served.child.kill("SIGTERM");
          assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null], served.stderr());
          // It took 18 s when each of its last steps waited again. The documented bound is half of this limit.
          assert.isBelow(performance.now() - began, 11_000, served.stderr());
          assert.match(served.stderr(), /finishing 1 requests/);
          assert.match(served.stderr(), /the rest is on disk, and the next start writes it/);
          assert.match(served.stderr(), /could not release the lease: /);
          yield* Effect.promise(() => read.cancel().catch(() => undefined));
        }).pipe(Effect.scoped),
    );
  }
});

/** Some text, and then silence. */
const stalled = { answers: [{ content: [{ text: 4 }], break: { kind: "stall", at: "event", n: 4 } } as const] };

/** Requests a stream and reads its first bytes. */
const firstOf = async (url: string): Promise<ReadableStreamDefaultReader<Uint8Array>> => {
  const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "x" }] });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const reader = response.body?.getReader();
  if (reader === undefined) throw new Error("a stream has a body");
  const first = await reader.read();
  if (response.status !== 200) throw new Error(`${response.status} ${String(Buffer.from(first.value ?? []))}`);
  return reader;
};
