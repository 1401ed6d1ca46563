/**
 * Bounds what a recorder may do to its callers: every call comes back within a named time, and a failed one fails in the
 * recorder's own words, whether the service hangs, throws, dies, or gives a value of another kind (L11).
 *
 * A recorder may come from another author, in plain JavaScript, over a network that goes away. Whether a call that was given
 * up has changed the store is not known. Entries may be sent again all the same: `RunRecord.apply` takes each of them once.
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
import { RecorderError } from "./RecorderError.ts";
import type { RunRecord } from "./RunRecord.ts";
import {
  listWaitMs,
  type RunRecorder,
  recorderWaitMs,
  type Told,
  type WriteAtOnce,
  type WriteTogether,
  waitsTogether,
  writeAtOnceOf,
  writeTogetherOf,
} from "./RunRecorder.ts";
import type { SharedPacing } from "./shared/SharedFacts.ts";

/**
 * Longest wait for a call while an earlier one hangs, in milliseconds. The whole wait is spent once, and not by every call
 * that comes after: a process that has to end while its store hangs still ends.
 */
export const probeMs = 250;

/** Most calls that have neither returned nor been interrupted. Beyond them the recorder is not called any more. */
export const hangingCallsMax = 64;

type Service = RunRecorder["Service"];

/** A recorder whose calls all come back. */
export interface BoundedRecorder extends Service {
  /** Writes in the step of the call, where the store can: nothing has to be waited for. */
  readonly writeAtOnce?: WriteAtOnce | undefined;
  /** Writes in a step that comes soon, where the store can. */
  readonly writeTogether?: WriteTogetherIn | undefined;
}

/** As `WriteTogether`, for a caller with these services: its clock bounds the wait. */
type WriteTogetherIn = (...all: [...Parameters<WriteTogether>, services: Context.Context<never>]) => boolean;

const known = new WeakMap<Service, BoundedRecorder>();

/**
 * Gives a recorder whose calls all come back.
 *
 * @param recorder any implementation of the service; the same one gives the same bounded one
 */
export const bounded = (recorder: Service): BoundedRecorder => {
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
  const door = (name: string, ms = waitMs) => new Door(name, ms, hanging);
  const [write, run, runs, incidents] = [door("write"), door("run"), door("runs", listWaitMs), door("incidents")];
  const together = writeTogetherOf(recorder);
  const group = together && waitsTogether(recorder) ? new TogetherDoor(together, write) : undefined;
  const claimMs = recorder.claimWaitMs ?? waitMs;
  const [claim, release] = [door("claim", claimMs), door("release")];
  const orphans = door("orphans", Math.max(listWaitMs, claimMs));
  const [answer, digest] = [door("answer"), door("digest")];
  // A run that is taken over after its caller has given up has no driver here.
  const giveBack = (runId: string) =>
    Effect.ignore(release.call<void, RecorderError>(runId, () => recorder.release(runId), anything));
  return {
    durable: recorder.durable,
    ...(recorder.waitMs === undefined ? {} : { waitMs: recorder.waitMs }),
    ...(recorder.claimWaitMs === undefined ? {} : { claimWaitMs: recorder.claimWaitMs }),
    writeAtOnce: writeAtOnceOf(recorder),
    writeTogether: group === undefined ? together : (...all) => group.take(...all),
    write: (runId, entries) => write.call(runId, () => recorder.write(runId, entries), anything),
    run: (runId) => run.call(runId, () => recorder.run(runId), isRecordOrNone),
    runs: (query) => runs.call("", () => recorder.runs(query), isList),
    incidents: (runId) => incidents.call(runId, () => recorder.incidents(runId), isList),
    claim: (runId) => claim.call(runId, () => recorder.claim(runId), isRecord, giveBack(runId)),
    release: (runId) => release.call(runId, () => recorder.release(runId), anything),
    orphans: (limit, options) => orphans.call("", () => recorder.orphans(limit, options), isList),
    answer: (given) => answer.call(given.run_id, () => recorder.answer(given), isRecord),
    digest: (content) => digest.call("", () => recorder.digest(content), Predicate.isString),
    prune: (query) => recorder.prune(query),
    ...(recorder.probe === undefined ? {} : { probe: recorder.probe }),
    ...(recorder.shared === undefined ? {} : { shared: recorder.shared }),
    ...(recorder.pacing === undefined ? {} : { pacing: pacingOf(recorder.pacing, door) }),
    ...(recorder.cancels === undefined ? {} : { cancels: recorder.cancels }),
    ...(recorder.onLost === undefined ? {} : { onLost: (listener) => recorder.onLost?.(listener) ?? nothing }),
  };
};

const pacingOf = (pacing: SharedPacing, door: (name: string) => Door): SharedPacing => {
  const [draw, spend] = [door("draw"), door("spend")];
  return {
    draw: (...drawn) => draw.call("", () => pacing.draw(...drawn), Predicate.isNumber),
    spend: (...spent) => spend.call("", () => pacing.spend(...spent), isSpent),
  };
};

const isSpent = (value: unknown): boolean =>
  Predicate.hasProperty(value, "retries") &&
  Predicate.hasProperty(value, "tokens") &&
  [value.retries, value.tokens].every(Number.isFinite);

const nothing = (): void => {};

const anything = (_value: unknown): boolean => true;

const isList = (value: unknown): boolean => Array.isArray(value);

const isRecordOrNone = (value: unknown): boolean => value === undefined || isRecord(value);

const isRecord = (value: unknown): boolean =>
  Predicate.hasProperty(value, "run_id") &&
  (["attempts", "calls", "incidents", "questions"] satisfies ReadonlyArray<keyof RunRecord>).every(
    (name) => Predicate.hasProperty(value, name) && Array.isArray(value[name]),
  );

/** One method of a recorder, and since when a call of it hangs. */
class Door {
  readonly #name: string;
  readonly #waitMs: number;
  readonly #hanging: { calls: number };
  /** When the first call began that hangs; undefined since a call came back. */
  #hangsSince: number | undefined;

  constructor(name: string, waitMs: number, hanging: { calls: number }) {
    this.#name = name;
    this.#waitMs = waitMs;
    this.#hanging = hanging;
  }

  /**
   * Calls the recorder from a fiber of its own, which its caller leaves behind when the time is over or the caller itself
   * is interrupted.
   *
   * @param undo done when a call succeeds that its caller has left; without it such a call is interrupted
   */
  call<A, E>(
    runId: string,
    make: () => Effect.Effect<A, E>,
    fits: (value: unknown) => boolean,
    undo?: Effect.Effect<void>,
  ): Effect.Effect<A, E | RecorderError> {
    return Effect.gen({ self: this }, function* () {
      if (this.isFull) return yield* this.#failed(runId, "is not called: too many calls hang");
      const clock = yield* Clock.Clock;
      const now = () => monotonicMs(clock);
      const begun = now();
      const fiber = yield* Effect.forkDetach(called(make), { startImmediately: true });
      const exit = fiber.pollUnsafe() ?? (yield* this.#awaited(fiber, this.limit(begun), undo));
      if (exit === undefined) return yield* this.hangs(runId, begun, now());
      this.came();
      if (Exit.isFailure(exit)) return yield* this.#told(runId, exit.cause);
      return fits(exit.value) ? exit.value : yield* this.#failed(runId, "gave something else than it should");
    });
  }

  /** Whether so many calls hang that no other one is made. */
  get isFull(): boolean {
    return this.#hanging.calls >= hangingCallsMax;
  }

  /** How long a call that begins now is waited for, in milliseconds. */
  limit(now: number): number {
    return this.#hangsSince === undefined ? this.#waitMs : Math.max(probeMs, this.#hangsSince + this.#waitMs - now);
  }

  /** Takes note that a call which began then was waited for long enough; gives what is said of it. */
  hangs(runId: string, begun: number, now: number): RecorderError {
    this.#hangsSince ??= begun;
    return this.#failed(runId, `did not come back within ${Math.round(now - begun)} ms`);
  }

  /** Takes note that a call came back. */
  came(): void {
    this.#hangsSince = undefined;
  }

  /** Counts a call that was left behind as one that hangs. What it gives is called when the call ends. */
  left(): (isSuccess: boolean) => void {
    this.#hanging.calls += 1;
    return (isSuccess) => {
      this.#hanging.calls -= 1;
      if (isSuccess) this.came();
    };
  }

  /** The end of the call; undefined when the time is over, also where its caller cannot be interrupted. */
  #awaited<A, E>(
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
      // A claim may wait for long and has taken nothing meanwhile, so that even an uninterruptible caller may leave.
      const awaited = undo === undefined ? ended : Effect.interruptible(ended);
      const exit = yield* Effect.onInterrupt(awaited, () => {
        timer.interruptUnsafe();
        fiber.interruptUnsafe();
        return this.#leave(fiber, undo, 0);
      });
      if (exit === undefined) yield* this.#leave(fiber, undo, this.#waitMs - ms);
      return exit;
    });
  }

  /**
   * Leaves a call behind. Until it ends it counts as one that hangs.
   *
   * @param ms what is left of the call's own time. A call whose caller has waited for less goes on: otherwise a slow store
   *   would be interrupted again and again, and never be seen to come back
   */
  #leave<A, E>(fiber: Fiber.Fiber<A, E>, undo: Effect.Effect<void> | undefined, ms: number): Effect.Effect<void> {
    return Effect.map(Effect.context<never>(), (services) => {
      const ended = this.left();
      fiber.addObserver((exit) => {
        ended(Exit.isSuccess(exit));
        if (!Exit.isSuccess(exit)) return;
        // From an observer, which is synchronous: nothing else would give the run back.
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

  #failed(run_id: string, what: string, cause?: unknown): RecorderError {
    const message = `${run_id === "" ? "" : `${run_id}: `}the recorder's ${this.#name} ${what}`;
    return new RecorderError({ reason: "unavailable", run_id, message, ...(cause === undefined ? {} : { cause }) });
  }

  /** The recorder's own error; anything else that it failed with becomes the cause of one. */
  #told<E>(runId: string, cause: Cause.Cause<E>): Effect.Effect<never, E | RecorderError> {
    const failed = Cause.findError(cause);
    if (Result.isFailure(failed)) return Effect.fail(this.#failed(runId, "died", Cause.squash(cause)));
    const error: unknown = failed.success;
    return error instanceof RecorderError || error instanceof AnswerRefused
      ? Effect.fail(failed.success)
      : Effect.fail(this.#failed(runId, "failed with an error of another kind", error));
  }
}

/** A write that a store takes together with others, and how long its caller waits. */
interface Waiting {
  readonly runId: string;
  readonly told: Told;
  readonly begun: number;
  readonly until: number;
  /** Set where its caller was told that it is late: what is called when the store tells of it after all. */
  left?: (isSuccess: boolean) => void;
}

/** Bounds the writes that a store takes together: one timer stands for all of them, and no write has a fiber. */
class TogetherDoor {
  readonly #write: WriteTogether;
  readonly #door: Door;
  /** At most as many as the store takes before it tells of the first. */
  readonly #waiting = new Set<Waiting>();
  #timer: { readonly until: number; readonly fiber: Fiber.Fiber<void> } | undefined;

  /** @param door that of single writes: both are one store, which hangs or does not */
  constructor(write: WriteTogether, door: Door) {
    this.#write = write;
    this.#door = door;
  }

  take(...[runId, entries, told, services]: Parameters<WriteTogetherIn>): boolean {
    if (this.#door.isFull) return false;
    const clock = Context.get(services, Clock.Clock);
    const begun = monotonicMs(clock);
    const one: Waiting = { runId, told, begun, until: begun + this.#door.limit(begun) };
    if (!this.#write(runId, entries, (isOnRecord, why) => this.#ended(one, isOnRecord, why))) return false;
    this.#waiting.add(one);
    if (this.#timer === undefined || one.until < this.#timer.until) this.#wait(one.until, clock, services);
    return true;
  }

  #ended(one: Waiting, isOnRecord: boolean, why: RecorderError | undefined): void {
    if (!this.#waiting.delete(one)) {
      one.left?.(isOnRecord);
      return;
    }
    if (this.#waiting.size === 0) this.#rest();
    this.#door.came();
    one.told(isOnRecord, why);
  }

  /** Looks at what is late when the first of them may be. */
  #wait(until: number, clock: Clock.Clock, services: Context.Context<never>): void {
    this.#rest();
    const looked = Effect.sync(() => {
      this.#timer = undefined;
      const now = monotonicMs(clock);
      const late = [...this.#waiting].filter((one) => one.until <= now);
      for (const one of late) this.#leave(one, now);
      const next = Math.min(...[...this.#waiting].map((one) => one.until));
      if (this.#waiting.size > 0 && this.#timer === undefined) this.#wait(next, clock, services);
    });
    const ms = Math.max(0, until - monotonicMs(clock));
    const fiber = Effect.runForkWith(services)(Effect.andThen(Effect.sleep(Duration.millis(ms)), looked));
    this.#timer = { until, fiber };
  }

  #leave(one: Waiting, now: number): void {
    this.#waiting.delete(one);
    one.left = this.#door.left();
    one.told(false, this.#door.hangs(one.runId, one.begun, now));
  }

  #rest(): void {
    this.#timer?.fiber.interruptUnsafe();
    this.#timer = undefined;
  }
}

/** A call that throws, or gives no effect, has died. */
const called = <A, E>(make: () => Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const effect: unknown = make();
    // The type says that it is an effect; a service in plain JavaScript may give anything.
    return Effect.isEffect(effect) ? (effect as Effect.Effect<A, E>) : Effect.die(new TypeError("expected an Effect"));
  });
