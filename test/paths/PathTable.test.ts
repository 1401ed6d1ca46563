/**
 * Plays random worlds against the table of paths: paths come and go, and requests are admitted, fail, are refused and are cancelled.
 * The world keeps its own state and compares it with the table after each event.
 */
import { describe, expect, it } from "@effect/vitest";
import type { Admitted, Scope, Wait } from "../../src/paths/Admission.ts";
import { waitingMax } from "../../src/paths/Departures.ts";
import type { DueProbe, TableWorld } from "../../src/paths/Entry.ts";
import { PathTable, pathsMax } from "../../src/paths/PathTable.ts";
import { seeded } from "../Seeded.ts";

/** A request in the world. */
interface Asked {
  readonly scope: Scope;
  readonly at: number;
  readonly deadline: number;
  readonly maxRetryAfterMs: number;
  readonly told: Array<Wait>;
  readonly ends: Array<Admitted>;
  leave: (() => void) | undefined;
  readonly cancel: () => void;
  cancelled: boolean;
}

/** A violated rule, thrown with the world's seed so that it can be played again. */
class Broken extends Error {}

class World {
  now = 0;
  readonly random: () => number;
  readonly seed: number;
  readonly well = new Map<string, boolean>();
  readonly canProbe = new Map<string, boolean>();
  readonly asked: Array<Asked> = [];
  readonly probes: Array<{ readonly probe: DueProbe; readonly at: number }> = [];
  readonly cooling = new Map<string, number>();
  readonly table: PathTable;
  looks = 0;

  constructor(seed: number) {
    this.seed = seed;
    this.random = seeded(seed);
    this.table = new PathTable({
      now: () => this.now,
      wallNow: () => this.now + 1e12,
      jitter: () => this.random(),
      onDue: () => {},
      probe: (due) => {
        this.hold(!this.probes.some((it) => it.probe.path === due.path), "two probes of a path at a time");
        this.probes.push({ probe: due, at: this.now + this.below(300) });
      },
      onError: (error) => {
        throw error;
      },
    });
    for (const path of ["a", "b", "c"]) {
      this.well.set(path, true);
      const canProbe = path !== "c";
      this.canProbe.set(path, canProbe);
      if (canProbe) this.table.attach(path, { probe: undefined as never, dropIdle: () => {} });
      this.table.markReached(path);
    }
  }

  hold(isTrue: boolean, what: string): void {
    if (!isTrue) throw new Broken(`${what} (seed ${this.seed}, at ${this.now})`);
  }

  below(bound: number): number {
    return Math.floor(this.random() * bound);
  }

  scope(): Scope {
    return { path: "abc"[this.below(3)] ?? "a", credential: `k${this.below(2)}`, model: `m${this.below(2)}` };
  }

  /** Advances the time and runs everything that becomes due. */
  until(to: number): void {
    let spins = 0;
    for (;;) {
      const probe = Math.min(...this.probes.map(({ at }) => at), Number.POSITIVE_INFINITY);
      const at = Math.min(this.table.nextAt(), probe);
      if (at > to) break;
      spins = at > this.now ? 0 : spins + 1;
      this.hold(spins < 20, "the table has something to do for ever");
      this.now = Math.max(this.now, at);
      this.answerProbes();
      this.table.runDue();
      this.check();
    }
    this.now = to;
  }

  answerProbes(): void {
    for (const due of this.probes.filter(({ at }) => at <= this.now)) {
      this.probes.splice(this.probes.indexOf(due), 1);
      const works = this.well.get(due.probe.path) === true;
      this.table.recordProbe(due.probe, works ? { _tag: "works" } : { _tag: "failed", reason: "network" });
    }
  }

  ask(): void {
    const scope = this.scope();
    const within = [0, 500, 20_000, 120_000, Number.POSITIVE_INFINITY][this.below(5)] ?? 0;
    const maxRetryAfterMs = [1_000, 10_000, 60_000][this.below(3)] ?? 0;
    const ends: Array<Admitted> = [];
    const told: Array<Wait> = [];
    let leave: (() => void) | undefined;
    const cancel = this.table.admit(
      {
        scope,
        maxRetryAfterMs,
        withinMs: within,
        onWait: (wait) => void told.push(wait),
        hold: (given) => {
          leave = given;
          this.checkGoing(scope, maxRetryAfterMs);
        },
      },
      (admitted) => void ends.push(admitted),
    );
    this.asked.push({
      scope,
      at: this.now,
      deadline: this.now + within,
      maxRetryAfterMs,
      told,
      ends,
      get leave() {
        return leave;
      },
      set leave(given) {
        leave = given;
      },
      cancel,
      cancelled: false,
    });
  }

  /** Finishes an admitted request in some way. */
  finish(request: Asked, calm: boolean): void {
    const { scope, leave } = request;
    request.leave = undefined;
    const event = calm ? 0 : this.below(8);
    if (this.well.get(scope.path) === false) {
      if (event < 5) this.table.recordConnectFailure(scope, "ECONNREFUSED", () => {});
      else this.table.recordBreak(scope);
    } else if (event < 4) this.table.recordResponse(scope);
    else if (event < 6) {
      this.table.recordResponse(scope);
      const isOverload = this.random() < 0.3;
      const waitMs = Math.floor(this.random() ** 2 * (this.random() < 0.1 ? 2_592_000_000 : 30_000));
      this.table.recordRefusal(scope, { kind: isOverload ? "overloaded" : "rate_limited", waitMs, onlyThis: false });
    } else if (event < 7) this.table.recordBreak(scope);
    leave?.();
    leave?.();
  }

  get waiting(): ReadonlyArray<Asked> {
    return this.asked.filter(({ ends, cancelled }) => ends.length === 0 && !cancelled);
  }

  get going(): ReadonlyArray<Asked> {
    return this.asked.filter(({ leave }) => leave !== undefined);
  }

  check(): void {
    const listed = this.table.list().reduce((sum, { waiting }) => sum + waiting, 0);
    this.hold(listed === this.waiting.length, `${listed} wait instead of ${this.waiting.length}`);
    for (const request of this.asked) {
      this.hold(request.ends.length <= 1, "a request that ends twice");
      const [end] = request.ends;
      if (end === undefined && !request.cancelled) {
        this.hold(request.told.length > 0, "a request that waits and was not told");
        this.hold(request.deadline >= this.now, "a request that waits beyond its time");
      }
      this.hold(end?._tag !== "admitted" || end.waitedMs <= request.deadline - request.at + 1, "let go too late");
    }
    for (const { path, state } of this.table.list()) {
      const scope = { path, credential: "new", model: "new" };
      this.hold(
        this.table.isOpen(scope) === (state === "up"),
        "a scope of which nothing is known is open while its path is up",
      );
    }
  }

  /** Checks a request that is admitted in this step. */
  checkGoing(scope: Scope, maxRetryAfterMs: number): void {
    const path = this.table.list().find((it) => it.path === scope.path);
    this.hold(path?.state !== "down" || !this.canProbe.get(scope.path), "let go while its path is down");
    this.hold(this.table.standingOf(scope, maxRetryAfterMs).cooldownMs === 0, "let go while its scope cools");
  }

  event(): void {
    const event = this.below(16);
    if (event < 9) this.ask();
    else if (event < 13) {
      const request = this.going[this.below(this.going.length)];
      if (request !== undefined) this.finish(request, false);
    } else if (event === 13) {
      const request = this.waiting[this.below(this.waiting.length)];
      request?.cancel();
      if (request !== undefined) request.cancelled = true;
    } else if (event === 14) {
      const path = "abc"[this.below(3)] ?? "a";
      this.well.set(path, this.random() < 0.35);
    } else this.rare();
  }

  rare(): void {
    const path = "abc"[this.below(3)] ?? "a";
    const event = this.below(4);
    if (event === 0) this.probes.length = 0;
    if (event === 0) this.table.onWake();
    else if (event === 1) this.table.isLost(path, () => {});
    else if (event === 2) this.table.tryNow(path, () => {});
    else for (let n = 0; n < 10; n += 1) this.table.recordBreak(this.scope());
  }

  /** Heals every path: all waiting requests are admitted, and nothing is left to do. */
  end(): void {
    for (const path of this.well.keys()) this.well.set(path, true);
    for (let n = 0; n < 5_000 && (this.waiting.length > 0 || this.going.length > 0); n += 1) {
      for (const request of this.going) this.finish(request, true);
      this.until(this.now + 500);
    }
    this.hold(this.waiting.length === 0, `${this.waiting.length} wait for ever`);
    this.until(this.now + 600_000);
    this.hold(this.table.nextAt() === Number.POSITIVE_INFINITY, "a table that is idle and has something to do");
    this.hold(
      this.table.list().every(({ state, waiting }) => state === "up" && waiting === 0),
      "a path that is well and not up",
    );
  }
}

const worldOf = (now: () => number, failures: Array<unknown> = []): TableWorld => ({
  now,
  wallNow: now,
  jitter: () => 0.5,
  onDue: () => {},
  probe: () => {},
  onError: (error) => void failures.push(error),
});

describe("the table of paths", () => {
  it("loses no request, ends none twice, keeps every time limit and comes to rest, in any world", () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const world = new World(seed);
      for (let step = 0; step < 250; step += 1) {
        world.event();
        world.check();
        if (world.random() < 0.5) world.until(world.now + Math.floor(world.random() ** 4 * 4_000));
      }
      world.end();
    }
  });

  it("lets runs that are admitted at once ask again in the same step, ten thousand in a row", () => {
    let now = 0;
    const table = new PathTable(worldOf(() => now));
    const scope: Scope = { path: "a", credential: "", model: "m" };
    table.recordRefusal(scope, { kind: "rate_limited", waitMs: 1_000, onlyThis: false });
    let gone = 0;
    const ask = (then: () => void): void => {
      let leave = (): void => {};
      const admission = {
        scope,
        maxRetryAfterMs: 60_000,
        withinMs: Number.POSITIVE_INFINITY,
        onWait: () => {},
        hold: (given: () => void) => {
          leave = given;
        },
      };
      table.admit(admission, () => {
        gone += 1;
        table.recordResponse(scope);
        leave();
        then();
      });
    };
    for (let n = 0; n < waitingMax; n += 1) ask(() => (n % 2 === 0 ? ask(() => {}) : undefined));
    const full: Array<string> = [];
    table.admit(
      { scope, maxRetryAfterMs: 1, withinMs: 1e6, onWait: () => {}, hold: () => {} },
      ({ _tag }) => void full.push(_tag),
    );
    expect(full).toEqual(["full"]);
    now = 1_000;
    table.runDue();
    expect(gone).toBe(waitingMax * 1.5);
    expect(table.list()).toMatchObject([{ waiting: 0 }]);
  });

  it("keeps working if a listener throws, and reports the error", () => {
    let now = 0;
    const failures: Array<unknown> = [];
    const table = new PathTable(worldOf(() => now, failures));
    const scope: Scope = { path: "a", credential: "", model: "m" };
    table.recordRefusal(scope, { kind: "rate_limited", waitMs: 1_000, onlyThis: false });
    const gone: Array<number> = [];
    for (const n of [0, 1, 2]) {
      table.admit({ scope, maxRetryAfterMs: 60_000, withinMs: 60_000, onWait: () => {}, hold: () => {} }, () => {
        gone.push(n);
        if (n === 0) throw new Error("a run that dies");
      });
    }
    now = 1_000;
    table.runDue();
    expect(gone).toEqual([0, 1, 2]);
    expect(failures).toEqual([new Error("a run that dies")]);
  });

  it("keeps a bounded number of paths, never forgets one that requests wait for, and eventually forgets one that is down", () => {
    let now = 0;
    const table = new PathTable(worldOf(() => now));
    const scopeOf = (path: string): Scope => ({ path, credential: "", model: "m" });
    table.markReached("waited");
    table.recordConnectFailure(scopeOf("waited"), "ECONNREFUSED", () => {});
    table.admit(
      { scope: scopeOf("waited"), maxRetryAfterMs: 1, withinMs: 1e9, onWait: () => {}, hold: () => {} },
      () => {},
    );
    for (let n = 0; n < 10_000; n += 1) {
      now += 1;
      table.markReached(`p${n}`);
      table.recordConnectFailure(scopeOf(`p${n}`), "ECONNREFUSED", () => {});
    }
    expect(table.list().length).toBe(pathsMax);
    expect(table.list()[0]).toMatchObject({ path: "waited", state: "down", waiting: 1 });
    expect(table.standingOf(scopeOf("p9999"), 0).path).toBe("down");
    expect(table.standingOf(scopeOf("p0"), 0).path).toBe("up");
  });

  it("reads no clock to admit a request while nothing cools down", () => {
    let reads = 0;
    const now = (): number => {
      reads += 1;
      return 0;
    };
    const table = new PathTable(worldOf(now));
    const scope: Scope = { path: "a", credential: "c", model: "m" };
    table.recordResponse(scope);
    reads = 0;
    expect(table.isOpen(scope)).toBe(true);
    expect(reads).toBe(0);
  });
});

describe("a timer that rings a moment early", () => {
  it("is set again for work that becomes due during its run, because a wait was once never ended", () => {
    let now = 0;
    const ends: Array<Admitted> = [];
    const table = new PathTable({
      now: () => now,
      wallNow: () => now,
      jitter: () => 0,
      onDue: () => {},
      probe: () => {},
      onError: (error) => {
        throw error;
      },
    });
    const scope = { path: "early", credential: "k", model: "m" };
    table.recordRefusal(scope, { kind: "rate_limited", waitMs: 1_000, onlyThis: false });
    const admission = { scope, maxRetryAfterMs: 60_000, withinMs: 60_000, onWait: () => {}, hold: () => {} };
    table.admit(admission, (end) => ends.push(end));
    now = 999.8;
    table.runDue();
    expect(ends).toEqual([]);
    now = 1_000.1;
    expect(table.nextAt(999.8)).toBe(1_000);
    table.runDue();
    expect(ends.map(({ _tag }) => _tag)).toEqual(["admitted"]);
  });
});
