/**
 * Writes one run's entries together with its pending evidence, and decides how a failed write affects the run.
 *
 * Commits are sequential and need no fiber, so a caller that leaves during a commit neither undoes it nor loses its entries. Entries that
 * have happened are kept in order until the store accepts them.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import { label } from "../../domain/Limits.ts";
import type { Evidence } from "../../domain/RunIncident.ts";
import type { BoundedRecorder, Committer } from "../../recorder/BoundedRecorder.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { isOfStore, type RecorderError } from "../../recorder/RecorderError.ts";
import type { Entry } from "../../recorder/RunRecord.ts";
import type { Queue } from "../../recorder/WriteQueue.ts";
import type { LedgerAttempt, NamedCall } from "../tools/ToolLedger.ts";
import {
  type Backlog,
  backlogPauseMs,
  factsRaised,
  inOrder,
  isNoEvidence,
  type Sending,
  type Unwritten,
  type Written,
  waiting,
} from "./Backlog.ts";
import { type Loss, losses, lossSentences } from "./Loss.ts";

/** Maximum entries of evidence that wait for the next commit. Further evidence is dropped and counted. */
const pendingMax = 64;

/**
 * Maximum time that an act (a call, a tool, a retry) waits for an unavailable store, if the act must be on record first, in milliseconds.
 */
export const storeWaitMs = 5_000;

/** The parts of a run that its writer uses. */
interface Owner {
  readonly runId: string;
  /** Milliseconds since the run started. */
  readonly elapsedMs: number;
  /** The services of the run's own fibers. */
  readonly services: Context.Context<never>;
  /** Completes as soon as the run is stopped. */
  readonly stopped: Deferred.Deferred<void>;
  /** Called when the run may no longer act. */
  readonly onLost: (why: Loss) => void;
  /** Called when the store did not accept a due write. `first` is true for the write after which the run continues unrecorded. */
  readonly onUnrecorded: (reason: string, first: boolean) => void;
}

/** Called when a write has ended, possibly within the call. */
type OnWritten = (written: Written) => void;

/** Waits for the result that `ask` reports. A result within the call allocates nothing. */
const awaitResult = (ask: (onDone: OnWritten) => void): Effect.Effect<Written> =>
  Effect.suspend(() => {
    let now: Written | undefined;
    let later: Deferred.Deferred<Written> | undefined;
    ask((written) => {
      now = written;
      if (later !== undefined) Deferred.doneUnsafe(later, Effect.succeed(written));
    });
    if (now !== undefined) return Effect.succeed(now);
    later = Deferred.makeUnsafe<Written>();
    return Deferred.await(later);
  });

/** Shared by all runs without pending entries. */
const none: ReadonlyArray<never> = [];

/** One run's side of the recorder. */
export class RunWriter implements Unwritten, Committer {
  readonly #owner: Owner;
  readonly #recorder: BoundedRecorder;
  readonly #backlog: Backlog;
  /** The queue of a volatile run; undefined if the run is durable. */
  readonly #queue: Queue | undefined;
  /** True while a question is open or its answer is carried out. Meanwhile the run waits for the record of every entry (L8). */
  #asks = false;
  /** Pending evidence; undefined if there is none. */
  #pending: Array<Entry> | undefined;
  /** Entries that have happened but that the store did not accept. The next write begins with them. */
  #unwritten: ReadonlyArray<Entry> = none;
  #dropped = 0;
  #loss: Loss | undefined;
  #refusal: RecorderError["reason"] | undefined;
  #beginning = false;
  #away = false;
  /** Number of times that pending entries were abandoned. */
  #givenUp = 0;
  /** True if an entry other than evidence will never be on record. The run then starts nothing more (L8). */
  #hasGap = false;
  /** True while a commit is in flight. Further commits wait for it. */
  #isBusy = false;
  /** Waiting commits, in order; undefined if there are none. */
  #turns: Array<() => void> | undefined;

  /** @param queue the queue of a volatile run; undefined for a durable one */
  constructor(owner: Owner, recorder: BoundedRecorder, backlog: Backlog, queue?: Queue) {
    this.#owner = owner;
    this.#recorder = recorder;
    this.#backlog = backlog;
    this.#queue = queue;
  }

  get runId(): string {
    return this.#owner.runId;
  }

  get services(): Context.Context<never> {
    return this.#owner.services;
  }

  isOurs(): boolean {
    return this.#loss === undefined;
  }

  /** Notes evidence, which the next write commits. */
  note(attempt: number, event: Evidence["event"], detail?: string): void {
    if (this.#pending !== undefined && this.#pending.length >= pendingMax) {
      this.#dropped += 1;
      return;
    }
    const at_ms = this.#owner.elapsedMs;
    const evidence =
      detail === undefined ? { at_ms, attempt, event } : { at_ms, attempt, event, detail: label(detail) };
    const entry: Entry = { _tag: "EvidenceNoted", evidence };
    this.#pending ??= [];
    this.#pending.push(this.#dropped === 0 ? entry : { ...entry, omitted: this.#dropped });
    this.#dropped = 0;
  }

  /**
   * Commits entries with the pending evidence. A failure is logged, counted and remembered.
   *
   * @param happened true if the entries have happened, recorded or not: they are kept while the store is unavailable, and precede the next
   *   write. Other entries announce an act that the caller carries out only after they are written.
   */
  write(entries: ReadonlyArray<Entry>, happened = false): Effect.Effect<Written> {
    const queue = this.#queue;
    if (queue === undefined) return awaitResult((onDone) => this.#submit(entries, { happened, isNews: true }, onDone));
    return Effect.suspend(() => (this.#asks ? this.#through(queue, entries) : this.#behind(queue, entries)));
  }

  /** Like `write` for entries that have happened, but without a fiber of the caller. `onDone` may be called within the call. */
  writeThen(entries: ReadonlyArray<Entry>, onDone: OnWritten): void {
    const queue = this.#queue;
    if (queue === undefined) this.#submit(entries, { happened: true, isNews: true }, onDone);
    else if (this.#asks) this.#fork(Effect.map(this.#through(queue, entries), onDone));
    else {
      this.#enqueue(queue, entries);
      onDone("recorded");
    }
  }

  #behind(queue: Queue, entries: ReadonlyArray<Entry>): Effect.Effect<Written> {
    this.#enqueue(queue, entries);
    return Effect.succeed("recorded");
  }

  /** Queues entries of a volatile run and waits until all of its entries are on record, for at most `storeWaitMs`. */
  #through(queue: Queue, entries: ReadonlyArray<Entry>, untilStopped = true): Effect.Effect<Written> {
    this.#enqueue(queue, entries);
    const recorded = queue.awaitRecorded(this.runId, storeWaitMs);
    const stopped = Effect.as(Deferred.await(this.#owner.stopped), false);
    const isOnRecord = untilStopped ? Effect.raceFirst(recorded, stopped) : recorded;
    return Effect.map(isOnRecord, (it) => (it ? "recorded" : "away"));
  }

  #enqueue(queue: Queue, entries: ReadonlyArray<Entry>): void {
    queue.add(this.runId, inOrder({ entries, pending: this.#pending ?? none, unwritten: none }));
    this.#pending = undefined;
  }

  /** Makes the run wait for the record of every entry, until `endAsking`. */
  beginAsking(): void {
    this.#asks = true;
  }

  /** Called when the answer was carried out. */
  endAsking(): void {
    this.#asks = false;
  }

  /**
   * Commits entries that every run must have on record before its caller acts: a guarded tool's dispatch and outcome, a question.
   *
   * @param untilStopped true if a stop of the run ends the wait. The outcome of a tool is awaited even then
   * @returns true if everything of the run is on record
   */
  writeThrough(entries: ReadonlyArray<Entry>, untilStopped = true): Effect.Effect<boolean> {
    const queue = this.#queue;
    if (queue === undefined) return this.writeFirst(entries, true);
    return Effect.suspend(() =>
      Effect.map(this.#through(queue, entries, untilStopped), (written) => written === "recorded"),
    );
  }

  /**
   * Commits entries that must be on record before their caller acts. While the store is unavailable, waits until the run is stopped, for at
   * most `storeWaitMs` (L8).
   *
   * @param happened as for `write`
   * @returns true if everything of the run is on record; never true again after the store has rejected an entry of the run for good
   */
  writeFirst(entries: ReadonlyArray<Entry>, happened = false): Effect.Effect<boolean> {
    return Effect.flatMap(Clock.Clock, (clock) => {
      const wait = this.#beginWait(clock, happened ? none : entries, happened);
      return Effect.flatMap(this.write(entries, happened), wait);
    });
  }

  /**
   * Begins to wait for a write. The result repeats the write while the store is unavailable, and returns true if everything is on record.
   */
  #beginWait(
    clock: Clock.Clock,
    entries: ReadonlyArray<Entry>,
    happened: boolean,
  ): (first: Written) => Effect.Effect<boolean> {
    const givenUp = this.#givenUp;
    // Monotonic time, because a wall clock that is set back must not block the caller (L11).
    const until = monotonicMs(clock) + storeWaitMs;
    const retryWrite = Effect.fnUntraced(function* (this: RunWriter, first: Written) {
      let written = first;
      const stopped = Deferred.await(this.#owner.stopped);
      while (written === "away" && this.#queue === undefined && !this.#hasGap && monotonicMs(clock) < until) {
        yield* Effect.raceFirst(Effect.sleep(Duration.millis(backlogPauseMs)), stopped);
        if (Deferred.isDoneUnsafe(this.#owner.stopped)) break;
        written = yield* awaitResult((onDone) => this.#submit(entries, { happened, isNews: false }, onDone));
      }
      // Abandoned entries are no longer pending, but they are not on record either.
      return written === "recorded" && this.#givenUp === givenUp && !this.#hasGap;
    });
    return (first) => retryWrite.call(this, first);
  }

  /**
   * Commits the facts of an attempt, with the calls that are about to be handed over.
   *
   * @param first true if the hand-over waits for an unavailable store
   * @param may called with true if the entries are on record; returns true if the run may hand over
   * @returns the later result of `may`, or true if the store took the entries within the call
   */
  writeShown(
    attempt: LedgerAttempt,
    calls: ReadonlyArray<NamedCall>,
    first: boolean,
    may: (isOnRecord: boolean) => boolean,
  ): true | Deferred.Deferred<boolean> {
    const handedOver = calls.map(
      ({ call, id, tool }): Entry => ({ _tag: "CallHandedOver", attempt: attempt.number, call, id, tool }),
    );
    const wait = first ? this.#beginWait(Context.get(this.#owner.services, Clock.Clock), none, true) : undefined;
    // A third-party store may run code that stops this run during the commit, so the hand-over is decided after the commit.
    let mayAnswerNow = this.#queue !== undefined || this.#recorder.commitsAtOnce;
    let isTaken = false;
    let done: Deferred.Deferred<boolean> | undefined;
    this.writeThen([...handedOver, factsRaised(attempt)], (written) => {
      isTaken = mayAnswerNow && written === "recorded" && !this.#hasGap && this.#loss === undefined;
      if (isTaken) return;
      done ??= Deferred.makeUnsafe<boolean>();
      // The write is not part of the reader's pull. If the pull is interrupted, the next pull finds the write in progress.
      if (wait === undefined) Deferred.doneUnsafe(done, Effect.succeed(may(written === "recorded")));
      else this.#fork(Deferred.into(Effect.map(wait(written), may), done));
    });
    mayAnswerNow = false;
    if (isTaken) return true;
    done ??= Deferred.makeUnsafe<boolean>();
    return done;
  }

  /**
   * Commits the entries that begin the run. While the store is unavailable, the run begins unrecorded.
   *
   * @returns the reason why the store refuses the run, undefined if the run may begin
   */
  begin(entries: ReadonlyArray<Entry>): Effect.Effect<RecorderError["reason"] | undefined> {
    return Effect.suspend(() => {
      this.#beginning = true;
      return Effect.map(this.write(entries, true), () => {
        this.#beginning = false;
        return this.#refusal;
      });
    });
  }

  /** Writes the pending entries. */
  get flush(): Effect.Effect<Written> {
    if (this.#queue !== undefined) return Effect.succeed("recorded");
    return awaitResult((onDone) => this.#submit(none, { happened: true, isNews: false }, onDone));
  }

  /** Called when the recorder finds that another process owns the run. This process writes nothing more of it. */
  onTakenOver(): void {
    // Another owner stops only a durable run (L8).
    if (this.#loss !== undefined || this.#queue !== undefined) return;
    this.#loss = "taken_over";
    this.#backlog.remove(this);
    this.giveUp();
    this.#owner.onLost("taken_over");
  }

  giveUp(): number {
    const lost = this.#unwritten.length;
    this.#givenUp += 1;
    this.#unwritten = none;
    this.#pending = undefined;
    return lost;
  }

  #fork(effect: Effect.Effect<unknown>): void {
    // Uses the run's own span and clock, even if a close or the write of another run starts the effect.
    Effect.runForkWith(this.#owner.services)(effect);
  }

  /**
   * Commits entries after those that were submitted earlier.
   *
   * @param isNews true if the run is notified of a failure
   */
  #submit(
    entries: ReadonlyArray<Entry>,
    { happened, isNews }: { readonly happened: boolean; readonly isNews: boolean },
    onDone: OnWritten,
  ): void {
    const send = (): void => {
      if (this.#loss !== undefined) {
        this.#end("lost", onDone);
        return;
      }
      const [pending, unwritten] = [this.#pending ?? none, this.#unwritten];
      [this.#pending, this.#unwritten] = [undefined, none];
      this.#commit({ unwritten, pending, entries, happened, isNews, refused: false }, onDone);
    };
    if (this.#isBusy) {
      this.#turns ??= [];
      this.#turns.push(send);
      return;
    }
    // Set before the store is called, so that a write from within that call waits its turn.
    this.#isBusy = true;
    send();
  }

  #end(written: Written, onDone: OnWritten): void {
    const next = this.#turns?.shift();
    if (next === undefined) this.#isBusy = false;
    onDone(written);
    next?.();
  }

  #commit(sending: Sending, onDone: OnWritten): void {
    const all = inOrder(sending);
    const made = sending.refused ? "gone" : "recorded";
    if (all.length === 0) {
      this.#end(made, onDone);
      return;
    }
    this.#recorder.commit(this.runId, all, this, (why) => {
      if (why === undefined) this.#end(this.#onSuccess(made), onDone);
      // The recorder may have reported the loss while this commit was in flight.
      else if (this.#loss !== undefined) this.#end("lost", onDone);
      else this.#onFailure(sending, all, why, onDone);
    });
  }

  /**
   * Handles a write that the store did not accept.
   *
   * @param all the entries that were sent, in order
   */
  #onFailure(sending: Sending, all: ReadonlyArray<Entry>, why: RecorderError, onDone: OnWritten): void {
    const { entries, happened, isNews, pending, unwritten } = sending;
    const misfit = why.reason === "invalid" && !this.#beginning ? all[why.entry ?? -1] : undefined;
    if (misfit !== undefined) this.#without(sending, misfit, why, onDone);
    else if (!isOfStore(why)) this.#end(this.#onRefusal(why.reason, sending), onDone);
    else {
      this.#unwritten = waiting([...unwritten, ...this.#unwritten, ...(happened ? entries : [])]);
      this.#pending = [...pending, ...(this.#pending ?? none)].slice(0, pendingMax);
      this.#end(this.#keepForLater(why.reason, isNews), onDone);
    }
  }

  /**
   * Writes a batch again without an entry that could never be read back. Entries that have happened are recorded without it. Entries that
   * announce an act are all or nothing: if one is missing, none is recorded and the caller does not act.
   */
  #without(sending: Sending, misfit: Entry, { message, reason }: RecorderError, onDone: OnWritten): void {
    const isMeant = !sending.happened && sending.entries.includes(misfit);
    if (isNoEvidence(misfit) && !isMeant) this.#hasGap = true;
    if (sending.isNews) this.#owner.onUnrecorded(reason, false);
    const others = (entries: ReadonlyArray<Entry>) => entries.filter((it) => it !== misfit);
    this.#fork(
      Effect.logError(`could not record an entry of a run, and will not retry: ${message}`, {
        run_id: this.runId,
        entry: misfit._tag,
      }),
    );
    this.#commit(
      {
        ...sending,
        unwritten: others(sending.unwritten),
        pending: others(sending.pending),
        entries: isMeant ? none : others(sending.entries),
        refused: sending.refused || isNoEvidence(misfit),
      },
      onDone,
    );
  }

  #onSuccess(made: Written): Written {
    this.#away = false;
    this.#backlog.remove(this);
    this.#backlog.onStoreAvailable();
    return made;
  }

  /** Keeps entries that have happened while the store is unavailable. */
  #keepForLater(reason: string, isNews: boolean): Written {
    const first = !this.#away;
    this.#away = true;
    if (isNews) this.#owner.onUnrecorded(reason, first);
    this.#fork(this.#backlog.onStoreUnavailable(this.runId, reason));
    if (this.#unwritten.length > 0) this.#fork(this.#backlog.add(this));
    return "away";
  }

  /**
   * Ends the writes of a run that the store rejects. A process that lost its run must not act, because another process decides from the
   * facts written so far.
   */
  #onRefusal(reason: RecorderError["reason"], sending: Sending): Written {
    this.#backlog.remove(this);
    this.#refusal = reason;
    const { entries, happened, unwritten } = sending;
    if ([...unwritten, ...(happened ? entries : [])].some(isNoEvidence)) this.#hasGap = true;
    const loss = losses.get(reason);
    // `begin` reports the refusal to the caller.
    if (this.#beginning) return "lost";
    const told = { run_id: this.runId, reason, entries: inOrder(sending).length };
    if (loss === undefined) {
      this.#owner.onUnrecorded(reason, false);
      this.#fork(Effect.logError("could not record a run, and will not retry: its record is gone", told));
      return "gone";
    }
    this.#loss = loss;
    this.#owner.onLost(loss);
    this.#fork(Effect.logError(lossSentences[loss], told));
    return "lost";
  }
}
