import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { schemaVersion } from "../../../src/recorder/sql/SqlSchema.ts";
import * as Upgrade from "../suite/Upgrade.ts";
import * as Folder from "./SqlFolder.ts";

const versionOf = (file: string): number => {
  const database = new DatabaseSync(file, { readOnly: true });
  const [row] = database.prepare("SELECT value FROM stream_recovery_meta WHERE name = 'schema_version'").all();
  database.close();
  return Number(row?.value);
};

describe("an upgrade of a file under load, with processes of the previous version", () => {
  it.live("loses nothing: running processes keep writing, and one that starts afterwards is refused", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const first = yield* Upgrade.start(file, "previous");
      assert.notProperty(first.opened, "failed");
      assert.strictEqual(versionOf(file), 2);
      const { next, nextToo, old, oldToo } = yield* Upgrade.sideBySide(file);
      assert.strictEqual(versionOf(file), schemaVersion);
      assert.deepInclude((yield* Upgrade.start(file, "previous")).opened, { failed: "newer_schema" });
      for (const it of [old, oldToo, next, nextToo]) yield* it.kill;
      const here = yield* Folder.open({ file });
      assert.isAbove(yield* Upgrade.nothingLost(here, [old, oldToo, next, nextToo]), 8);
    }).pipe(Effect.scoped),
  );
});
