/**
 * Keeps what the store did not take: runs with entries that have happened and are not on record yet. They are written as
 * soon as the store takes them, after any write that it took, from time to time, and once more when the processor closes.
 *
 * One fiber of the processor writes them, and sleeps while every run is on record. It knows a run by its writer alone.
 */
import * as Clock from "effect/Clock";
import type * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { monotonicMs, realClock } from "../../recorder/MonotonicTime.ts";
import type { Entry } from "../../recorder/RunRecord.ts";
import { OutageLog, saidAgainMs } from "../../recorder/shared/OutageLog.ts";
import type { LedgerAttempt } from "../tools/ToolLedger.ts";
import * as Measures from "./Measures.ts";

/** Most runs whose entries wait for the store. Of what comes beyond them the oldest is given up, counted and logged. */
export const backlogRunsMax = 10_000;

/** Most entries of a run that wait for the store; beyond them evidence is dropped first, and never the newest entry. */
const unwrittenMax = 256;

/** Pause before the store is tried again, in milliseconds; it doubles up to `backlogPauseMsMax` while the store is away. */
export const backlogPauseMs = 250;

/** Longest pause before the store is tried again, in milliseconds. */
export const backlogPauseMsMax = 30_000;

/** Longest that a processor which closes goes on writing what waits, in milliseconds. What is left then is lost, and logged. */
export const lastWritesMs = 3_000;

/** A process that ends does not wait for a test that stands its clock still. */
const realPause = Effect.provideService(Effect.sleep(backlogPauseMs), Clock.Clock, realClock);

const lastPause = Effect.raceFirst(Effect.sleep(backlogPauseMs), realPause);

/**
 * What became of a write. `away`: the store did not take it now. `gone`: it will never take all of it, or the run has no
 * record any more. `lost`: the run is not this process's to write any more.
 */
export type Written = "recorded" | "away" | "gone" | "lost";

/** A run with entries that wait. */
export interface Unwritten {
  readonly runId: string;
  /** Writes what waits. */
  readonly flush: Effect.Effect<Written>;
  /** Gives up what waits; how many entries that were. */
  readonly giveUp: () => number;
}

/** The runs of one processor whose entries wait for the store. */
export class Backlog {
  /** Each with the number of its coming: one that comes again while it is flushed waits for something else. */
  readonly #runs = new Map<Unwritten, number>();
  #came = 0;
  #wake = Deferred.makeUnsafe<void>();
  #closed = false;
  readonly #services: Context.Context<never>;
  readonly #outage = new OutageLog({
    away: "runs cannot be recorded; what happens is kept until the store takes it",
    back: "runs are recorded again",
  });
  /** What was given up for want of room and is not said yet. Monotonic milliseconds. */
  readonly #overflow = { runs: 0, entries: 0, run_id: "", saidAt: Number.NEGATIVE_INFINITY };

  private constructor(services: Context.Context<never>) {
    this.#services = services;
  }

  /** A backlog whose fiber ends with the scope. */
  static readonly make: Effect.Effect<Backlog, never, Scope.Scope> = Effect.gen(function* () {
    const backlog = new Backlog(yield* Effect.context<never>());
    yield* Effect.forkScoped(backlog.#work);
    return backlog;
  });

  /** Runs whose entries wait. */
  get size(): number {
    return this.#runs.size;
  }

  /** A run has entries that the store did not take. */
  add(run: Unwritten): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#runs.has(run)) return Effect.void;
      this.#take(run);
      this.#ring();
      if (this.#closed) return this.#giveUp("shutdown", run);
      const [oldest] = this.#runs.keys();
      return this.#runs.size > backlogRunsMax && oldest !== undefined ? this.#giveUp("overflow", oldest) : Effect.void;
    });
  }

  /** Everything of a run is on record, or will never be. */
  remove(run: Unwritten): void {
    this.#runs.delete(run);
  }

  /** Writes what waits of a run now; whether nothing of it waits any more. */
  flush(runId: string): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const waiting = [...this.#runs.keys()].filter((it) => it.runId === runId);
      return Effect.map(
        Effect.forEach(waiting, (it) => it.flush),
        (written) => !written.includes("away"),
      );
    });
  }

  /** The store has taken a write: it may take what waits. */
  storeTookOne(): void {
    if (this.#outage.isOn) Effect.runForkWith(this.#services)(this.#outage.worked);
    if (this.#runs.size > 0) this.#ring();
  }

  /** The store has not taken a write. The log says so for all runs together, and names the one at which it is said. */
  storeTookNone(run_id: string, reason: string): Effect.Effect<void> {
    return Effect.annotateLogs(this.#outage.failed(reason), { run_id });
  }

  /** Writes what waits a last time, for at most `lastWritesMs`. What comes later is tried once and then given up. */
  readonly close: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    const clocks = [yield* Clock.Clock, realClock];
    const begun = clocks.map(monotonicMs);
    while (this.#runs.size > 0) {
      yield* this.#pass;
      if (this.#runs.size === 0) break;
      const isOver = clocks.some((clock, index) => monotonicMs(clock) - (begun[index] ?? 0) >= lastWritesMs);
      if (isOver) yield* this.#giveUp("shutdown");
      else yield* lastPause;
    }
    yield* this.#sayOverflow;
    this.#closed = true;
  });

  /** Tries while something waits: by time, and soon after the store has taken a write. */
  readonly #work: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    let pause = backlogPauseMs;
    while (true) {
      if (this.#runs.size === 0) yield* Effect.suspend(() => Deferred.await(this.#wake));
      this.#wake = Deferred.makeUnsafe<void>();
      // A store that takes writes of some runs and not of others is not asked at every write.
      yield* Effect.sleep(Duration.millis(backlogPauseMs));
      const more = Duration.millis(pause - backlogPauseMs);
      if (pause > backlogPauseMs) yield* Effect.raceFirst(Deferred.await(this.#wake), Effect.sleep(more));
      pause = (yield* this.#pass) ? backlogPauseMs : Math.min(pause * 2, backlogPauseMsMax);
      if (this.#runs.size === 0) yield* this.#sayOverflow;
    }
  });

  /** Writes each run's entries until the store is away; whether it took all of them. */
  readonly #pass: Effect.Effect<boolean> = Effect.gen({ self: this }, function* () {
    for (const [run, came] of [...this.#runs]) {
      if ((yield* run.flush) !== "away") {
        // Its next write may have failed behind this one, and waits now.
        if (this.#runs.get(run) === came) this.#runs.delete(run);
        continue;
      }
      // Next time another run goes first: one that the store never takes holds up no other.
      this.#runs.delete(run);
      this.#take(run);
      return false;
    }
    return true;
  });

  #take(run: Unwritten): void {
    this.#came += 1;
    this.#runs.set(run, this.#came);
  }

  #ring(): void {
    Deferred.doneUnsafe(this.#wake, Effect.void);
  }

  /** Gives up what waits, of one run or of all, and says so: the record stays behind what happened. */
  #giveUp(why: "overflow" | "shutdown", only?: Unwritten): Effect.Effect<void> {
    return Effect.flatMap(Effect.context<never>(), (services) => {
      const runs = only === undefined ? [...this.#runs.keys()] : [only];
      let entries = 0;
      for (const run of runs) {
        this.#runs.delete(run);
        entries += run.giveUp();
      }
      Measures.measure(Measures.lostEntries, entries, { "stream_recovery.reason": why }, services);
      const lost = { runs: runs.length, entries, run_id: runs[0]?.runId ?? "" };
      return why === "overflow" ? this.#overflowed(lost) : givenUp(why, lost);
    });
  }

  /** Where the store stays away each new run may cost an older one its entries: that is said at most once a minute. */
  #overflowed({ entries, run_id, runs }: Lost): Effect.Effect<void> {
    return Effect.flatMap(Clock.Clock, (clock) => {
      const now = monotonicMs(clock);
      const overflow = this.#overflow;
      overflow.runs += runs;
      overflow.entries += entries;
      overflow.run_id = run_id;
      if (now - overflow.saidAt < saidAgainMs) return Effect.void;
      overflow.saidAt = now;
      return this.#sayOverflow;
    });
  }

  /** Says what was given up for want of room since that was said last. */
  readonly #sayOverflow: Effect.Effect<void> = Effect.suspend(() => {
    const { entries, run_id, runs } = this.#overflow;
    if (runs === 0) return Effect.void;
    this.#overflow.runs = 0;
    this.#overflow.entries = 0;
    return givenUp("overflow", { runs, entries, run_id });
  });
}

/** What was given up; `run_id` is that of one of the runs. */
interface Lost {
  readonly runs: number;
  readonly entries: number;
  readonly run_id: string;
}

const givenUp = (why: "overflow" | "shutdown", lost: Lost): Effect.Effect<void> =>
  Effect.logError("entries of runs could not be recorded and are given up", { why, ...lost });

/** Of an attempt's facts the newest are enough: they only grow (L1). */
export const waiting = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => {
  const newest = entries.filter(
    (it, index) => it._tag !== "FactsRaised" || !entries.slice(index + 1).some((later) => raisesSame(it, later)),
  );
  const kept = newest.length <= unwrittenMax ? newest : newest.filter(({ _tag }) => _tag !== "EvidenceNoted");
  // What begins the run and what happened last are what a record needs most.
  const half = unwrittenMax / 2;
  return kept.length <= unwrittenMax ? kept : [...kept.slice(0, half), ...kept.slice(-half)];
};

const raisesSame = ({ attempt }: Extract<Entry, { readonly _tag: "FactsRaised" }>, later: Entry): boolean =>
  later._tag === "FactsRaised" && later.attempt === attempt;

/** Whether the record would lack a fact without the entry. */
export const isNoEvidence = ({ _tag }: Entry): boolean => _tag !== "EvidenceNoted";

/** A write with what goes before it. */
export interface Sending {
  readonly unwritten: ReadonlyArray<Entry>;
  readonly pending: ReadonlyArray<Entry>;
  readonly entries: ReadonlyArray<Entry>;
  readonly happened: boolean;
  /** A failure is a new one, and is told to the run. */
  readonly told: boolean;
  /** An entry was refused for good, and the others go without it. */
  readonly refused: boolean;
}

/** All of a write in its order: what was not written, then the evidence that waits. */
export const inOrder = ({
  entries,
  pending,
  unwritten,
}: Pick<Sending, "entries" | "pending" | "unwritten">): ReadonlyArray<Entry> => {
  // Nearly every write has nothing before it but evidence.
  const before = unwritten.length === 0 ? pending : unwritten.concat(pending);
  if (before.length === 0) return entries;
  const [first] = entries;
  // Evidence of the beginning comes after the entry that begins the run.
  if (first?._tag === "RunStarted") return [...unwritten, first, ...pending, ...entries.slice(1)];
  return before.concat(entries);
};

/** What is known of an attempt by now, as an entry. */
export const factsRaised = ({ facts, number }: LedgerAttempt): Extract<Entry, { readonly _tag: "FactsRaised" }> => ({
  _tag: "FactsRaised",
  attempt: number,
  facts: facts.snapshot(),
});
