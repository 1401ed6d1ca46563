import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, type Scope } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { TestClock } from "effect/testing";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { schemaVersion } from "../../../src/recorder/sql/SqlSchema.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

const says = (admin: SqlClient, values: Readonly<Record<string, number>>) =>
  Effect.forEach(
    Object.entries(values),
    ([name, value]) =>
      admin`INSERT INTO stream_recovery_meta (name, value) VALUES (${name}, ${String(value)})
        ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    { discard: true },
  );

const made: Effect.Effect<{ readonly address: string; readonly admin: SqlClient }, RecorderError, Scope.Scope> =
  Effect.gen(function* () {
    const address = yield* Databases.empty;
    const admin = yield* Databases.client(address, "operator");
    yield* Effect.flatMap(Databases.open({ address }), (it) => it.write("r", [E.begun("r")])).pipe(Effect.scoped);
    return { address, admin };
  });

describe("the tables in PostgreSQL", () => {
  it.live("are created once, however many processes start at the same time", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const all = yield* Effect.forEach(Array.from({ length: 8 }), () => Databases.open({ address }), {
        concurrency: "unbounded",
      });
      const digests = yield* Effect.forEach(all, (it) => it.digest("x"));
      assert.strictEqual(new Set(digests).size, 1);
      yield* Effect.forEach(all, (it, index) => it.write(`r${index}`, [E.begun(`r${index}`)]), {
        concurrency: "unbounded",
      });
    }).pipe(Effect.scoped),
  );

  it.live("are created by one process: one that comes in the middle of it waits, and finds them complete", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const proxy = yield* StatementProxy.make(address);
      const gate = proxy.hold(/^CREATE TABLE \S*runs\b/);
      const first = yield* Effect.forkChild(Databases.open({ address: proxy.address }));
      yield* gate.reached;
      const second = yield* Effect.forkChild(Databases.open({ address }), { startImmediately: true });
      yield* gate.release;
      const [a, b] = [yield* Fiber.join(first), yield* Fiber.join(second)];
      assert.strictEqual(yield* a.digest("x"), yield* b.digest("x"));
    }).pipe(Effect.scoped),
  );

  it.live("of a newer version are refused with an error that names both versions", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* made;
      yield* says(admin, { schema_version: 99, min_reader: 98, min_writer: 98 });
      const error = yield* Effect.flip(Databases.open({ address }));
      assert.deepInclude(error, { reason: "newer_schema" });
      assert.match(error.message, new RegExp(`schema version 99.*version ${schemaVersion}`));
      assert.match(error.message, /name another database or schema/);
      assert.notMatch(error.message, /\bfile\b/);
    }).pipe(Effect.scoped),
  );

  it.live(
    "of a newer version that this one writes correctly are used, and those that it only reads are only read",
    () =>
      Effect.gen(function* () {
        const { address, admin } = yield* made;
        yield* says(admin, { schema_version: 99, min_reader: schemaVersion, min_writer: schemaVersion });
        const recorder = yield* Databases.open({ address });
        yield* recorder.write("s", [E.begun("s")]);
        yield* says(admin, { min_writer: 99 });
        const reader = yield* Databases.open({ address });
        assert.strictEqual((yield* record(reader, "s")).state, "live");
        const refused = yield* Effect.flip(reader.write("t", [E.begun("t")]));
        assert.strictEqual(refused.reason, "newer_schema");
        assert.match(refused.message, /Update this program\. Until then it can only read this store/);
      }).pipe(Effect.scoped),
  );

  it.effect("that become newer while a process runs are no longer written by it, from its next heartbeat on", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* made;
      const proxy = yield* StatementProxy.make(address);
      const recorder = yield* Databases.open({ address: proxy.address, leaseMs: 3_000 });
      yield* recorder.write("s", [E.begun("s")]);
      yield* says(admin, { schema_version: 99, min_reader: schemaVersion, min_writer: 99 });
      const gate = proxy.hold(/SELECT name, value FROM/);
      yield* TestClock.adjust("1 second");
      yield* gate.reached;
      const writing = yield* Effect.forkChild(recorder.run("s"));
      yield* gate.release;
      yield* Fiber.join(writing);
      // The connections belong to one process, so a finding of the heartbeat applies to all of them.
      let reason: string | undefined;
      for (let n = 0; n < 50 && reason === undefined; n += 1) {
        const wrote = yield* Effect.result(recorder.write("s", [E.noted(n)]));
        if (wrote._tag === "Failure") reason = wrote.failure.reason;
      }
      assert.strictEqual(reason, "newer_schema");
      assert.strictEqual((yield* record(recorder, "s")).state, "live");
    }).pipe(Effect.scoped),
  );
});

describe("texts that PostgreSQL cannot store", () => {
  it.live("are unchanged in a record, replaced in a search, and name no run", () =>
    Effect.gen(function* () {
      const recorder = yield* Databases.open({ address: yield* Databases.empty });
      const odd = ["m\0n", "half \ud83d", "'; DROP TABLE x; --", '{"a"}', "NULL", ""];
      // Alone, and in one statement with others.
      const begun = (id: string, model: string) => ({ ...E.begun(id), provider: { id: "p", model } });
      for (const [index, model] of odd.entries()) yield* recorder.write(`a${index}`, [begun(`a${index}`, model)]);
      yield* Effect.forEach(odd, (model, index) => recorder.write(`b${index}`, [begun(`b${index}`, model)]), {
        concurrency: "unbounded",
      });
      for (const [index, model] of odd.entries()) {
        for (const id of [`a${index}`, `b${index}`]) {
          assert.deepStrictEqual((yield* record(recorder, id)).provider, { id: "p", model });
        }
      }
      const found = yield* recorder.runs({ text: "m\0n" });
      assert.deepStrictEqual(found.map(({ run_id }) => run_id).sort(), ["a0", "b0"]);
      for (const id of ["r\0", "r\ud83d"]) {
        const error = yield* Effect.flip(recorder.write(id, [E.begun(id)]));
        assert.deepInclude(error, { reason: "invalid" });
        assert.match(error.message, /without NUL and without lone surrogates/);
      }
    }).pipe(Effect.scoped),
  );
});
