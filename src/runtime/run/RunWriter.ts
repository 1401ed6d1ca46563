/**
 * Puts one run on record: its entries with the evidence that waits for them. It knows what a failed write means for the run.
 *
 * Its writes go one after the other, each in a fiber of its own: a caller that leaves in the middle of a write neither undoes
 * it nor loses its entries. A write that the store takes in the very step has no middle, and no fiber. The writer keeps what has
 * happened, in its order, until the store takes it.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import type * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Option from "effect/Option";
import { label } from "../../domain/Limits.ts";
import type { Evidence } from "../../domain/RunIncident.ts";
import type { BoundedRecorder } from "../../recorder/BoundedRecorder.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { isOfStore, type RecorderError } from "../../recorder/RecorderError.ts";
import type { Entry } from "../../recorder/RunRecord.ts";
import type { Told } from "../../recorder/RunRecorder.ts";
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

/** Most evidence that waits for the next commit; what comes beyond it is dropped and counted. */
const pendingMax = 64;

/** How long an act that has to be on record first (a call, a tool, a retry) waits for a store that is away, in milliseconds. */
export const storeWaitMs = 5_000;

/** What the writer needs of its run. */
interface Owner {
  readonly runId: string;
  /** Milliseconds since the run started. */
  readonly elapsedMs: number;
  /** What the run's own fibers run with. */
  readonly services: Context.Context<never>;
  /** Done as soon as the run is stopped. */
  readonly stopped: Deferred.Deferred<void>;
  /** The run may not act any more. */
  readonly lost: (why: Loss) => void;
  /** A write that was due was not taken; at the `first` of them the run begins to go on unrecorded. */
  readonly unrecorded: (reason: string, first: boolean) => void;
}

/** One write, from before its call of the store until its end. */
interface Turn {
  /** Made by the write that waits for it. */
  over: Deferred.Deferred<void> | undefined;
}

/** Waits until a write has ended. */
const isOver = (turn: Turn): Effect.Effect<void> => {
  turn.over ??= Deferred.makeUnsafe<void>();
  return Deferred.await(turn.over);
};

const recorded = Exit.succeed<Written>("recorded");
const lost = Exit.succeed<Written>("lost");

/** Shared by all runs of which nothing waits. */
const none: ReadonlyArray<never> = [];

/** One run's side of the recorder. */
export class RunWriter implements Unwritten {
  readonly #owner: Owner;
  readonly #recorder: BoundedRecorder;
  readonly #backlog: Backlog;
  /** Evidence that waits; undefined while none does. */
  #pending: Array<Entry> | undefined;
  /** What has happened although no write of it was taken: it goes before the next write. */
  #unwritten: ReadonlyArray<Entry> = none;
  #dropped = 0;
  #loss: Loss | undefined;
  #refusal: RecorderError["reason"] | undefined;
  #beginning = false;
  #away = false;
  /** How often what waited was given up. */
  #givenUp = 0;
  /** An entry that is no mere evidence will never be on record: the run starts nothing any more (L8). */
  #hasGap = false;
  /** The newest write, while it is under way: the next one waits for it. */
  #last: Turn | undefined;

  constructor(owner: Owner, recorder: BoundedRecorder, backlog: Backlog) {
    this.#owner = owner;
    this.#recorder = recorder;
    this.#backlog = backlog;
  }

  get runId(): string {
    return this.#owner.runId;
  }

  /** Notes evidence; it is committed with the next write. */
  note(attempt: number, event: Evidence["event"], detail?: string): void {
    if (this.#pending !== undefined && this.#pending.length >= pendingMax) {
      this.#dropped += 1;
      return;
    }
    const evidence = {
      at_ms: this.#owner.elapsedMs,
      attempt,
      event,
      ...(detail === undefined ? {} : { detail: label(detail) }),
    };
    this.#pending ??= [];
    this.#pending.push({ _tag: "EvidenceNoted", evidence, ...(this.#dropped === 0 ? {} : { omitted: this.#dropped }) });
    this.#dropped = 0;
  }

  /**
   * Commits entries with the evidence that waits. A failure is logged, counted and remembered.
   *
   * @param happened the entries are true whether they are on record or not: while the store takes nothing they wait, and go
   *   before the next write. Other entries say what their caller does only once they are written.
   */
  write(entries: ReadonlyArray<Entry>, happened = false): Effect.Effect<Written> {
    return Effect.suspend(() => {
      if (this.#writesNow(entries)) return recorded;
      const done = Deferred.makeUnsafe<Written>();
      if (this.#writesSoon(entries, happened, (exit) => Deferred.doneUnsafe(done, exit))) return Deferred.await(done);
      return this.#inTurn(() => this.#send(entries, happened, true));
    });
  }

  /** As `write`, of what has happened, and without a fiber of its caller's: `over` hears of its end, maybe in this very step. */
  writeThen(entries: ReadonlyArray<Entry>, over: (exit: Exit.Exit<Written>) => void): void {
    if (this.#writesNow(entries)) over(recorded);
    else if (!this.#writesSoon(entries, true, over))
      Effect.runForkWith(this.#owner.services)(this.#turn(() => this.#send(entries, true, true))).addObserver(over);
  }

  /**
   * Commits entries with the evidence that waits, where the store takes them in this very step.
   *
   * @returns false where it does not, whatever the reason: then nothing has changed, and `write` finds out
   */
  #writesNow(entries: ReadonlyArray<Entry>): boolean {
    const { writeAtOnce } = this.#recorder;
    if (writeAtOnce === undefined || this.#last !== undefined || this.#loss !== undefined) return false;
    const all = inOrder({ entries, pending: this.#pending ?? none, unwritten: this.#unwritten });
    try {
      if (all.length > 0 && writeAtOnce(this.runId, all) !== undefined) return false;
    } catch {
      return false;
    }
    this.#pending = undefined;
    this.#unwritten = none;
    if (all.length > 0) this.#taken("recorded");
    return true;
  }

  /**
   * Commits entries with the evidence that waits, where the store commits those of several runs together: no fiber is made for
   * it. What the store does not commit so is sent as any other write, in the same turn.
   *
   * @param over hears of the end of the write, in a later step
   * @returns false where the store does not take it: then nothing has changed
   */
  #writesSoon(entries: ReadonlyArray<Entry>, happened: boolean, over: (exit: Exit.Exit<Written>) => void): boolean {
    const { writeTogether } = this.#recorder;
    if (writeTogether === undefined || this.#last !== undefined || this.#loss !== undefined) return false;
    const before = { unwritten: this.#unwritten, pending: this.#pending };
    const sending = { ...before, pending: before.pending ?? none, entries, happened, told: true, refused: false };
    const all = inOrder(sending);
    if (all.length === 0) return false;
    const mine = this.#began();
    const told: Told = (isOnRecord, why): void => {
      if (!isOnRecord) {
        const sent = Effect.suspend(() => {
          if (this.#loss !== undefined) return lost;
          return why === undefined ? this.#commit(sending) : this.#failed(sending, all, why);
        });
        Effect.runForkWith(this.#owner.services)(this.#ending(mine, sent)).addObserver(over);
        return;
      }
      this.#taken("recorded");
      this.#over(mine);
      over(recorded);
    };
    [this.#unwritten, this.#pending] = [none, undefined];
    try {
      if (writeTogether(this.runId, all, told, this.#owner.services)) return true;
    } catch {
      // What is wrong with it, the other way finds out.
    }
    [this.#unwritten, this.#pending] = [before.unwritten, before.pending];
    this.#over(mine);
    return false;
  }

  /**
   * Commits entries that must be on record before their caller acts. While the store is away it waits, for at most `storeWaitMs`
   * and until the run is stopped (L8).
   *
   * @param happened as for `write`
   * @returns whether everything of the run is on record; never again where something of it was refused for good
   */
  writeFirst(entries: ReadonlyArray<Entry>, happened = false): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function* () {
      const clock = yield* Clock.Clock;
      // A wall clock that is set back must not hold its caller (L11).
      const until = monotonicMs(clock) + storeWaitMs;
      const givenUp = this.#givenUp;
      let written = yield* this.write(entries, happened);
      const stopped = Deferred.await(this.#owner.stopped);
      while (written === "away" && !this.#hasGap && monotonicMs(clock) < until) {
        const pause = Effect.raceFirst(Effect.sleep(Duration.millis(backlogPauseMs)), stopped);
        yield* pause;
        if (Deferred.isDoneUnsafe(this.#owner.stopped)) break;
        written = yield* this.#inTurn(() => this.#send(happened ? [] : entries, happened, false));
      }
      // Nothing waits any more where all of it was given up, and none of it is on record.
      return written === "recorded" && this.#givenUp === givenUp && !this.#hasGap;
    });
  }

  /**
   * Commits the facts of an attempt, with the calls that are about to be handed over.
   *
   * @param first the hand-over waits for a store that is away
   * @param may whether the run may hand over, once it is known whether they are on record
   * @returns what `may` says, later; true where the store took them in this very step
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
    const entries = [...handedOver, factsRaised(attempt)];
    if (!this.#hasGap && this.#writesNow(entries)) return true;
    const done = Deferred.makeUnsafe<boolean>();
    // No part of its pull: one that is interrupted leaves the write to the next pull.
    if (first)
      Effect.runForkWith(this.#owner.services)(Deferred.into(Effect.map(this.writeFirst(entries, true), may), done));
    else
      this.writeThen(entries, (exit) =>
        Deferred.doneUnsafe(
          done,
          Exit.map(exit, (it) => may(it === "recorded")),
        ),
      );
    return done;
  }

  /**
   * Commits the entries that begin the run. While the store is away it begins unrecorded.
   *
   * @returns why the store refuses the run, which then must not begin; undefined when it may
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

  /** Writes what waits. */
  get flush(): Effect.Effect<Written> {
    return this.#inTurn(() => this.#send([], true, false));
  }

  /** The recorder has found that another process drives the run: this one writes nothing of it any more. */
  takenOver(): void {
    if (this.#loss !== undefined) return;
    this.#loss = "taken_over";
    this.#backlog.remove(this);
    this.giveUp();
    this.#owner.lost("taken_over");
  }

  giveUp(): number {
    const lost = this.#unwritten.length;
    this.#givenUp += 1;
    this.#unwritten = none;
    this.#pending = undefined;
    return lost;
  }

  /** Runs a write behind the one before it, in a fiber that outlives its caller. */
  #inTurn(send: () => Effect.Effect<Written>): Effect.Effect<Written> {
    return Effect.suspend(() => {
      // Also where a close or another run's write caused it, the write is the run's own: below its span, by its clock.
      const fiber = Effect.runForkWith(this.#owner.services)(this.#turn(send));
      return fiber.pollUnsafe() ?? Fiber.join(fiber);
    });
  }

  /** The turn is taken before the store is called: what stops the run in the very step of that call writes behind it. */
  #turn(send: () => Effect.Effect<Written>): Effect.Effect<Written> {
    return Effect.suspend(() => {
      const before = this.#last;
      const mine = this.#began();
      const sent = Effect.suspend(send);
      return this.#ending(mine, before === undefined ? sent : Effect.andThen(isOver(before), sent));
    });
  }

  #began(): Turn {
    this.#last = { over: undefined };
    return this.#last;
  }

  #ending(turn: Turn, sent: Effect.Effect<Written>): Effect.Effect<Written> {
    return Effect.ensuring(
      sent,
      Effect.sync(() => this.#over(turn)),
    );
  }

  #over(turn: Turn): void {
    if (this.#last === turn) this.#last = undefined;
    if (turn.over !== undefined) Deferred.doneUnsafe(turn.over, Effect.void);
  }

  /** @param told a failure is a new one, and is told to the run */
  #send(entries: ReadonlyArray<Entry>, happened: boolean, told: boolean): Effect.Effect<Written> {
    if (this.#loss !== undefined) return lost;
    const pending = this.#pending ?? none;
    const unwritten = this.#unwritten;
    this.#pending = undefined;
    this.#unwritten = none;
    return this.#commit({ unwritten, pending, entries, happened, told, refused: false });
  }

  #commit(sending: Sending): Effect.Effect<Written> {
    const all = inOrder(sending);
    const made = sending.refused ? "gone" : "recorded";
    if (all.length === 0) return Effect.succeed(made);
    return this.#recorder.write(this.runId, all).pipe(
      Effect.matchCauseEffect({
        onSuccess: () => Effect.sync(() => this.#taken(made)),
        onFailure: (cause) => {
          // The recorder may have told so while this write was under way.
          if (this.#loss !== undefined) return lost;
          return this.#failed(sending, all, Option.getOrUndefined(Cause.findErrorOption(cause)));
        },
      }),
    );
  }

  /** A write was not taken. @param all what was sent, in its order */
  #failed(sending: Sending, all: ReadonlyArray<Entry>, error: RecorderError | undefined): Effect.Effect<Written> {
    const { entries, happened, pending, told, unwritten } = sending;
    const misfit = error?.reason === "invalid" && !this.#beginning ? all[error.entry ?? -1] : undefined;
    if (error !== undefined && misfit !== undefined) return this.#without(sending, misfit, error);
    if (error !== undefined && !isOfStore(error)) return this.#refused(error.reason, sending);
    this.#unwritten = waiting([...unwritten, ...this.#unwritten, ...(happened ? entries : [])]);
    this.#pending = [...pending, ...(this.#pending ?? none)].slice(0, pendingMax);
    return this.#kept(error?.reason ?? "defect", told);
  }

  /**
   * Writes the other entries when one can never be read back. Of what has happened the record lacks that entry alone. What the
   * caller has not done yet goes on record whole or not at all, and is then not done.
   */
  #without(sending: Sending, misfit: Entry, { message, reason }: RecorderError): Effect.Effect<Written> {
    return Effect.suspend(() => {
      const isMeant = !sending.happened && sending.entries.includes(misfit);
      if (isNoEvidence(misfit) && !isMeant) this.#hasGap = true;
      if (sending.told) this.#owner.unrecorded(reason, false);
      const others = (entries: ReadonlyArray<Entry>) => entries.filter((it) => it !== misfit);
      const left: Sending = {
        ...sending,
        unwritten: others(sending.unwritten),
        pending: others(sending.pending),
        entries: isMeant ? [] : others(sending.entries),
        refused: sending.refused || isNoEvidence(misfit),
      };
      const told = { run_id: this.runId, entry: misfit._tag };
      return Effect.andThen(
        Effect.logError(`an entry of a run could not be recorded, and will not be: ${message}`, told),
        this.#commit(left),
      );
    });
  }

  #taken(made: Written): Written {
    this.#away = false;
    this.#backlog.remove(this);
    this.#backlog.storeTookOne();
    return made;
  }

  /** The store is away: what happened is kept. */
  #kept(reason: string, told: boolean): Effect.Effect<Written> {
    return Effect.gen({ self: this }, function* () {
      const first = !this.#away;
      this.#away = true;
      if (told) this.#owner.unrecorded(reason, first);
      yield* this.#backlog.storeTookNone(this.runId, reason);
      if (this.#unwritten.length > 0) yield* this.#backlog.add(this);
      return "away" as const;
    });
  }

  /** A process that lost its run may not act any more: another one decides on the facts that were written until now. */
  #refused(reason: RecorderError["reason"], sending: Sending): Effect.Effect<Written> {
    return Effect.suspend(() => {
      this.#backlog.remove(this);
      this.#refusal = reason;
      const { entries, happened, unwritten } = sending;
      if ([...unwritten, ...(happened ? entries : [])].some(isNoEvidence)) this.#hasGap = true;
      const loss = losses.get(reason);
      // The caller of a run that does not begin is told so.
      if (this.#beginning) return Effect.succeed("lost" as const);
      const told = { run_id: this.runId, reason, entries: inOrder(sending).length };
      if (loss === undefined) {
        this.#owner.unrecorded(reason, false);
        return Effect.as(
          Effect.logError("a run could not be recorded, and will not be: its record is gone", told),
          "gone" as const,
        );
      }
      this.#loss = loss;
      this.#owner.lost(loss);
      return Effect.as(Effect.logError(lossSentences[loss], told), "lost" as const);
    });
  }
}
