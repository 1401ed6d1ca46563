/**
 * The short form of `npm run cluster -- --roll`: three gateways of the version before over one PostgreSQL are rolled to this one under load, and
 * one of them back.
 */
import { assert, describe, it } from "@effect/vitest";
import { holds, judged } from "../../scripts/cluster/Judge.ts";
import { play } from "../../scripts/cluster/Play.ts";
import { lines } from "../../scripts/cluster/Report.ts";
import { schemaVersion } from "../../src/recorder/sql/SqlSchema.ts";
import { isPlayed, older } from "./Older.ts";

describe.skipIf(!isPlayed)("three gateways of the version before, rolled to this one and back under load", () => {
  it("begin with the tables before this version's", () => {
    assert.strictEqual(older().schema, schemaVersion - 1);
  });

  it("lose nothing and do nothing twice", async () => {
    const diary = await play({
      older: older(),
      // Each to this version, and one back on tables that this version has changed.
      restarts: 4,
      seconds: 1,
      streams: 10,
      // It kills the second one, and tells the others to end.
      seed: 3,
      nodes: 3,
      killMs: 4_000,
      // As where they are killed: Cluster.test.ts says why.
      leaseMs: 8_000,
      progress: () => undefined,
    });
    const verdict = judged(diary);
    const said = lines(verdict, diary).join("\n");
    assert.isTrue(holds(verdict), said);
    assert.deepStrictEqual(diary.schema, { first: schemaVersion - 1, last: schemaVersion }, said);
    assert.deepStrictEqual([diary.kills.length, diary.stops.length], [1, 3], said);
    const lives = diary.versions.map((versions) => versions.join(" "));
    assert.deepStrictEqual(lives.sort(), ["older newer", "older newer", "older newer older"], said);
    assert.isAbove(verdict.byVersion.older, 0, said);
    assert.isAbove(verdict.byVersion.newer, 0, said);
    assert.isAtLeast(verdict.recovered + verdict.told.length, verdict.streamsBroken, said);
  });
});
