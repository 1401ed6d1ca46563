import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import { Effect, Fiber, Redacted } from "effect";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import { freePort } from "../../../scripts/programs/FreePort.ts";
import * as PostgresClient from "../../../src/recorder/postgres/PostgresClient.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";

let cluster: Cluster.Cluster;
let port = 0;
const folder = mkdtempSync(join(tmpdir(), "recorder-tls-"));
const [certificate, key] = [join(folder, "server.pem"), join(folder, "server.key")];
const secret = "a secret of this test";

/** Creates a self-signed certificate and its key. */
const selfSigned = (name: string, out: string, keyOut: string, ...more: ReadonlyArray<string>) => {
  const made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", keyOut, "-out", out];
  execFileSync("openssl", [...made, "-subj", `/CN=${name}`, ...more], { stdio: "ignore" });
};

/** The files of a role's certificate, as parameters of an address. */
const ofRole = (name: string) => [join(folder, `${name}.pem`), join(folder, `${name}.key`)] as const;
const shown = (name: string) =>
  ofRole(name)
    .map((file, index) => `&${index === 0 ? "sslcert" : "sslkey"}=${encodeURIComponent(file)}`)
    .join("");

beforeAll(async () => {
  selfSigned("localhost", certificate, key, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1");
  selfSigned("certified", ...ofRole("known"));
  // A role of the same name, certified by another authority.
  selfSigned("certified", ...ofRole("stranger"));
  const programs = Cluster.programs();
  if (programs === undefined) throw new Error("the suite has started one");
  port = await Effect.runPromise(freePort);
  const [pem, pemKey] = [readFileSync(certificate, "utf8"), readFileSync(key, "utf8")];
  const certified = { roles: ["certified", "uncertified"], root: readFileSync(ofRole("known")[0], "utf8") };
  cluster = Cluster.make(programs, { port, certificate: pem, key: pemKey, certified });
  cluster.psql("postgres", `CREATE ROLE gateway LOGIN PASSWORD '${secret}'`);
  cluster.psql("postgres", "CREATE DATABASE runs OWNER gateway");
  for (const role of certified.roles) cluster.psql("postgres", `CREATE ROLE ${role} LOGIN`);
  cluster.psql("postgres", "CREATE DATABASE certified OWNER certified");
});

afterAll(() => {
  cluster.remove();
  rmSync(folder, { recursive: true, force: true });
});

const at = (host: string, more: string) => `postgres://gateway@${host}:${port}/runs?${more}`;
const password = Redacted.make(secret);
const opened = (address: string, given = password) => Databases.open({ address, password: given, lockWaitMs: 200 });

describe("PostgresRunRecorder over a network", () => {
  it.live("uses TLS as its address demands, and says why it cannot", () =>
    Effect.gen(function* () {
      const root = `sslrootcert=${encodeURIComponent(certificate)}`;
      const good = [
        at("localhost", `sslmode=verify-full&${root}`),
        at("127.0.0.1", `sslmode=verify-full&${root}`),
        at("127.0.0.2", `sslmode=verify-ca&${root}`),
        at("127.0.0.2", "sslmode=require"),
        at("127.0.0.1", "sslmode=disable"),
      ];
      for (const [index, address] of good.entries()) {
        yield* Effect.scoped(Effect.flatMap(opened(address), (it) => it.write(`r${index}`, [E.begun(`r${index}`)])));
      }
      const bad = [
        at("localhost", "sslmode=verify-full"),
        at("localhost", "sslmode=verify-ca"),
        at("127.0.0.2", `sslmode=verify-full&${root}`),
      ];
      for (const address of bad) {
        const error = yield* Effect.flip(Effect.scoped(opened(address)));
        assert.deepInclude(error, { reason: "unavailable" });
        assert.match(error.message, /is not trusted: its certificate.*sslrootcert/, address);
      }
    }).pipe(Effect.scoped),
  );

  it.live("sends nothing in plain text if the address demands TLS", () =>
    Effect.gen(function* () {
      const recorder = yield* opened(at("localhost", "sslmode=require"));
      yield* recorder.write("tls", [E.begun("tls")]);
      const plain =
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'gateway' AND NOT ssl";
      assert.strictEqual(cluster.psql("runs", plain), "0");
      assert.isAbove(Number(cluster.psql("runs", plain.replace("NOT ssl", "ssl"))), 0);
    }).pipe(Effect.scoped),
  );

  it.live("a wrong password is refused in a message that does not contain it", () =>
    Effect.gen(function* () {
      const wrong = Redacted.make("another secret");
      const error = yield* Effect.flip(Effect.scoped(opened(at("localhost", "sslmode=require"), wrong)));
      assert.match(error.message, /refuses this program's role, password or certificate/);
      assert.notInclude(`${error.message} ${String(error.cause)} ${JSON.stringify(error)}`, "another secret");
    }).pipe(Effect.scoped),
  );

  it.live("a role is known by the certificate that its address names, and by no other", () =>
    Effect.gen(function* () {
      const root = `sslmode=verify-full&sslrootcert=${encodeURIComponent(certificate)}`;
      const as = (role: string, more: string) => `postgres://${role}@localhost:${port}/certified?${root}${more}`;
      const open = (address: string) => Databases.open({ address, lockWaitMs: 200 });
      const recorder = yield* open(as("certified", shown("known")));
      yield* recorder.write("r", [E.begun("r")]);
      assert.strictEqual(
        cluster.psql("certified", "SELECT DISTINCT client_dn FROM pg_stat_ssl WHERE client_dn IS NOT NULL"),
        "/CN=certified",
      );
      const none = ["", `&sslcert=${encodeURIComponent(ofRole("known")[0])}`];
      const others = [as("uncertified", shown("known")), as("certified", shown("stranger"))];
      const refused = [...none.map((it) => as("certified", it)), ...others];
      for (const address of refused) {
        const error = yield* Effect.flip(Effect.scoped(open(address)));
        assert.deepInclude(error, { reason: "unavailable" });
        assert.match(error.message, /refuses this program's role, password or certificate/, address);
      }
      const missing = yield* Effect.flip(Effect.scoped(open(as("certified", "&sslcert=/none/there.pem"))));
      assert.match(missing.message, /ENOENT.*there\.pem/);
    }).pipe(Effect.scoped),
  );

  it.live("a changed password is read from its file by the next connection, without a restart", () =>
    Effect.gen(function* () {
      const role = `rotated_${process.pid}`;
      cluster.psql("postgres", `CREATE ROLE ${role} LOGIN PASSWORD 'the first'`);
      cluster.psql("postgres", `CREATE DATABASE ${role} OWNER ${role}`);
      const file = join(folder, "password");
      writeFileSync(file, "the first\n");
      const address = `postgres://${role}@localhost:${port}/${role}?sslmode=require`;
      const given = PostgresClient.passwordOf({ PGPASSWORD_FILE: file });
      if (given === undefined) return assert.fail("a file was named");
      const recorder = yield* Databases.open({ address, password: given, lockWaitMs: 200 });
      yield* recorder.write("r", [E.begun("r")]);
      const rotated = `ALTER ROLE ${role} PASSWORD 'the second'`;
      const cut = `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '${role}'`;
      cluster.psql("postgres", rotated);
      // Open connections stay open.
      yield* recorder.write("r", [E.attempt(1)]);
      cluster.psql("postgres", cut);
      const error = yield* Effect.flip(recorder.write("r", [E.noted(1)]));
      assert.match(error.message, /refuses this program's role, password or certificate/);
      writeFileSync(file, "the second\n");
      yield* recorder.write("r", [E.noted(1)]);
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded([E.begun("r"), E.attempt(1), E.noted(1)]));
    }).pipe(Effect.scoped),
  );

  it.live("a heartbeat continues while every other connection is blocked", () =>
    Effect.gen(function* () {
      const address = at("localhost", "sslmode=require");
      const recorder = yield* Databases.open({ address, password, leaseMs: 300, connections: 1, lockWaitMs: 5_000 });
      yield* recorder.write("held", [E.begun("held")]);
      const admin = yield* Databases.client(cluster.address("runs"), "operator");
      const beats = Effect.map(
        admin<{ readonly beats: number }>`SELECT beats FROM stream_recovery_leases
          WHERE id = (SELECT owner FROM stream_recovery_runs WHERE run_id = 'held')`,
        ([row]) => row?.beats ?? 0,
      );
      const before = yield* beats;
      const grown = yield* admin.withTransaction(
        Effect.gen(function* () {
          yield* admin`SELECT 1 FROM stream_recovery_runs WHERE run_id = 'held' FOR UPDATE`;
          const writing = yield* Effect.forkChild(recorder.write("held", [E.attempt(1)]), { startImmediately: true });
          // The server's own clock advances, and the write waits for the row on the only other connection.
          yield* admin`SELECT pg_sleep(2.4)`;
          return { after: yield* beats, writing };
        }),
      );
      assert.isAbove(grown.after, before + 2);
      assert.strictEqual((yield* Effect.exit(Fiber.join(grown.writing)))._tag, "Success");
    }).pipe(Effect.scoped),
  );

  it.live("a server that dies and returns has every acknowledged write, and accepts the next ones", () =>
    Effect.gen(function* () {
      const recorder = yield* opened(at("localhost", "sslmode=require"));
      yield* recorder.write("crash", [E.begun("crash"), E.attempt(1)]);
      for (const mode of ["immediate", "fast"] as const) {
        cluster.stop(mode);
        const error = yield* Effect.flip(recorder.write("crash", [E.noted(1)]));
        assert.match(error.message, /cannot be reached, or its server is shutting down/, mode);
        cluster.start();
        assert.strictEqual((yield* record(recorder, "crash")).evidence.first.length, 0, mode);
      }
      yield* recorder.write("crash", [E.noted(1)]);
      assert.strictEqual((yield* record(recorder, "crash")).evidence.first.length, 1);
    }).pipe(Effect.scoped),
  );
});
