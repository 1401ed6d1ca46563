/**
 * A gateway and its provider on two machines, with a cable between them that loses every packet in silence, and a gateway whose
 * process is stopped: what a real kernel does of it.
 */
import { assert, describe, it } from "@effect/vitest";
import { canPlay, played } from "./Played.ts";

/** A dead socket is felt so long behind its last byte at the latest, and a busy machine has a second. */
const feltMs = 16_000 + 1_000;

/** Behind the return of a path: the probes are a second apart by then. */
const nextMs = 1.5 * 1_000 + 500 + 1_000;

/** Behind a wake. */
const wokenMs = 20_000;

describe.skipIf(!canPlay)("a cable that is cut for 20 s", () => {
  for (const [scenario, moment] of [
    ["body", "under a response"],
    ["head", "under a request that has no response yet"],
    ["before", "before the request"],
  ] as const) {
    it(`${moment}: the client has its answer, the dead socket was felt in time, and the next request went at once`, async () => {
      const seen = await played(scenario);
      const said = JSON.stringify(seen);
      assert.strictEqual(seen.status, 200, said);
      assert.isTrue(seen.whole, said);
      assert.isAtMost(seen.requests, 2, said);
      assert.isNotEmpty(seen.feltMs, said);
      for (const { ms } of seen.feltMs.slice(0, 1)) assert.isAtMost(ms, feltMs, said);
      assert.isAtMost(Math.min(...seen.nextMs), nextMs, said);
    });
  }
});

describe.skipIf(!canPlay)("a gateway whose process is stopped for 5 s", () => {
  it("continues the response of a live provider with one request", async () => {
    const seen = await played("stopped");
    assert.deepInclude(seen, { status: 200, whole: true, requests: 1 }, JSON.stringify(seen));
  });

  for (const [scenario, peer] of [
    ["stopped-reset", "has reset the connection meanwhile"],
    ["stopped-silent", "has lost the connection meanwhile, unheard"],
  ] as const) {
    it(`asks a provider that ${peer} once more, in time`, async () => {
      const seen = await played(scenario);
      const said = JSON.stringify(seen);
      assert.deepInclude(seen, { status: 200, whole: true, requests: 2 }, said);
      assert.isAtMost(Math.min(...seen.nextMs), wokenMs, said);
    });
  }
});
