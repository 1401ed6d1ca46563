import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { schemaVersion } from "../../../src/recorder/sql/SqlSchema.ts";
import * as Upgrade from "../suite/Upgrade.ts";
import * as Databases from "./Databases.ts";

/** The version of the tables that the fixture's program creates. */
const previousVersion = 2;

const metaOf = Effect.fnUntraced(function* (address: string) {
  const admin = yield* Databases.client(address, "operator");
  const rows = admin<{ readonly name: string; readonly value: string }>`SELECT name, value FROM stream_recovery_meta
    WHERE name IN ('schema_version', 'min_reader', 'min_writer')`;
  return { admin, read: Effect.map(rows, (all) => Object.fromEntries(all.map((it) => [it.name, Number(it.value)]))) };
});

describe("an upgrade of PostgreSQL under load, with processes of the previous version", () => {
  it.live(
    "loses nothing: old processes keep writing beside the new ones if the tables allow it, and each takes over from the other",
    () =>
      Effect.gen(function* () {
        const address = yield* Databases.empty;
        const first = yield* Upgrade.start(address, "previous");
        const { read } = yield* metaOf(address);
        assert.notProperty(first.opened, "failed");
        assert.deepInclude(yield* read, { schema_version: previousVersion });
        const { next, nextToo, old, oldToo } = yield* Upgrade.sideBySide(address);
        const meta = yield* read;
        assert.deepInclude(meta, { schema_version: schemaVersion });
        assert.isAbove(schemaVersion, previousVersion);
        assert.isAtMost(meta.min_writer ?? schemaVersion, previousVersion, "the version before may write");
        for (const it of [old, oldToo, next, nextToo]) yield* it.kill;
        const here = yield* Databases.open({ address });
        assert.isAbove(yield* Upgrade.nothingLost(here, [old, oldToo, next, nextToo]), 8);
        yield* Upgrade.takenOver(address);
      }).pipe(Effect.scoped),
  );

  it.live(
    "loses nothing if the tables forbid the previous version to write: it stops at its next heartbeat, and says why",
    () =>
      Effect.gen(function* () {
        const address = yield* Databases.empty;
        const { next, nextToo, old, oldToo } = yield* Upgrade.sideBySide(address);
        const { admin } = yield* metaOf(address);
        // A migration sets this if the previous version would write the new tables incorrectly.
        yield* admin`UPDATE stream_recovery_meta SET value = ${String(schemaVersion)} WHERE name = 'min_writer'`;
        assert.deepStrictEqual([yield* old.stormEnd, yield* oldToo.stormEnd], ["newer_schema", "newer_schema"]);
        yield* Effect.all([next.more(40), nextToo.more(40)], { concurrency: 2 });
        assert.notProperty(yield* old.call("runs"), "failed");
        yield* admin`UPDATE stream_recovery_meta SET value = ${String(schemaVersion)} WHERE name = 'min_reader'`;
        const late = yield* Upgrade.start(address, "previous");
        assert.deepInclude(late.opened, { failed: "newer_schema" });
        for (const it of [next, nextToo]) yield* it.kill;
        const here = yield* Databases.open({ address });
        assert.isAbove(yield* Upgrade.nothingLost(here, [old, oldToo, next, nextToo]), 8);
      }).pipe(Effect.scoped),
  );
});
