import { describe, expect, it } from "vitest";
import * as Breaker from "../../../src/stages/routes/Breaker.ts";
import { Breakers, breakersMax } from "../../../src/stages/routes/Breakers.ts";

const failedBy = (runs: ReadonlyArray<string>, at = 0) =>
  runs.reduce((breaker, run) => Breaker.recordFailure(breaker, run, at), Breaker.closed);

const five = ["a", "b", "c", "d", "e"];

describe("a breaker of a route", () => {
  it("opens at the fifth failure of different runs", () => {
    expect(Breaker.standingOf(failedBy(five.slice(1)), 0)).toBe("closed");
    expect(Breaker.standingOf(failedBy(five), 0)).toBe("open");
  });

  it("counts a run once, even if it fails several times", () => {
    expect(Breaker.standingOf(failedBy(["a", "a", "a", "a", "a", "b", "b"]), 0)).toBe("closed");
  });

  it("counts only the failures of the last thirty seconds", () => {
    const four = failedBy(five.slice(1), 0);
    expect(Breaker.standingOf(Breaker.recordFailure(four, "z", 29_999), 29_999)).toBe("open");
    expect(Breaker.standingOf(Breaker.recordFailure(four, "z", 30_000), 30_000)).toBe("closed");
  });

  it("restarts its count after the route has answered", () => {
    const answered = Breaker.recordResponse(failedBy(five.slice(1)), "y");
    expect(Breaker.standingOf(Breaker.recordFailure(answered, "z", 0), 0)).toBe("closed");
  });

  it("is open for ten seconds, then lets a single run try", () => {
    const open = failedBy(five);
    expect(Breaker.standingOf(open, 9_999)).toBe("open");
    expect(Breaker.standingOf(open, 10_000)).toBe("half_open");
    const trying = Breaker.enter(open, "t", 10_000);
    expect(Breaker.standingOf(trying, 10_000)).toBe("open");
    expect(Breaker.enter(trying, "u", 10_000)).toBe(trying);
  });

  it("is closed only by the answer of the run that tries", () => {
    const trying = Breaker.enter(failedBy(five), "t", 10_000);
    expect(Breaker.recordResponse(trying, "old")).toBe(trying);
    expect(Breaker.recordResponse(trying, "t")).toBe(Breaker.closed);
    expect(Breaker.recordResponse(failedBy(five), "old")).toEqual(failedBy(five));
  });

  it("doubles its open time each time a try fails, up to five minutes", () => {
    let breaker = failedBy(five);
    let now = 0;
    const lasted: Array<number> = [];
    for (let round = 0; round < 7; round += 1) {
      if (breaker._tag === "open") {
        lasted.push(breaker.until - now);
        now = breaker.until;
      }
      breaker = Breaker.recordFailure(Breaker.enter(breaker, `t${round}`, now), `t${round}`, now);
    }
    expect(lasted).toEqual([10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
  });

  it("does not stay open longer for a failure of a run that started before it opened", () => {
    const open = failedBy(five);
    expect(Breaker.recordFailure(open, "late", 5_000)).toBe(open);
    const trying = Breaker.enter(open, "t", 10_000);
    expect(Breaker.recordFailure(trying, "late", 10_001)).toBe(trying);
  });

  it("gives the trial to the next run if the trial run has left or takes more than a minute", () => {
    const trying = Breaker.enter(failedBy(five), "t", 10_000);
    expect(Breaker.standingOf(Breaker.abandonTrial(trying, "t", 11_000), 11_000)).toBe("half_open");
    expect(Breaker.abandonTrial(trying, "other", 11_000)).toBe(trying);
    expect(Breaker.standingOf(trying, 69_999)).toBe("open");
    expect(Breaker.standingOf(trying, 70_000)).toBe("half_open");
  });

  it("opens at once if the route refuses its own key or model", () => {
    expect(Breaker.standingOf(Breaker.trip(Breaker.closed, 0), 9_999)).toBe("open");
    const trying = Breaker.enter(failedBy(five), "t", 10_000);
    expect(Breaker.trip(trying, 10_000)).toEqual({ _tag: "open", until: 30_000, forMs: 20_000 });
  });
});

describe("the breakers of a process", () => {
  it("are bounded: the least recently used one is evicted (L11)", () => {
    const breakers = new Breakers();
    for (let route = 0; route <= breakersMax; route += 1) breakers.trip(`route${route}`, 0);
    expect(breakers.size).toBe(breakersMax);
    expect(breakers.standingOf("route0", 0)).toBe("closed");
    expect(breakers.standingOf("route1", 0)).toBe("open");
  });

  it("keep no state of a healthy route", () => {
    const breakers = new Breakers();
    breakers.enter("a", "run", 0);
    breakers.recordFailure("a", "run", 0);
    expect(breakers.size).toBe(1);
    breakers.recordResponse("a", "run");
    breakers.abandonTrial("a", "run", 0);
    expect(breakers.size).toBe(0);
  });
});
