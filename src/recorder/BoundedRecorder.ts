/**
 * Bounds every call of a recorder: each returns within its timeout, and each failure is a `RecorderError` or `AnswerRefused`,
 * even if the service hangs, throws, dies or returns a value of the wrong type (L11).
 *
 * A recorder may be third-party JavaScript over an unreliable network, so an abandoned call may still have changed the store. The entries
 * of an abandoned write may be sent again; see `RunRecord.apply`.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type * as Fiber from "effect/Fiber";
import * as Predicate from "effect/Predicate";
import * as Result from "effect/Result";
import { monotonicMs } from "./MonotonicTime.ts";
import { AnswerRefused } from "./Question.ts";
import { RecorderError, runError } from "./RecorderError.ts";
import type { RunRecord } from "./RunRecord.ts";
import { listWaitMs, type Outcome, type RunRecorder, recorderWaitMs, type Write } from "./RunRecorder.ts";
import type { SharedPacing } from "./shared/SharedFacts.ts";

/**
 * Minimum timeout of a call while an earlier call hangs, in milliseconds. Only the first hanging call uses its full timeout, so a process
 * can still exit while its store hangs.
 */
export const probeMs = 250;

/** Maximum abandoned calls that have not ended. At the maximum, the recorder is not called. */
export const hangingCallsMax = 64;

type Service = RunRecorder["Service"];

/** A recorder whose every call returns within a timeout. */
export interface BoundedRecorder extends Service {
  /** True if the store commits within the call, so that no other code of the process runs in between. */
  readonly commitsAtOnce: boolean;
  /**
   * Commits entries of one run together. All writes of runs take this path. It needs no fiber if the store has `write.commit`.
   *
   * @param onDone called once, possibly before `commit` returns, with the reason if the entries are not on record
   */
  readonly commit: (
    runId: string,
    entries: Parameters<Write>[1],
    caller: Committer,
    onDone: (why: RecorderError | undefined) => void,
  ) => void;
}

/** The services of the caller of a commit, and its ownership of the run. */
export interface Committer {
  /** The clock in these services measures the timeout. */
  readonly services: Context.Context<never>;
  /** Returns false once another process owns the run. No further entries of the run are then written. */
  isOurs?(): boolean;
}

const known = new WeakMap<Service, BoundedRecorder>();

/**
 * Bounds the calls of a recorder.
 *
 * @param recorder any implementation of the service; repeated calls with one recorder return the same result
 */
export const toBounded = (recorder: Service): BoundedRecorder => {
  const found = known.get(recorder);
  if (found !== undefined) return found;
  const made = make(recorder);
  known.set(recorder, made);
  known.set(made, made);
  return made;
};

const make = (recorder: Service): BoundedRecorder => {
  const waitMs = recorder.waitMs ?? recorderWaitMs;
  const hanging = { calls: 0 };
  const bounded = (name: string, ms = waitMs) => new BoundedMethod(name, ms, hanging);
  const [write, run, runs, incidents] = [
    bounded("write"),
    bounded("run"),
    bounded("runs", listWaitMs),
    bounded("incidents"),
  ];
  const commits = new BoundedCommit(recorder.write, write);
  const claimMs = recorder.claimWaitMs ?? waitMs;
  const [claim, release] = [bounded("claim", claimMs), bounded("release")];
  const orphans = bounded("orphans", Math.max(listWaitMs, claimMs));
  const [answer, digest] = [bounded("answer"), bounded("digest")];
  // The caller has left, so a claim that still succeeds must be released.
  const releaseLate = (runId: string) =>
    Effect.ignore(release.call<void, RecorderError>(runId, () => recorder.release(runId), isAnything));
  return {
    durable: recorder.durable,
    ...(recorder.waitMs === undefined ? {} : { waitMs: recorder.waitMs }),
    ...(recorder.claimWaitMs === undefined ? {} : { claimWaitMs: recorder.claimWaitMs }),
    commitsAtOnce: recorder.write.commit?.answers === "at_once",
    commit: (...all) => commits.commit(...all),
    write: (runId, entries) => write.call(runId, () => recorder.write(runId, entries), isAnything),
    run: (runId) => run.call(runId, () => recorder.run(runId), isRecordOrNone),
    runs: (query) => runs.call("", () => recorder.runs(query), isList),
    incidents: (runId) => incidents.call(runId, () => recorder.incidents(runId), isList),
    claim: (runId) => claim.call(runId, () => recorder.claim(runId), isRecord, releaseLate(runId)),
    release: (runId) => release.call(runId, () => recorder.release(runId), isAnything),
    orphans: (limit, options) => orphans.call("", () => recorder.orphans(limit, options), isList),
    answer: (given) => answer.call(given.run_id, () => recorder.answer(given), isRecord),
    digest: (content) => digest.call("", () => recorder.digest(content), Predicate.isString),
    prune: (query) => recorder.prune(query),
    ...(recorder.probe === undefined ? {} : { probe: recorder.probe }),
    ...(recorder.shared === undefined ? {} : { shared: recorder.shared }),
    ...(recorder.pacing === undefined ? {} : { pacing: pacingOf(recorder.pacing, bounded) }),
    ...(recorder.cancels === undefined ? {} : { cancels: recorder.cancels }),
    ...(recorder.onLost === undefined ? {} : { onLost: (listener) => recorder.onLost?.(listener) ?? doNothing }),
  };
};

const pacingOf = (pacing: SharedPacing, bounded: (name: string) => BoundedMethod): SharedPacing => {
  const [draw, spend] = [bounded("draw"), bounded("spend")];
  return {
    draw: (...drawn) => draw.call("", () => pacing.draw(...drawn), Predicate.isNumber),
    spend: (...spent) => spend.call("", () => pacing.spend(...spent), isSpent),
  };
};

const isSpent = (value: unknown): boolean =>
  Predicate.hasProperty(value, "retries") &&
  Predicate.hasProperty(value, "tokens") &&
  [value.retries, value.tokens].every(Number.isFinite);

const doNothing = (): void => {};

const isAnything = (_value: unknown): boolean => true;

const isList = (value: unknown): boolean => Array.isArray(value);

const isRecordOrNone = (value: unknown): boolean => value === undefined || isRecord(value);

const isRecord = (value: unknown): boolean =>
  Predicate.hasProperty(value, "run_id") &&
  (["attempts", "calls", "incidents", "questions"] satisfies ReadonlyArray<keyof RunRecord>).every(
    (name) => Predicate.hasProperty(value, name) && Array.isArray(value[name]),
  );

/** Limits the time of one method of a recorder, and tracks its calls that hang. */
class BoundedMethod {
  readonly #name: string;
  readonly #waitMs: number;
  readonly #hanging: { calls: number };
  /** Start of the oldest call that hangs; undefined once any call returns. */
  #hangsSince: number | undefined;

  constructor(name: string, waitMs: number, hanging: { calls: number }) {
    this.#name = name;
    this.#waitMs = waitMs;
    this.#hanging = hanging;
  }

  /**
   * Calls the recorder in a detached fiber. The call is abandoned at its timeout or when its caller is interrupted.
   *
   * @param undo runs if an abandoned call succeeds; without it, an abandoned call is interrupted
   */
  call<A, E>(
    runId: string,
    make: () => Effect.Effect<A, E>,
    isValid: (value: unknown) => boolean,
    undo?: Effect.Effect<void>,
  ): Effect.Effect<A, E | RecorderError> {
    return Effect.gen({ self: this }, function* () {
      if (this.isFull) return yield* this.#makeError(runId, "was not called: too many earlier calls are still hanging");
      const clock = yield* Clock.Clock;
      const now = () => monotonicMs(clock);
      const begun = now();
      const fiber = yield* Effect.forkDetach(invoke(make), { startImmediately: true });
      const exit = fiber.pollUnsafe() ?? (yield* this.#awaitFiber(fiber, this.limit(begun), undo));
      if (exit === undefined) return yield* this.markHanging(runId, begun, now());
      this.markResponsive();
      if (Exit.isFailure(exit)) return yield* this.#failWith(runId, exit.cause);
      return isValid(exit.value) ? exit.value : yield* this.#makeError(runId, "returned an unexpected value");
    });
  }

  get isFull(): boolean {
    return this.#hanging.calls >= hangingCallsMax;
  }

  /** Returns the timeout of a call that starts now, in milliseconds. */
  limit(now: number): number {
    return this.#hangsSince === undefined ? this.#waitMs : Math.max(probeMs, this.#hangsSince + this.#waitMs - now);
  }

  /** Remembers since when a call hangs, and returns the error for its caller. */
  markHanging(runId: string, begun: number, now: number): RecorderError {
    this.#hangsSince ??= begun;
    return this.#makeError(runId, `did not return within ${Math.round(now - begun)} ms`);
  }

  markResponsive(): void {
    this.#hangsSince = undefined;
  }

  /** Counts an abandoned call. Call the returned function when the abandoned call has ended. */
  countAbandoned(): (isSuccess: boolean) => void {
    this.#hanging.calls += 1;
    return (isSuccess) => {
      this.#hanging.calls -= 1;
      if (isSuccess) this.markResponsive();
    };
  }

  /** Waits for the call; returns undefined at the timeout, even if the caller is uninterruptible. */
  #awaitFiber<A, E>(
    fiber: Fiber.Fiber<A, E>,
    ms: number,
    undo: Effect.Effect<void> | undefined,
  ): Effect.Effect<Exit.Exit<A, E> | undefined> {
    return Effect.gen({ self: this }, function* () {
      const first = Deferred.makeUnsafe<Exit.Exit<A, E> | undefined>();
      const over = Effect.sync(() => Deferred.doneUnsafe(first, Exit.succeed(fiber.pollUnsafe())));
      const timer = yield* Effect.forkDetach(Effect.andThen(Effect.sleep(Duration.millis(ms)), over), {
        startImmediately: true,
      });
      fiber.addObserver((exit) => {
        Deferred.doneUnsafe(first, Exit.succeed(exit));
        timer.interruptUnsafe();
      });
      const ended = Deferred.await(first);
      // A claim may take long. Until it succeeds, nothing is lost if the caller leaves, so even an uninterruptible caller may leave.
      const awaited = undo === undefined ? ended : Effect.interruptible(ended);
      const exit = yield* Effect.onInterrupt(awaited, () => {
        timer.interruptUnsafe();
        fiber.interruptUnsafe();
        return this.#abandon(fiber, undo, 0);
      });
      if (exit === undefined) yield* this.#abandon(fiber, undo, this.#waitMs - ms);
      return exit;
    });
  }

  /**
   * Abandons a call, and counts it until it ends.
   *
   * @param ms rest of the method's own timeout, in milliseconds. After a shortened wait the call continues for this long. Otherwise every
   *   call of a slow store would be interrupted, and the store would never show that it responds.
   */
  #abandon<A, E>(fiber: Fiber.Fiber<A, E>, undo: Effect.Effect<void> | undefined, ms: number): Effect.Effect<void> {
    return Effect.map(Effect.context<never>(), (services) => {
      const ended = this.countAbandoned();
      fiber.addObserver((exit) => {
        ended(Exit.isSuccess(exit));
        if (!Exit.isSuccess(exit)) return;
        // This observer is synchronous, so the release needs its own fiber. No other code would release the run.
        if (undo !== undefined) Effect.runForkWith(services)(undo);
      });
      if (undo !== undefined) return;
      if (ms <= 0) return fiber.interruptUnsafe();
      const over = Effect.andThen(
        Effect.sleep(Duration.millis(ms)),
        Effect.sync(() => fiber.interruptUnsafe()),
      );
      const timer = Effect.runForkWith(services)(over);
      fiber.addObserver(() => timer.interruptUnsafe());
    });
  }

  #makeError(run_id: string, what: string, cause?: unknown): RecorderError {
    const message = `${run_id === "" ? "" : `${run_id}: `}the recorder's ${this.#name} ${what}`;
    return new RecorderError({ reason: "unavailable", run_id, message, ...(cause === undefined ? {} : { cause }) });
  }

  reasonOf(runId: string, cause: Cause.Cause<RecorderError>): RecorderError {
    const found = Cause.findError(cause);
    return Result.isFailure(found) ? this.#makeError(runId, "died", Cause.squash(cause)) : found.success;
  }

  /** Fails with the recorder's own error. Any other failure becomes the cause of a `RecorderError`. */
  #failWith<E>(runId: string, cause: Cause.Cause<E>): Effect.Effect<never, E | RecorderError> {
    const failed = Cause.findError(cause);
    if (Result.isFailure(failed)) return Effect.fail(this.#makeError(runId, "died", Cause.squash(cause)));
    const error: unknown = failed.success;
    return error instanceof RecorderError || error instanceof AnswerRefused
      ? Effect.fail(failed.success)
      : Effect.fail(this.#makeError(runId, "failed with an unexpected error", error));
  }
}

/** A commit in flight to a server. */
interface Pending {
  readonly runId: string;
  readonly onDone: (outcome: Outcome) => void;
  readonly begun: number;
  readonly until: number;
  /** Called with the late result. Set when the caller stops waiting. */
  onLateResult?: (isSuccess: boolean) => void;
}

/** Limits the time of commits. One timer serves all pending commits, so none of them needs a fiber. */
class BoundedCommit {
  readonly #write: Write;
  readonly #method: BoundedMethod;
  readonly #pending = new Set<Pending>();
  #timer: { readonly until: number; readonly fiber: Fiber.Fiber<void> } | undefined;

  /** @param bounded the bounded `write`. Commits share its timeout and its count of hanging calls, because both call the same store */
  constructor(write: Write, bounded: BoundedMethod) {
    this.#write = write;
    this.#method = bounded;
  }

  commit(...[runId, entries, caller, onDone]: Parameters<BoundedRecorder["commit"]>): void {
    const end = (outcome: Outcome): void => {
      if (outcome !== "undecided") onDone(outcome === "recorded" ? undefined : outcome);
      else if (caller.isOurs?.() === false) onDone(runError("fenced", runId));
      else this.#writeInstead(runId, entries, caller, onDone);
    };
    const { commit } = this.#write;
    if (commit === undefined || (commit.answers === "late" && this.#method.isFull)) {
      end("undecided");
      return;
    }
    let onLater: ((outcome: Outcome) => void) | undefined;
    let now: Outcome | undefined;
    try {
      commit(runId, entries, (outcome) => {
        if (onLater === undefined) now ??= outcome;
        else onLater(outcome);
      });
    } catch {
      // The store threw. `write` then repeats the call and reports the reason.
      now ??= "undecided";
    }
    if (now !== undefined) end(now);
    else onLater = commit.answers === "late" ? this.#await(runId, caller.services, end) : end;
  }

  #writeInstead(...[runId, entries, { services }, onDone]: Parameters<BoundedRecorder["commit"]>): void {
    const write = this.#method.call(runId, () => this.#write(runId, entries), isAnything);
    Effect.runForkWith(services)(write).addObserver((exit) =>
      onDone(Exit.isSuccess(exit) ? undefined : this.#method.reasonOf(runId, exit.cause)),
    );
  }

  #await(
    runId: string,
    services: Context.Context<never>,
    onDone: (outcome: Outcome) => void,
  ): (outcome: Outcome) => void {
    const clock = Context.get(services, Clock.Clock);
    const begun = monotonicMs(clock);
    const one: Pending = { runId, onDone, begun, until: begun + this.#method.limit(begun) };
    this.#pending.add(one);
    if (this.#timer === undefined || one.until < this.#timer.until) this.#wait(one.until, clock, services);
    return (outcome) => this.#onEnd(one, outcome);
  }

  #onEnd(one: Pending, outcome: Outcome): void {
    if (!this.#pending.delete(one)) {
      one.onLateResult?.(outcome === "recorded");
      return;
    }
    if (this.#pending.size === 0) this.#stopTimer();
    this.#method.markResponsive();
    one.onDone(outcome);
  }

  /** Sets the timer for the earliest deadline of a pending commit. */
  #wait(until: number, clock: Clock.Clock, services: Context.Context<never>): void {
    this.#stopTimer();
    const abandonLate = Effect.sync(() => {
      this.#timer = undefined;
      const now = monotonicMs(clock);
      const late = [...this.#pending].filter((one) => one.until <= now);
      for (const one of late) this.#abandon(one, now);
      const next = Math.min(...[...this.#pending].map((one) => one.until));
      if (this.#pending.size > 0 && this.#timer === undefined) this.#wait(next, clock, services);
    });
    const ms = Math.max(0, until - monotonicMs(clock));
    const fiber = Effect.runForkWith(services)(Effect.andThen(Effect.sleep(Duration.millis(ms)), abandonLate));
    this.#timer = { until, fiber };
  }

  #abandon(one: Pending, now: number): void {
    this.#pending.delete(one);
    one.onLateResult = this.#method.countAbandoned();
    one.onDone(this.#method.markHanging(one.runId, one.begun, now));
  }

  #stopTimer(): void {
    this.#timer?.fiber.interruptUnsafe();
    this.#timer = undefined;
  }
}

/** Runs a call. A throw, or a value that is not an effect, becomes a defect. */
const invoke = <A, E>(make: () => Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const effect: unknown = make();
    // The type promises an effect, but a service in plain JavaScript may return anything.
    return Effect.isEffect(effect) ? (effect as Effect.Effect<A, E>) : Effect.die(new TypeError("expected an Effect"));
  });
