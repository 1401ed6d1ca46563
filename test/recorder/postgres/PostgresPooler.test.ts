import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { inject } from "vitest";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import * as E from "../Entries.ts";
import * as Heard from "../shared/Heard.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as Pooler from "./Pooler.ts";

const ignored = Pooler.ignoredParameters;

const pooled = (
  mode: Pooler.PoolerOptions["mode"],
  more: ReadonlyArray<string>,
  settings?: Readonly<Record<string, string>>,
) => Pooler.database(mode, inject("postgresSocket"), more, settings);

describe("PostgreSQL behind PgBouncer", () => {
  for (const [mode, more] of [
    ["session", ""],
    ["transaction", "&prepare=false"],
  ] as const) {
    it.live(`that pools by ${mode} accepts simultaneous writes of three processes, and returns them`, () =>
      Effect.gen(function* () {
        const address = `${yield* pooled(mode, [ignored])}${more}`;
        // By session each connection of the pool occupies one of the server's, and there are twenty.
        const open = Databases.open({ address, leaseMs: 1_500, connections: 3 });
        const all = yield* Effect.forEach([0, 1, 2], () => open, { concurrency: 3 });
        const ids = Array.from({ length: 45 }, (_, n) => `r${n}`);
        yield* Effect.forEach(
          ids,
          (id, n) => Effect.forEach(E.life(id), (entry) => all[n % 3]?.write(id, [entry]) ?? Effect.void),
          { concurrency: 15 },
        );
        const [first, second] = [all[0], all[1]];
        if (first === undefined || second === undefined) return assert.fail("three were opened");
        for (const id of ids) assert.deepStrictEqual(yield* record(first, id), E.folded(E.life(id)));
        yield* first.write("asks", [E.begun("asks"), E.opened("asks", 1), E.asked("asks", 1), E.parked("question")]);
        yield* second.answer({ run_id: "asks", revision: 1, choice: "retry", by: "person" });
        yield* second.claim("asks");
        assert.strictEqual((yield* Effect.flip(first.claim("asks"))).reason, "owned");
        assert.strictEqual((yield* Effect.flip(first.write("asks", [E.attempt(1)]))).reason, "fenced");
        const client = yield* Databases.client(address, "looking");
        const rows = yield* client<{ readonly setting: string }>`SELECT setting FROM pg_settings
          WHERE name IN ('lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout', 'jit') ORDER BY name`;
        assert.deepStrictEqual(
          rows.map(({ setting }) => setting),
          ["10000", "off", "5000", "15000"],
        );
      }).pipe(Effect.scoped),
    );
  }

  /** The outcome of two processes that write at once. */
  const tried = (address: string) =>
    Effect.scoped(
      Effect.gen(function* () {
        const all = yield* Effect.forEach([0, 1], () => Databases.open({ address, lockWaitMs: 300 }), {
          concurrency: 2,
        });
        yield* Effect.forEach(all, (it, n) => it.write(`r${n}`, E.life(`r${n}`)), { concurrency: 2 });
      }),
    ).pipe(Effect.flip);

  it.live("that takes no startup parameters is distinguished from an unavailable server", () =>
    Effect.gen(function* () {
      const error = yield* tried(yield* pooled("session", []));
      assert.strictEqual(error.reason, "bad_option", error.message);
      assert.match(
        error.message,
        /behind a pooler that refuses this program's connection parameters.*ignore_startup_parameters/,
      );
    }).pipe(Effect.scoped),
  );

  it.live("that keeps no prepared statements across transactions is reported with the setting for the address", () =>
    Effect.gen(function* () {
      const address = yield* pooled("transaction", [ignored]);
      const recorder = yield* Databases.open({ address, connections: 1 });
      yield* recorder.write("r", [E.begun("r")]);
      // The server's connections that the recorder has used, including that of its lease, are held, so it gets a new one.
      const others = yield* Effect.forEach(["a", "b", "c", "d"], (name) => Databases.client(address, name));
      const written = Effect.flip(recorder.write("r", [E.attempt(1)]));
      const error = yield* others.reduce<Effect.Effect<RecorderError, unknown>>(
        (rest, other) => other.withTransaction(Effect.andThen(other`SELECT 1`, rest)),
        written,
      );
      assert.strictEqual(error.reason, "bad_option", error.message);
      assert.match(error.message, /prepare=false to the address/);
    }).pipe(Effect.scoped),
  );

  it.live("that pools by statement accepts no write", () =>
    Effect.gen(function* () {
      const error = yield* tried(yield* pooled("statement", [ignored]));
      assert.strictEqual(error.reason, "unavailable", error.message);
    }).pipe(Effect.scoped),
  );

  it.live(
    "that drops the limits of a connection is reported once, unless the role has these limits or shorter ones",
    () =>
      Effect.gen(function* () {
        const { log, said } = Heard.heard();
        const warnings = () => said.filter((line) => line.includes("longer timeouts than we asked for"));
        const opened = Effect.fnUntraced(function* (settings: Readonly<Record<string, string>>) {
          const recorder = yield* Databases.open({ address: yield* pooled("session", [ignored], settings) });
          yield* recorder.write("r", E.life("r"));
          yield* recorder.write("s", E.life("s"));
        });
        const all = Effect.gen(function* () {
          yield* Effect.scoped(opened(Pooler.kept));
          yield* Effect.scoped(opened({ ...Pooler.kept, lock_timeout: "2s" }));
          assert.deepStrictEqual(warnings(), []);
          yield* Effect.scoped(
            opened({ ...Pooler.kept, lock_timeout: "0", idle_in_transaction_session_timeout: "1min" }),
          );
        });
        yield* Effect.provide(all, log);
        assert.lengthOf(warnings(), 1);
        const words =
          "(ms: lock_timeout none instead of 5000, idle_in_transaction_session_timeout 60000 instead of 10000)";
        assert.include(warnings()[0], words);
      }).pipe(Effect.scoped),
  );
});
