import { copyFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { assert, it } from "@effect/vitest";
import { Effect } from "effect";
import { schemaVersion } from "../../../src/recorder/sql/SqlSchema.ts";
import * as Former from "../suite/FormerStore.ts";
import * as Folder from "./SqlFolder.ts";

const ask = (file: string, sql: string): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
};

const versionOf = (file: string): number =>
  Number(ask(file, "SELECT value FROM stream_recovery_meta WHERE name = 'schema_version'")[0]?.value);

const copied = Effect.map(Folder.emptyPath, (file) => {
  copyFileSync(Former.fileOf(6, "sqlite.db"), file);
  return file;
});

const opened = Effect.gen(function* () {
  const file = yield* copied;
  // It waits for the length of its own lease before it considers a process dead.
  const recorder = yield* Folder.open({ file, leaseMs: 1_000 });
  const count = (table: string) =>
    Effect.sync(() => Number(ask(file, `SELECT count(*) AS n FROM stream_recovery_${table}`)[0]?.n));
  return { recorder, count };
});

Former.suite({ version: 6, name: "sqlite", opened, tables: ["incidents", "questions"] });

it.live("a file of version 6 is upgraded, and keeps the budgets and cancels that its processes shared", () =>
  Effect.gen(function* () {
    const file = yield* copied;
    assert.strictEqual(versionOf(file), 6);
    const recorder = yield* Folder.open({ file });
    assert.strictEqual(versionOf(file), schemaVersion);
    assert.strictEqual((yield* recorder.cancels?.find("cancel", "halfway") ?? Effect.undefined)?.value, "{}");
    const spent = yield* recorder.pacing?.spend("batch 7", { retries: 1, tokens: 0 }, 60_000) ?? Effect.undefined;
    assert.deepStrictEqual(spent, { retries: 3, tokens: 120 });
  }).pipe(Effect.scoped),
);
