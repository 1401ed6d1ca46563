import { describe, expect, it } from "@effect/vitest";
import type { Scope } from "../../src/paths/Admission.ts";
import { Cooldowns, cooldownsMax, overloadOthersMs, waitMaxMs } from "../../src/paths/Cooldowns.ts";
import type { Probed } from "../../src/paths/Path.ts";
import * as State from "../../src/paths/PathState.ts";
import { firstWave, Waves, waveQuietMs } from "../../src/paths/Waves.ts";
import { seeded } from "../Seeded.ts";

const works: Probed = { _tag: "works" };
const fails: Probed = { _tag: "failed", reason: "network", code: "ECONNREFUSED" };
const middle = 0.5;

const reached = State.markReached(State.unknownPath(0));

describe("a path", () => {
  it("that was never reached is never down", () => {
    const unknown = State.unknownPath(0);
    expect(State.recordProbe(State.startProbe(unknown, 0), fails, 5, middle).state).toBe("up");
    expect(State.recordConnectFailure(unknown, false, "ECONNREFUSED", 5, middle)).toBe(unknown);
    let state = unknown;
    for (let n = 0; n < 50; n += 1) state = State.recordBreak(state, true, 5, middle);
    expect(state.state).toBe("up");
  });

  it("is probed after 0.25 s, doubling to 1 s in the first minute, then every 5 s", () => {
    let state = State.recordProbe(State.startProbe(reached, 0), fails, 0, middle);
    const gaps = [];
    while (state.probeAt < 80_000) {
      const at = state.probeAt;
      gaps.push(Math.round(at - state.probedAt));
      state = State.recordProbe(State.startProbe(state, at), fails, at, middle);
    }
    expect(gaps.slice(0, 5)).toEqual([250, 500, 1_000, 1_000, 1_000]);
    expect(gaps.slice(-2)).toEqual([5_000, 5_000]);
    expect(new Set(gaps.slice(2, 60))).toEqual(new Set([1_000]));
  });

  it("is probed on another process's word and stays as it is, and one that went down again keeps its schedule", () => {
    const known = State.recordProbe(State.startProbe(reached, 0), works, 0, middle);
    const doubted = State.applyFinding(known, true, 100);
    expect(doubted).toEqual({ ...known, probeAt: 250 });
    expect(State.applyFinding(known, false, 100)).toBe(known);
    const down = State.recordProbe(State.startProbe(known, 1_000), fails, 1_000, middle);
    expect(State.applyFinding(down, true, 1_100)).toBe(down);
    const late = { ...down, probeAt: 9_000 };
    expect(State.applyFinding(late, false, 2_000)).toEqual({ ...late, probeAt: 2_000 });
    const back = State.recordProbe(State.startProbe(down, 1_250), works, 1_250, middle);
    const again = State.recordConnectFailure(back, true, "ECONNREFUSED", 1_300, middle);
    expect(again).toMatchObject({ state: "down", relapsed: true });
    expect(again.probeAt).toBeGreaterThan(1_510);
    expect(State.applyFinding(again, false, 1_510)).toBe(again);
  });

  it("is probed at once after a wake, and then often again", () => {
    let state = State.recordProbe(State.startProbe(reached, 0), fails, 0, middle);
    for (let n = 0; n < 100; n += 1)
      state = State.recordProbe(State.startProbe(state, state.probeAt), fails, state.probeAt, 1);
    const now = state.probeAt - 1_000;
    state = State.restartSchedule(state, now);
    expect(state.probeAt).toBe(now);
    state = State.recordProbe(State.startProbe(state, now), fails, now, middle);
    expect(state.probeAt - now).toBe(250);
  });

  it("that answers a probe with another host's certificate is still down", () => {
    const down = State.recordProbe(State.startProbe(reached, 0), fails, 0, middle);
    const portal = State.recordProbe(
      State.startProbe(down, 300),
      { _tag: "failed", reason: "certificate" },
      300,
      middle,
    );
    expect(portal).toMatchObject({ state: "down", code: "certificate" });
  });

  it("that goes down again before a head has come continues its schedule, and admits one run at first", () => {
    let state = State.recordProbe(State.startProbe(reached, 0), fails, 0, middle);
    const gaps = [];
    for (let n = 0; n < 6; n += 1) {
      const at = state.probeAt;
      state = State.recordProbe(State.startProbe(state, at), works, at, middle);
      expect(state).toMatchObject({ state: "returning", relapsed: n > 0 });
      state = State.recordConnectFailure(state, true, "ECONNRESET", at + 10, middle);
      expect(state).toMatchObject({ state: "down", relapsed: true });
      gaps.push(state.probeAt - at);
    }
    expect(gaps).toEqual([500, 1_000, 1_000, 1_000, 1_000, 1_000]);
  });

  it("that goes down again after a head has come is probed soon", () => {
    let state = State.recordProbe(State.startProbe(reached, 0), fails, 0, middle);
    for (let n = 0; n < 20; n += 1)
      state = State.recordProbe(State.startProbe(state, state.probeAt), fails, state.probeAt, 1);
    state = State.recordResponse(
      State.recordProbe(State.startProbe(state, 30_000), works, 30_000, middle),
      true,
      30_100,
    );
    state = State.recordConnectFailure(state, true, "ECONNREFUSED", 30_200, middle);
    expect(state.probeAt - 30_200).toBe(250);
  });

  it("without a probe admits one run after 1 s, doubling to 15 s", () => {
    let state = State.recordConnectFailure(reached, false, "ECONNREFUSED", 0, middle);
    const gaps = [];
    for (let n = 0; n < 7; n += 1) {
      const at = state.probeAt;
      state = State.startTrial(state, at);
      expect(state.probeAt - at).toBe(State.trialMaxMs);
      state = State.recordConnectFailure(state, false, "ECONNREFUSED", at + 20, middle);
      gaps.push(state.probeAt - at);
    }
    expect(gaps).toEqual([2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000]);
    expect(State.recordResponse(state, false, 100_000)).toMatchObject({ state: "returning", proven: true });
  });

  it("on which more than eight connections break within a second counts as down until a probe says otherwise", () => {
    let state = reached;
    for (let n = 0; n < 8; n += 1) state = State.recordBreak(state, true, n * 100, middle);
    expect(state.state).toBe("up");
    expect(State.recordBreak(state, true, 1_050, middle).state).toBe("up");
    state = State.recordBreak(state, true, 900, middle);
    expect(state).toMatchObject({ state: "down", probeAt: 900, probes: 0 });
    expect(State.recordProbe(State.startProbe(state, 900), works, 950, middle).state).toBe("returning");
  });

  it("without a probe on which many connections break returns at once", () => {
    let state = reached;
    for (let n = 0; n < 9; n += 1) state = State.recordBreak(state, false, 0, middle);
    expect(state.state).toBe("returning");
  });

  it("keeps its invariants over any sequence of events", () => {
    for (let seed = 1; seed <= 120; seed += 1) {
      const random = seeded(seed);
      const canProbe = random() < 0.7;
      let state = State.unknownPath(0);
      let now = 0;
      for (let step = 0; step < 200; step += 1) {
        const where = `seed ${seed} step ${step}`;
        now += Math.floor(random() ** 4 * 20_000);
        const before = state;
        state = change(state, canProbe, now, random);
        if (!state.reached) expect(state.state, where).toBe("up");
        if (before.reached) expect(state.reached, where).toBe(true);
        if (state.state === "down" && !state.probing) expect(state.probeAt - now, where).toBeLessThan(18_001);
        if (state.state === "down" && canProbe && !state.probing)
          expect(state.probeAt - now, where).toBeLessThan(6_001);
        if (state.state === "down" && before.state !== "down") expect(state.since, where).toBe(now);
        if (canProbe && before.state === "down" && state.state === "returning")
          expect(before.probing, where).toBe(true);
        if (before.state === "up" && state.state === "returning") expect(canProbe, where).toBe(false);
        expect(state.breaks.length, where).toBeLessThanOrEqual(State.massBreaks);
      }
    }
  });
});

/** Applies a random event. */
const change = (state: State.PathState, canProbe: boolean, now: number, random: () => number): State.PathState => {
  const event = Math.floor(random() * 9);
  const jitter = random();
  if (event === 0) return State.recordResponse(state, canProbe, now);
  if (event === 1) return State.recordBreak(state, canProbe, now, jitter);
  if (event === 2) return State.recordConnectFailure(state, canProbe, "ECONNREFUSED", now, jitter);
  if (event === 3 && canProbe) return State.restartSchedule(state, now);
  if (event === 4 && !canProbe && state.state === "down" && now >= state.probeAt) return State.startTrial(state, now);
  if (event === 5 && !canProbe) return State.endTrial(state, now, jitter);
  if (event === 6 && state.state === "returning") return State.reset(state, now);
  if (!canProbe) return state;
  if (state.probing) return State.recordProbe(state, random() < 0.5 ? works : fails, now, jitter);
  return state.probeAt <= now ? State.startProbe(state, now) : State.requestProbe(state, now);
};

describe("a wave", () => {
  it("is eight requests, and each answered head admits two more", () => {
    const waves = new Waves(0);
    let went = 0;
    const fill = (): number => {
      const from = went;
      for (; waves.hasRoom; went += 1) waves.takeSlot();
      return went - from;
    };
    expect(fill()).toBe(firstWave);
    waves.recordResponse();
    waves.freeSlot();
    expect(fill()).toBe(2);
    const rounds = [];
    for (let round = 0; round < 5; round += 1) {
      for (let head = waves.inFlight; head > 0; head -= 1) {
        waves.recordResponse();
        waves.freeSlot();
      }
      rounds.push(fill());
    }
    expect(rounds).toEqual([18, 36, 72, 144, 288]);
  });

  it("doubles after a second without a refusal, and a refusal holds it back", () => {
    const waves = new Waves(0);
    waves.grow(waveQuietMs - 1);
    expect(waves.size).toBe(8);
    waves.grow(waveQuietMs);
    expect(waves.size).toBe(16);
    waves.recordRefusal(1_500);
    expect(waves.size).toBe(8);
    waves.grow(2_499);
    expect(waves.size).toBe(8);
    waves.grow(4_500);
    expect(waves.size).toBe(64);
    for (let n = 0; n < 20; n += 1) waves.recordRefusal(5_000);
    expect(waves.size).toBe(1);
  });

  it("counts only the heads of its own requests", () => {
    const waves = new Waves(0);
    for (let n = 0; n < 100; n += 1) waves.recordResponse();
    expect(waves.size).toBe(firstWave);
  });

  it("never admits more than eight plus one per head and the doubling of each quiet second", () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      const random = seeded(seed);
      const waves = new Waves(0);
      let now = 0;
      let most = firstWave;
      let quiet = 0;
      for (let step = 0; step < 400; step += 1) {
        const event = Math.floor(random() * 5);
        if (event === 0 && waves.hasRoom) waves.takeSlot();
        else if (event === 1 && waves.inFlight > 0) {
          waves.recordResponse();
          waves.freeSlot();
          most += 1;
        } else if (event === 2 && random() < 0.2) {
          waves.recordRefusal(now);
          quiet = now;
        } else if (event === 3) {
          now += Math.floor(random() * 400);
          for (; now - quiet >= waveQuietMs; quiet += waveQuietMs) most = Math.min(most * 2, 2 ** 21);
          waves.grow(now);
        }
        expect(waves.inFlight, `seed ${seed} step ${step}`).toBeLessThanOrEqual(most);
        expect(waves.size, `seed ${seed} step ${step}`).toBeGreaterThanOrEqual(1);
      }
    }
  });
});

const scope: Scope = { path: "a", credential: "c", model: "m" };
const limited = (waitMs: number) => ({ kind: "rate_limited" as const, waitMs, onlyThis: false });
const overloaded = (waitMs: number) => ({ kind: "overloaded" as const, waitMs, onlyThis: false });
const nobody = (): boolean => false;
const endOf = (cooldowns: Cooldowns, it: Scope, now: number): number =>
  Math.max(0, ...cooldowns.of(it, now).map((hold) => hold.endOf(it.credential)));

describe("a cooldown", () => {
  it("holds its path, credential and model, and no other", () => {
    const cooldowns = new Cooldowns(nobody);
    cooldowns.recordRefusal(scope, limited(10_000), 0);
    expect(endOf(cooldowns, scope, 0)).toBe(10_000);
    expect(endOf(cooldowns, { ...scope, path: "b" }, 0)).toBe(0);
    expect(endOf(cooldowns, { ...scope, credential: "d" }, 0)).toBe(0);
    expect(endOf(cooldowns, { ...scope, model: "n" }, 0)).toBe(0);
    expect(endOf(cooldowns, { ...scope, model: undefined }, 0)).toBe(0);
    expect(endOf(cooldowns, scope, 10_000)).toBe(0);
    expect(cooldowns.size).toBe(0);
  });

  it("that concerns a single request holds no other", () => {
    const cooldowns = new Cooldowns(nobody);
    cooldowns.recordRefusal(scope, { kind: "rate_limited", waitMs: 10_000, onlyThis: true }, 0);
    cooldowns.recordRefusal(scope, limited(0), 0);
    cooldowns.recordRefusal(scope, limited(Number.NaN), 0);
    cooldowns.recordRefusal(scope, limited(-5), 0);
    expect(cooldowns.size).toBe(0);
  });

  it("keeps the longer of two waits", () => {
    const cooldowns = new Cooldowns(nobody);
    cooldowns.recordRefusal(scope, limited(10_000), 0);
    cooldowns.recordRefusal(scope, limited(1_000), 500);
    expect(endOf(cooldowns, scope, 500)).toBe(10_000);
    cooldowns.recordRefusal(scope, limited(20_000), 1_000);
    expect(endOf(cooldowns, scope, 1_000)).toBe(21_000);
  });

  it("of an overload holds other credentials for five seconds, and to its end once two of them got it", () => {
    const cooldowns = new Cooldowns(nobody);
    const other = { ...scope, credential: "d" };
    cooldowns.recordRefusal(scope, overloaded(60_000), 0);
    expect(endOf(cooldowns, scope, 0)).toBe(60_000);
    expect(endOf(cooldowns, other, 0)).toBe(overloadOthersMs);
    expect(endOf(cooldowns, { ...other, model: "n" }, 0)).toBe(0);
    cooldowns.recordRefusal(scope, overloaded(60_000), 1_000);
    expect(endOf(cooldowns, other, 1_000)).toBe(1_000 + overloadOthersMs);
    cooldowns.recordRefusal(other, overloaded(10_000), 7_000);
    expect(endOf(cooldowns, other, 7_000)).toBe(61_000);
    expect(endOf(cooldowns, { ...scope, credential: "e" }, 7_000)).toBe(61_000);
  });

  it("of thirty days is bounded by the time a request keeps of others, and an endless one by a year", () => {
    const cooldowns = new Cooldowns(nobody);
    cooldowns.recordRefusal(scope, limited(2_592_000_000), 0);
    expect(cooldowns.of(scope, 0).map((hold) => hold.endFor("c", 60_000))).toEqual([60_000]);
    cooldowns.recordRefusal(scope, limited(Number.POSITIVE_INFINITY), 0);
    expect(endOf(cooldowns, scope, 0)).toBe(waitMaxMs);
  });

  it("has a trial whose head ends it, and whose refusal begins a new cooldown", () => {
    const cooldowns = new Cooldowns(nobody);
    cooldowns.recordRefusal(scope, limited(2_592_000_000), 0);
    const [hold] = cooldowns.of(scope, 60_000);
    if (hold === undefined) throw new Error("no cooldown");
    const trial = { answered: false };
    hold.trial = trial;
    hold.endTrial(trial, 60_100);
    expect(hold.until).toBe(2_592_000_000);
    const second = { answered: true };
    hold.trial = second;
    cooldowns.recordRefusal(scope, limited(5_000), 61_000);
    hold.endTrial(second, 61_100);
    expect(hold.until).toBe(66_000);
    const third = { answered: true };
    hold.trial = third;
    hold.endTrial(third, 62_000);
    expect(endOf(cooldowns, scope, 62_000)).toBe(0);
  });

  it("is one of a bounded number: the oldest is evicted, and never one that requests wait for", () => {
    const cooldowns = new Cooldowns((hold) => hold.credential === "waited");
    cooldowns.recordRefusal({ ...scope, credential: "waited" }, limited(1e9), 0);
    for (let n = 0; n < 100_000; n += 1) cooldowns.recordRefusal({ ...scope, credential: `c${n}` }, limited(1e9), n);
    expect(cooldowns.size).toBe(cooldownsMax);
    expect(endOf(cooldowns, { ...scope, credential: "waited" }, 100_000)).toBe(1e9);
    expect(endOf(cooldowns, { ...scope, credential: "c0" }, 100_000)).toBe(0);
    expect(endOf(cooldowns, { ...scope, credential: "c99999" }, 100_000)).toBe(1e9 + 99_999);
  });

  it("stays bounded even if requests wait for every one", () => {
    const cooldowns = new Cooldowns(() => true);
    for (let n = 0; n < cooldownsMax + 10; n += 1)
      cooldowns.recordRefusal({ ...scope, credential: `c${n}` }, limited(1e9), n);
    expect(cooldowns.size).toBe(cooldownsMax);
  });

  it("is identified by the beginning of a model's name, however long a client spells it", () => {
    const cooldowns = new Cooldowns(nobody);
    cooldowns.recordRefusal({ ...scope, model: "m".repeat(1_000_000) }, limited(1_000), 0);
    expect(cooldowns.byPath(0).get("a")?.[0]?.key.length).toBeLessThan(200);
  });

  it("never holds longer than the longest wait of its scope, over any sequence", () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      const random = seeded(seed);
      const cooldowns = new Cooldowns(nobody);
      const heard = new Map<string, number>();
      let now = 0;
      for (let step = 0; step < 200; step += 1) {
        now += Math.floor(random() ** 3 * 10_000);
        const at = { path: "a", credential: `c${Math.floor(random() * 3)}`, model: `m${Math.floor(random() * 2)}` };
        if (random() < 0.5) {
          const waitMs = Math.floor(random() ** 3 * 60_000);
          const isOverload = random() < 0.3;
          cooldowns.recordRefusal(at, isOverload ? overloaded(waitMs) : limited(waitMs), now);
          const key = isOverload ? `${at.model}` : `${at.model} ${at.credential}`;
          heard.set(key, Math.max(heard.get(key) ?? 0, now + waitMs));
        }
        const most = Math.max(heard.get(at.model) ?? 0, heard.get(`${at.model} ${at.credential}`) ?? 0);
        const least = heard.get(`${at.model} ${at.credential}`) ?? 0;
        const end = endOf(cooldowns, at, now);
        expect(end, `seed ${seed} step ${step}`).toBeLessThanOrEqual(most);
        if (least > now) expect(end, `seed ${seed} step ${step}`).toBeGreaterThanOrEqual(least);
      }
    }
  });
});
