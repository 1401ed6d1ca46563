import { assert, describe, it } from "@effect/vitest";
import { lookMsOf } from "../../src/gateway/GatewayRecovery.ts";
import { SqlLeaseWatch } from "../../src/recorder/sql/lease/SqlLeaseWatch.ts";
import { beatsInLease } from "../../src/recorder/sql/SqlLease.ts";

/** A step of the play, in milliseconds. */
const stepMs = 50;

/**
 * Plays a gateway that dies and one that watches it, with a clock of its own.
 *
 * @param phaseMs how long behind a look the first gateway dies
 * @returns how long behind its death the other one knows, in milliseconds
 */
const knownAfter = (leaseMs: number, phaseMs: number): number => {
  const watch = new SqlLeaseWatch(leaseMs);
  const diedAt = 4 * leaseMs + phaseMs;
  const beatMs = leaseMs / beatsInLease;
  let lookAt = 0;
  for (let at = 0; at < 10 * leaseMs + 60_000; at += stepMs) {
    if (at < lookAt) continue;
    const beats = Math.floor(Math.min(at, diedAt) / beatMs);
    const left = beats * beatMs + leaseMs - at;
    const lease = { id: "dead", beats, leaseMs, seemsOver: left <= 0 };
    const standing = watch.standingOf(lease, at);
    if (standing === "over") return at - diedAt;
    watch.observe(at, "own", [lease]);
    // A sweep waits for a silent lease; else the next one comes when its time is there.
    lookAt = at + (standing === "silent" ? watch.pauseMs : lookMsOf(leaseMs));
  }
  return Number.POSITIVE_INFINITY;
};

describe("the runs of a dead gateway", () => {
  for (const leaseMs of [3_000, 15_000, 60_000]) {
    it(`are known to the others within a lease of ${leaseMs} ms and 5 s, whenever it dies`, () => {
      for (let phaseMs = 0; phaseMs < 2 * leaseMs; phaseMs += 250) {
        assert.isAtMost(knownAfter(leaseMs, phaseMs), leaseMs + 5_000, `dies ${phaseMs} ms behind a look`);
      }
    });
  }
});
