/**
 * The short form of `npm run cluster`: three gateways over one PostgreSQL, of which one is killed every few seconds.
 */
import { assert, describe, it } from "@effect/vitest";
import { holds, judged } from "../../scripts/cluster/Judge.ts";
import { play } from "../../scripts/cluster/Play.ts";
import { lines } from "../../scripts/cluster/Report.ts";

describe("three gateways over one PostgreSQL, of which one is killed every few seconds", () => {
  it("lose nothing and do nothing twice", async () => {
    const diary = await play({
      seconds: 20,
      streams: 10,
      seed: 7,
      nodes: 3,
      killMs: 5_000,
      // A gateway that misses a beat watches for another lease before it takes over. Beats of a second, and of two, are more than a machine that
      // runs all tests keeps up, where its host is busy too.
      leaseMs: 8_000,
      progress: () => undefined,
    });
    const verdict = judged(diary);
    const said = lines(verdict, diary).join("\n");
    assert.isTrue(holds(verdict), said);
    assert.isAbove(diary.kills.length, 0, said);
    assert.isAbove(verdict.streams, 10, said);
    assert.isAbove(verdict.whole, 0, said);
    assert.strictEqual(verdict.recovered + verdict.told.length >= verdict.streamsBroken, true, said);
  });
});
