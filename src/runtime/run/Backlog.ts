/**
 * Keeps the entries of runs that the store did not accept. These entries describe what has already happened, so they are written as soon as
 * the store accepts writes again. The backlog tries after any successful write, at intervals, and once more when the processor closes.
 *
 * One fiber of the processor writes the entries, and sleeps while nothing is pending. It accesses a run only through the run's writer.
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

/** Maximum runs with pending entries. Beyond this limit the entries of the oldest run are abandoned, counted and logged. */
export const backlogRunsMax = 10_000;

/**
 * Maximum pending entries of a run. Beyond this limit evidence is dropped first, then entries from the middle, but never the newest entry.
 */
const unwrittenMax = 256;

/**
 * First pause before the store is tried again, in milliseconds. The pause doubles up to `backlogPauseMsMax` while the store is unavailable.
 */
export const backlogPauseMs = 250;

/** Maximum pause before the store is tried again, in milliseconds. */
export const backlogPauseMsMax = 30_000;

/** Maximum time that a closing processor spends on pending entries, in milliseconds. The remaining entries are lost and logged. */
export const lastWritesMs = 3_000;

/** A pause in real time, so that a test with a stopped clock cannot keep a process from ending. */
const realPause = Effect.provideService(Effect.sleep(backlogPauseMs), Clock.Clock, realClock);

const lastPause = Effect.raceFirst(Effect.sleep(backlogPauseMs), realPause);

/**
 * The result of a write. `away`: the store is unavailable. `gone`: the store will never accept all of the write, or the record of the run
 * no longer exists. `lost`: this process may no longer write the run.
 */
export type Written = "recorded" | "away" | "gone" | "lost";

/** A run with pending entries. */
export interface Unwritten {
  readonly runId: string;
  /** Writes the pending entries. */
  readonly flush: Effect.Effect<Written>;
  /** Abandons the pending entries and returns their number. */
  readonly giveUp: () => number;
}

/** The runs of one processor that have pending entries. */
export class Backlog {
  /** Each run with its arrival number. A run that arrives again while it is flushed has new entries and a new number. */
  readonly #runs = new Map<Unwritten, number>();
  #came = 0;
  #wake = Deferred.makeUnsafe<void>();
  #closed = false;
  readonly #services: Context.Context<never>;
  readonly #outage = new OutageLog({
    away: "cannot record runs; entries are kept until the store accepts them",
    back: "runs are recorded again",
  });
  /** Entries that were abandoned for lack of room and are not logged yet. `saidAt` is in monotonic milliseconds. */
  readonly #overflow = { runs: 0, entries: 0, run_id: "", saidAt: Number.NEGATIVE_INFINITY };

  private constructor(services: Context.Context<never>) {
    this.#services = services;
  }

  /** Creates a backlog whose fiber ends with the scope. */
  static readonly make: Effect.Effect<Backlog, never, Scope.Scope> = Effect.gen(function* () {
    const backlog = new Backlog(yield* Effect.context<never>());
    yield* Effect.forkScoped(backlog.#work);
    return backlog;
  });

  get size(): number {
    return this.#runs.size;
  }

  /** Adds a run with entries that the store did not accept. */
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

  /** Removes a run whose entries are all on record or will never be. */
  remove(run: Unwritten): void {
    this.#runs.delete(run);
  }

  /** Writes the pending entries of a run now. Returns true if none is still pending. */
  flush(runId: string): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const waiting = [...this.#runs.keys()].filter((it) => it.runId === runId);
      return Effect.map(
        Effect.forEach(waiting, (it) => it.flush),
        (written) => !written.includes("away"),
      );
    });
  }

  /** Called when the store has accepted a write. It may then accept the pending entries too. */
  onStoreAvailable(): void {
    if (this.#outage.isOn) Effect.runForkWith(this.#services)(this.#outage.recordSuccess);
    if (this.#runs.size > 0) this.#ring();
  }

  /** Called when the store has not accepted a write. The log reports the outage once for all runs, with the id of this run. */
  onStoreUnavailable(run_id: string, reason: string): Effect.Effect<void> {
    return Effect.annotateLogs(this.#outage.recordFailure(reason), { run_id });
  }

  /**
   * Writes the pending entries a last time, for at most `lastWritesMs`. The entries of a run that is added later are abandoned, because
   * they were already tried once.
   */
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

  /** Writes while runs are pending: at intervals, and soon after the store has accepted a write. */
  readonly #work: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    let pause = backlogPauseMs;
    while (true) {
      if (this.#runs.size === 0) yield* Effect.suspend(() => Deferred.await(this.#wake));
      this.#wake = Deferred.makeUnsafe<void>();
      // Pause first, because a store that accepts only some runs' writes must not be tried after each of those writes.
      yield* Effect.sleep(Duration.millis(backlogPauseMs));
      const more = Duration.millis(pause - backlogPauseMs);
      if (pause > backlogPauseMs) yield* Effect.raceFirst(Deferred.await(this.#wake), Effect.sleep(more));
      pause = (yield* this.#pass) ? backlogPauseMs : Math.min(pause * 2, backlogPauseMsMax);
      if (this.#runs.size === 0) yield* this.#sayOverflow;
    }
  });

  /** Writes the pending entries of each run until the store is unavailable. Returns true if the store accepted all of them. */
  readonly #pass: Effect.Effect<boolean> = Effect.gen({ self: this }, function* () {
    for (const [run, came] of [...this.#runs]) {
      if ((yield* run.flush) !== "away") {
        // A later write of this run may have failed in the meantime. Its entries are then still pending.
        if (this.#runs.get(run) === came) this.#runs.delete(run);
        continue;
      }
      // Move the run to the end, so that a run that the store never accepts does not block the others.
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

  /** Abandons the pending entries of one run or of all, and logs it, because their records are now incomplete. */
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
      return why === "overflow" ? this.#reportOverflow(lost) : logAbandoned(why, lost);
    });
  }

  /**
   * Logs an overflow at most once per minute, because each new run may displace the entries of an older one while the store is unavailable.
   */
  #reportOverflow({ entries, run_id, runs }: Lost): Effect.Effect<void> {
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

  /** Logs the entries that were abandoned for lack of room since the last log line about them. */
  readonly #sayOverflow: Effect.Effect<void> = Effect.suspend(() => {
    const { entries, run_id, runs } = this.#overflow;
    if (runs === 0) return Effect.void;
    this.#overflow.runs = 0;
    this.#overflow.entries = 0;
    return logAbandoned("overflow", { runs, entries, run_id });
  });
}

/** Abandoned entries; `run_id` names one of their runs. */
interface Lost {
  readonly runs: number;
  readonly entries: number;
  readonly run_id: string;
}

const logAbandoned = (why: "overflow" | "shutdown", lost: Lost): Effect.Effect<void> =>
  Effect.logError("could not record entries of runs; they are lost", { why, ...lost });

/** Selects the entries to keep for later. Only the newest facts of an attempt are kept, because facts only grow (L1). */
export const waiting = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => {
  const newest = entries.filter(
    (it, index) => it._tag !== "FactsRaised" || !entries.slice(index + 1).some((later) => isSameRaise(it, later)),
  );
  const kept = newest.length <= unwrittenMax ? newest : newest.filter(({ _tag }) => _tag !== "EvidenceNoted");
  // Keep the first and the last entries, because a record needs its start and its newest entries most.
  const half = unwrittenMax / 2;
  return kept.length <= unwrittenMax ? kept : [...kept.slice(0, half), ...kept.slice(-half)];
};

const isSameRaise = ({ attempt }: Extract<Entry, { readonly _tag: "FactsRaised" }>, later: Entry): boolean =>
  later._tag === "FactsRaised" && later.attempt === attempt;

/** Returns false if the entry is only evidence, which carries no fact. */
export const isNoEvidence = ({ _tag }: Entry): boolean => _tag !== "EvidenceNoted";

/** A write with the entries that precede it. */
export interface Sending {
  readonly unwritten: ReadonlyArray<Entry>;
  readonly pending: ReadonlyArray<Entry>;
  readonly entries: ReadonlyArray<Entry>;
  readonly happened: boolean;
  /** True if the run is notified of a failure. */
  readonly isNews: boolean;
  /** True if the store rejected an entry for good, so that the other entries are written without it. */
  readonly refused: boolean;
}

/** Returns all entries of a write in order: the unwritten ones, then the pending evidence, then the new entries. */
export const inOrder = ({
  entries,
  pending,
  unwritten,
}: Pick<Sending, "entries" | "pending" | "unwritten">): ReadonlyArray<Entry> => {
  // In nearly every write, only evidence precedes the new entries.
  const before = unwritten.length === 0 ? pending : unwritten.concat(pending);
  if (before.length === 0) return entries;
  const [first] = entries;
  // Evidence that was noted before the run started follows the entry that starts it.
  if (first?._tag === "RunStarted") return [...unwritten, first, ...pending, ...entries.slice(1)];
  return before.concat(entries);
};

/** Returns an entry with the current facts of an attempt. */
export const factsRaised = ({ facts, number }: LedgerAttempt): Extract<Entry, { readonly _tag: "FactsRaised" }> => ({
  _tag: "FactsRaised",
  attempt: number,
  facts: facts.snapshot(),
});
