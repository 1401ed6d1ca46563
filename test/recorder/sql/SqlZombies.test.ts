/**
 * Lets two processes meet over one SQLite file. It has one writer, whose transaction is one step, so a process can be held before it,
 * with its earlier knowledge, or after it, without the new knowledge.
 */
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import * as SqlClient from "effect/sql/SqlClient";
import { make } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as SqlNodeSqlite from "../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts";
import * as E from "../Entries.ts";
import * as Gates from "../suite/Gates.ts";
import { sweptQuestions } from "../suite/SweptQuestions.ts";
import { volatileZombies, zombieRuns } from "../suite/ZombieRuns.ts";
import { type Meeting, zombies } from "../suite/Zombies.ts";
import * as Folder from "./SqlFolder.ts";

/** A client whose transactions can be held before their first statement and after their commit. */
const gated = (client: SqlClient.SqlClient, gates: Gates.Gates): SqlClient.SqlClient => {
  const transact = SqlNodeSqlite.transactionOf(client);
  const withTransaction: typeof transact = (body) =>
    Effect.andThen(gates.at("before its transaction"), Effect.tap(transact(body), gates.at("behind its commit")));
  return new Proxy(client, {
    get: (target, name) => (name === "withTransaction" ? withTransaction : Reflect.get(target, name)),
  });
};

const opened = (file: string, process: string, gates: Gates.Gates) =>
  Effect.gen(function* () {
    const client = yield* Layer.build(Layer.fresh(SqlNodeSqlite.layerOfStore({ file, synchronous: "normal" })));
    const sql = gated(Context.get(client, SqlClient.SqlClient), gates);
    const options = { place: file, process, retention: false } as const;
    return yield* Effect.provideService(make(options, { client: false, tables: false }), SqlClient.SqlClient, sql);
  });

const meeting: Meeting<unknown> = {
  two: Effect.gen(function* () {
    const file = yield* Folder.emptyPath;
    const gates = Gates.make();
    const slow = yield* opened(file, "slow", gates);
    return { slow, quick: yield* opened(file, "quick", Gates.make()), hold: gates.hold };
  }),
  points: { "before its transaction": "before", "behind its commit": "after" },
};

zombies("Two processes over one SQLite file", meeting);
zombieRuns("A run over one SQLite file", meeting);
volatileZombies("A run over one SQLite file", meeting);
sweptQuestions("Two processes over one SQLite file", meeting);

describe("A run that its process has lost, and whose record is damaged", () => {
  it.live("is refused as fenced: the process must stop it, whatever the state of the record", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [slow, quick] = [yield* opened(file, "slow", Gates.make()), yield* opened(file, "quick", Gates.make())];
      yield* slow.write("r", [E.begun("r"), E.attempt(1)]);
      yield* quick.processEnded?.("slow") ?? Effect.void;
      yield* quick.claim("r");
      yield* quick.write("r", [E.ended({ state: "stopped", reason: "client_gone" })]);
      const damage = new DatabaseSync(file);
      damage.exec("UPDATE stream_recovery_runs SET record = '{'");
      damage.close();
      assert.strictEqual((yield* Effect.flip(slow.write("r", [E.attempt(2)]))).reason, "fenced");
    }).pipe(Effect.scoped),
  );
});
