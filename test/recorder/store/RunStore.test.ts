import { existsSync, rmSync, writeFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { ConfigProvider, Context, Effect, Layer, Redacted } from "effect";
import * as GatewayLayers from "../../../src/gateway/GatewayLayers.ts";
import * as PostgresAddress from "../../../src/recorder/postgres/PostgresAddress.ts";
import * as PostgresClient from "../../../src/recorder/postgres/PostgresClient.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as RunStore from "../../../src/recorder/store/RunStore.ts";
import { inVariable } from "../../Variables.ts";
import * as Folder from "../sql/SqlFolder.ts";

const parsed = (address: string) => {
  const found = PostgresAddress.parse(address);
  if (found instanceof RecorderError) throw found;
  return found;
};

const why = (address: string): string => {
  const found = PostgresAddress.parse(address);
  return found instanceof RecorderError ? found.message : "it is taken";
};

describe("an address of PostgreSQL", () => {
  it("returns the location of the database, its role, and the protection of the connection", () => {
    const full = "postgres://me@db.internal:6432/runs?sslmode=verify-ca&sslrootcert=/ca.pem&prefix=a_&schema=ops";
    assert.deepInclude(parsed(full), {
      host: "db.internal",
      port: 6432,
      role: "me",
      database: "runs",
      tls: "verify-ca",
      rootCertificate: "/ca.pem",
      prefix: "a_",
      schema: "ops",
    });
    assert.deepInclude(parsed("postgresql://[2001:db8::1]/runs"), { host: "2001:db8::1", port: 5432, role: undefined });
    const socket = parsed("postgres:///runs?host=/var/run/postgresql&user=me");
    assert.deepInclude(socket, { host: "/var/run/postgresql", role: "me", database: "runs" });
    assert.isTrue(parsed(full).prepares);
    assert.isFalse(parsed(`${full}&prepare=false`).prepares);
    assert.match(why(`${full}&prepare=no`), /prepare: expected true or false/);
    assert.strictEqual(PostgresAddress.placeOf(parsed(full)), "postgres://db.internal:6432/runs");
    assert.strictEqual(PostgresAddress.placeOf(parsed("postgres://me@[::1]")), "postgres://[::1]:5432/me");
    assert.strictEqual(PostgresAddress.placeOf(socket), "postgres://%2Fvar%2Frun%2Fpostgresql:5432/runs");
  });

  it("is protected by TLS that verifies its host, unless nothing leaves this machine", () => {
    const tls = (host: string) => parsed(`postgres://${host}/runs`).tls;
    for (const host of ["db.internal", "10.0.0.1", "[2001:db8::1]", "localhost.evil.org", "127.evil.org"]) {
      assert.strictEqual(tls(host), "verify-full", host);
    }
    for (const host of ["localhost", "127.0.0.1", "[::1]", ""]) assert.strictEqual(tls(host), "disable", host);
    assert.strictEqual(parsed("postgres:///runs?host=/run/pg").tls, "disable");
    assert.strictEqual(parsed("postgres://localhost/runs?sslmode=require").tls, "require");
  });

  it("is refused with an error that names the expected format and repeats no part of it", () => {
    const cases: ReadonlyArray<readonly [string, RegExp]> = [
      ["postgres://me:secret@h/d", /contains a password.*\$PGPASSWORD_FILE/],
      ["postgres://h/d?password=secret", /contains a password/],
      ["postgres:secret", /expected postgres:\/\/ROLE@HOST:PORT\/DATABASE/],
      ["postgres://h:99999/secret", /expected postgres:/],
      ["postgres://h/d?port=secret", /port: expected 1 to 65535/],
      ["postgres://h/d?port=0", /port: expected 1 to 65535/],
      ["postgres://h/d?sslmode=prefer", /sslmode: expected disable, require, verify-ca, verify-full/],
      ["postgres://h/d?sslmode=secret", /sslmode: expected/],
      ["postgres://h/d?sslmod=secret", /expected only host, port, prefix/],
      ["postgres://h/d?schema=a;DROP%20secret", /schema: expected/],
      ["postgres://h/%zzsecret", /a % is not followed by a valid code/],
      // A password with a character that has another meaning in an address.
      ["postgres://me:12#secret@h/d", /expected postgres:/],
      ["postgres://me:12/secret@h/d", /expected postgres:/],
      ["postgres://h/d#secret", /expected postgres:/],
      ["postgres://h/d?sslmode=verify-full&sslmode=disable", /sslmode is given twice/],
      ["postgres://h/d?host=", /host: expected one/],
      ["postgres://secret,other/d", /host: expected one/],
    ];
    for (const [address, words] of cases) {
      assert.match(why(address), words, address);
      assert.notInclude(why(address), "secret");
    }
  });
});

describe("the password of PostgreSQL", () => {
  it.effect("is what the environment holds, and that of a file is read for each connection", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      assert.isUndefined(PostgresClient.passwordOf({}));
      assert.isUndefined(PostgresClient.passwordOf({ PGPASSWORD: "", PGPASSWORD_FILE: "" }));
      const plain = PostgresClient.passwordOf({ PGPASSWORD: "secret" });
      assert.isTrue(Redacted.isRedacted(plain));
      assert.notInclude(String(plain), "secret");
      const read = PostgresClient.passwordOf({ PGPASSWORD: "other", PGPASSWORD_FILE: file });
      if (!Effect.isEffect(read)) throw new Error("a file is read when it is needed");
      assert.strictEqual(Redacted.value(yield* read), "");
      for (const content of ["first\n", "second"]) {
        writeFileSync(file, content);
        assert.strictEqual(Redacted.value(yield* read), content.trim());
      }
    }).pipe(Effect.scoped),
  );
});

/** Checks that no file is called memory before the test, and removes one that a failed test has left. */
const noMemoryFile = Effect.acquireRelease(
  Effect.sync(() => assert.isFalse(existsSync("memory"))),
  () => Effect.sync(() => rmSync("memory", { force: true })),
);

describe("a store", () => {
  it.effect("on PostgreSQL names a missing package, and a file needs none", () =>
    Effect.gen(function* () {
      const load = () => Promise.reject(new Error("Cannot find package '@effect/sql-pg'"));
      const opened = (file: string) => Layer.build(RunStore.layer({ file, retention: false }, load));
      const error = yield* Effect.flip(opened("postgres://localhost/runs"));
      assert.deepInclude(error, { _tag: "RecorderError", reason: "bad_option" });
      assert.match(error.message, /npm install @effect\/sql-pg$/);
      yield* opened(yield* Folder.emptyPath);
    }).pipe(Effect.scoped),
  );

  it("is no file whose name begins with an address after spaces, because a variable may contain a line ending", () => {
    for (const name of [" postgres://me:secret@h/d", "\tpostgres://h/d", "\nmysql://h"]) {
      assert.match(RunStore.findProblem(name) ?? "", /blanks/, name);
      assert.notInclude(RunStore.findProblem(name), "secret");
    }
    for (const name of [" a file", "postgres://h/d", "postgres://h/d\n"])
      assert.isUndefined(RunStore.findProblem(name), name);
  });

  it.effect("with an invalid address is refused before anything is connected", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Layer.build(RunStore.layer({ file: "postgres://me:secret@localhost/runs" })));
      assert.deepInclude(error, { reason: "bad_option" });
      assert.notInclude(error.message, "secret");
    }).pipe(Effect.scoped),
  );

  for (const { build, field, way } of [
    { way: "RunStore.layer", field: "db", build: (file: string) => RunStore.layer({ file }) },
    { way: "SqlRunRecorder.layerFile", field: "file", build: (file: string) => SqlRunRecorder.layerFile({ file }) },
    { way: "GatewayLayers.layer", field: "db", build: (db: string) => GatewayLayers.layer({ db, port: 0 }) },
  ]) {
    it.effect(`is no file whose name is an address, for ${way} in a program`, () =>
      Effect.gen(function* () {
        for (const name of ["mysql://me:secret@h/runs", "jdbc:secret", " file:/secret", "https://h/secret"]) {
          yield* Effect.addFinalizer(() =>
            Effect.sync(() => rmSync(beginningOf(name), { recursive: true, force: true })),
          );
          const error = yield* Effect.flip(Effect.scoped(Layer.build(Layer.fresh(build(name)))));
          assert.deepInclude(error, { _tag: "RecorderError", reason: "bad_option" }, name);
          assert.match(error.message, new RegExp(`^${field}: expected (a|the name) `), name);
          assert.notInclude(error.message, "secret");
          assert.isFalse(existsSync(beginningOf(name)), `${name} was made`);
        }
      }).pipe(Effect.scoped),
    );
  }

  for (const { build, way } of [
    { way: "RunStore.layer", build: (file: string) => RunStore.layer({ file }) },
    { way: "GatewayLayers.layer", build: (db: string) => GatewayLayers.layer({ db, port: 0 }) },
  ]) {
    it.effect(`with the name memory ends with its process, and creates no file, for ${way}`, () =>
      Effect.gen(function* () {
        yield* noMemoryFile;
        const recorder = Context.get(yield* Layer.build(Layer.fresh(build("memory"))), RunRecorder);
        assert.isFalse(recorder.durable);
        assert.isFalse(existsSync("memory"), "it was made");
      }).pipe(Effect.scoped),
    );
  }

  it.effect("that the environment calls memory is none that several workers or gateways share, and keeps nothing", () =>
    Effect.gen(function* () {
      yield* noMemoryFile;
      yield* inVariable("STREAM_RECOVERY_DB", "memory");
      for (const [program, said] of [
        [{ workers: 2 }, /^workers: several workers need a shared store/],
        [{ advertise: "https://gateway.test" }, /^advertise: gateways find each other in a shared store/],
        [{ keepRuns: "7d" }, /^keepRuns: a store in memory ends with its process/],
        [{ keepRunsMax: 9 }, /^keepRuns: a store in memory ends with its process/],
        [{ keepRuns: "a week" }, /^keepRuns: expected a duration/],
        [{ keepRunsMax: -1 }, /^keepRunsMax: expected a whole number, not below 0, got -1$/],
        [{ keepRunsMax: 1.5 }, /^keepRunsMax: expected a whole number, not below 0, got 1.5$/],
      ] as const) {
        const error = yield* Effect.flip(Layer.build(Layer.fresh(GatewayLayers.layer({ ...program, port: 0 }))));
        assert.deepInclude(error, { _tag: "GatewayError", reason: "bad_option" });
        assert.match(error.message, said);
      }
    }).pipe(Effect.scoped),
  );

  it.effect(
    "is a file for SqlRunRecorder.layerFile, whose error names the layer for a server and the variable that held its address",
    () =>
      Effect.gen(function* () {
        const refusalOf = (file?: string) =>
          Effect.flip(Effect.scoped(Layer.build(SqlRunRecorder.layerFile(file === undefined ? {} : { file }))));
        for (const name of ["postgres://h/secret", "postgresql:secret"]) {
          const { message, reason } = yield* refusalOf(name);
          assert.strictEqual(reason, "bad_option");
          assert.match(message, /^file: expected a file, .*PostgresRunRecorder\.layer/);
          assert.notInclude(message, "secret");
        }
        const variables = ConfigProvider.layer(
          ConfigProvider.fromUnknown({ STREAM_RECOVERY_DB: "postgres://h/secret" }),
        );
        const { message } = yield* Effect.provide(refusalOf(), variables);
        assert.match(message, /^\$STREAM_RECOVERY_DB: expected a file/);
      }).pipe(Effect.scoped),
  );
});

/** The file or folder that SQLite would create for a name. */
const beginningOf = (name: string): string => name.split("/")[0] ?? name;
