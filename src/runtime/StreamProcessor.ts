/**
 * Runs model requests: each attempt is a scoped fiber under a watchdog, and each break is decided by the policy, recorded, and then acted
 * on.
 *
 * An agent runtime embeds this service. `run` returns events, and can withdraw parts that a broken attempt showed. `parts` returns plain
 * parts for callers that cannot discard.
 *
 * A part passes in this order: the caller's `attempt` and `observe` · `SeamCheck`, if the attempt continues shown text · `Reveal`, which
 * may hold it · `PartFlow`, which counts it · `RunWriter`, which records what it shows · `Handoff`, which hands it over · `Readers`, which
 * keep it if the run lingers. A break passes in this order: `Attempt`, which freezes the parts · `Recovery` · `RunSnapshot`, which adds the
 * facts of routes, path and budget · the policy · `Incidents`, which records the decision · a wait or `Asking` · `Launch` or `Ending`.
 *
 * Each law has an owner:
 *
 * - L1 `FactsFold` · L2, L9 `RecoveryPolicy` · L3 `RunSnapshot` and `BrokenAttempt` · L4 `PartFlow` and `Handoff` · L5 `Recovery`, with the
 *   end of an attempt · L6 `Attempt` · L7 `Run` · L8 `RunWriter` · L10 `RunStop` and `InterruptSignature`; `Readers` of a run that lingers
 * - L11 the file of each buffer · L12 `Ending`
 *
 * Seams, routes and readers that come back are stages (`contract/Stages.ts`). They are in `src/stages`, the runtime imports none of them,
 * and a run without them pays one check of an absent field.
 */
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import { readMs, toMs } from "../domain/Durations.ts";
import { label } from "../domain/Limits.ts";
import { RunRecorder } from "../recorder/RunRecorder.ts";
import { LostPaths } from "./attempt/LostPaths.ts";
import { type AttachOptions, AttachRefused } from "./contract/AttachRefused.ts";
import { canReturn, deriveStopper, passSignaturesOn, stopperOfSignal } from "./contract/InterruptSignature.ts";
import { makeLazy, withOpener } from "./contract/LazyStream.ts";
import { Roster } from "./contract/Roster.ts";
import { type RunEvent, RunInterrupted } from "./contract/RunEvent.ts";
import type { RunLinger, RunOptions, TakeUpOptions } from "./contract/RunOptions.ts";
import type { Lingering, Readers, Taken } from "./contract/Stages.ts";
import * as Entrance from "./Entrance.ts";
import type { GroupMember } from "./pacing/Groups.ts";
import { UserDecisions } from "./questions/UserDecisions.ts";
import { drawBits, drawsMax, makeRunId, onRecord } from "./RunIds.ts";
import { recordLate } from "./recovery/Incidents.ts";
import { revive, settle } from "./recovery/Recovery.ts";
import * as Revival from "./recovery/Revival.ts";
import { Run } from "./run/Run.ts";
import * as RunSnapshot from "./run/RunSnapshot.ts";
import { make as makeShared, type Shared } from "./run/Shared.ts";
import * as StoredCancels from "./run/StoredCancels.ts";
import { ToolGuard } from "./tools/ToolGuard.ts";

/** Settings that a program chooses for all runs of a processor. */
export const ProcessorConfig = Context.Reference<{
  /** Maximum time that a decision waits for running tool handlers, as milliseconds or a duration. Default `Infinity`: no limit. */
  readonly drainMs: Duration.Input;
}>("effect-stream-recovery/ProcessorConfig", { defaultValue: () => ({ drainMs: Number.POSITIVE_INFINITY }) });

/** The service that an agent runtime embeds. */
export class StreamProcessor extends Context.Service<
  StreamProcessor,
  {
    /**
     * Runs one model request with its recoveries.
     *
     * @param options the request's provider, tools, attempt factory and observer
     * @returns the run's events; RunEvent.ts defines their grammar. It fails with `RunInterrupted`, whose `cause` is the
     *   provider's own error, when the run cannot or must not continue.
     */
    run<P, E, R>(options: RunOptions<P, E, R>): Stream.Stream<RunEvent<P>, RunInterrupted, R>;
    /**
     * Runs one model request for a caller that cannot discard, so no part is ever handed over twice. The lifecycle prefix is held until
     * content arrives, and everything from the first tool call on is held until the terminal marker.
     */
    parts<P, E, R>(options: RunOptions<P, E, R>): Stream.Stream<P, RunInterrupted, R>;
    /**
     * Takes up a run that no process owns: a parked run, or a run whose process is gone. The processor reads the pending step from the
     * record. It carries out an answer, starts a decided retry, waits for an open question, or takes the decision that is missing.
     *
     * @param runId the run, as the recorder knows it
     * @param options the request, the transcript that it was built from, and the caller's cursor if it has one
     * @returns the run's further events. It fails with `RunInterrupted` of reason `refused` when the run is unknown, has ended, is owned
     *   by a live process, was taken up too often, or has another transcript.
     */
    takeUp<P, E, R>(runId: string, options: TakeUpOptions<P, E, R>): Stream.Stream<RunEvent<P>, RunInterrupted, R>;
    /**
     * Attaches a reader to a run of this processor that continues without its consumer (`RunOptions.linger`). A reader that is still
     * attached is replaced and ends with reason `attached_elsewhere`.
     *
     * @param runId the run; `P` is the type of its parts, which only the caller knows
     * @param options the position up to which the reader has the events
     * @returns exactly the events after that position: those that were already sent, then those held in the meantime, then new ones. It
     *   fails with `AttachRefused` and a reason if there is nothing to attach to, and ends as `run` does.
     */
    attach<P = unknown>(
      runId: string,
      options?: AttachOptions,
    ): Stream.Stream<RunEvent<P>, RunInterrupted | AttachRefused>;
    /** Cancels a run and its running tools on behalf of the user. Returns true if the run was live. */
    cancel(runId: string): Effect.Effect<boolean>;
    /** Closes the processor. Live runs stop with rule `lifecycle_closed`, and new runs are refused. */
    close(reason: string): Effect.Effect<void>;
  }
>()("effect-stream-recovery/StreamProcessor") {
  /**
   * Provides the processor and its tool guard. All processors with the same `Paths` in their context share it. Without one, the processor
   * makes its own.
   */
  static readonly layer: Layer.Layer<StreamProcessor | ToolGuard, never, RunRecorder | UserDecisions> = Layer.effect(
    StreamProcessor,
    Effect.suspend(() => makeProcessor),
  ).pipe(Layer.provideMerge(ToolGuard.layer));

  /** Like `layer`, with an in-memory recorder. There is no person to ask, so uncertain requests are never repeated. */
  static readonly layerDefault: Layer.Layer<StreamProcessor | ToolGuard | RunRecorder | UserDecisions> =
    StreamProcessor.layer.pipe(
      Layer.provideMerge(Layer.merge(RunRecorder.layerMemory(), UserDecisions.layerHeadless())),
    );
}

/** The members of a run that the register of live runs uses. */
type AnyRun = Pick<Run<unknown, unknown, unknown>, "stop" | "done" | "onTakenOver" | "stopper"> & {
  readonly options: { readonly linger?: Pick<RunLinger, "ms"> };
};

const makeProcessor = Effect.gen(function* () {
  yield* Effect.withFiber((fiber) => Effect.sync(() => passSignaturesOn(fiber)));
  const shared = yield* makeShared(readMs("drainMs", (yield* ProcessorConfig).drainMs), drawBits());
  shared.watchdog.reportTo(new LostPaths(shared.paths, shared.watchdog, yield* Effect.context()));
  const live = new Roster<string, AnyRun>();
  const register: Register = { live, lingering: undefined, closed: undefined, starts: 0 };

  // Another process has taken the run over. Stop it now: by itself it would notice only at its next write, which may be its end.
  const unheard = shared.recorder.onLost?.((runId) => {
    const run = live.get(runId);
    run?.onTakenOver();
    return run !== undefined;
  });
  yield* Effect.addFinalizer(() => Effect.sync(() => unheard?.()));

  if (shared.recorder.cancels !== undefined)
    yield* StoredCancels.hearing(
      shared.recorder.cancels,
      ({ holder, run_id }) => holder === undefined && live.has(run_id),
      ({ run_id }) => live.get(run_id)?.stop("user"),
    );

  const close = (reason: string) =>
    Effect.suspend(() => {
      register.closed ??= String(reason);
      const runs = [...live.values()];
      for (const run of runs) run.stop("lifecycle");
      register.lingering?.close();
      const ended = Effect.forEach(runs, (run) => Deferred.await(run.done), { discard: true });
      // Entries that the store has not accepted yet would be lost if the backlog were not closed.
      return Effect.andThen(ended, shared.backlog.close);
    });
  yield* Effect.addFinalizer(() => close("the layer's scope was closed"));

  return StreamProcessor.of({
    run: (options) => stream(shared, register, options, options?.discardable ?? true),
    parts: (options) => partsOf(stream(shared, register, options, false)),
    takeUp: (runId, options) => takeUp(shared, register, runId, options),
    attach: (runId, options) =>
      Stream.suspend(() => {
        const explain = () => problemOfReader(register, runId);
        return (
          register.lingering?.attach(runId, options?.after, explain) ?? Stream.fail(AttachRefused.of(runId, explain()))
        );
      }),
    cancel: (runId) =>
      Effect.sync(() => {
        const run = live.get(runId);
        run?.stop("user");
        return run !== undefined;
      }),
    close,
  });
});

const partsOf = <P, E, R>(events: Stream.Stream<RunEvent<P>, E, R>): Stream.Stream<P, E, R> =>
  Stream.filterMap(events, (event) => (event._tag === "Part" ? Result.succeed(event.part) : Result.failVoid));

/** Shared by all first attempts. */
const noCalls: ReadonlyArray<never> = [];

interface Register {
  readonly live: Roster<string, AnyRun>;
  /** The runs that readers can attach to; undefined until a run lingers. */
  lingering: Lingering | undefined;
  closed: string | undefined;
  /** Number of runs begun by this processor. */
  starts: number;
}

const stream = <P, E, R>(
  shared: Shared,
  register: Register,
  given: RunOptions<P, E, R>,
  discardable: boolean,
): Stream.Stream<RunEvent<P>, RunInterrupted, R> =>
  withOpener(
    makeLazy(() =>
      Stream.transformPull(Stream.empty, (_upstream, scope) => makePull(shared, register, given, [discardable, scope])),
    ),
    (scope) => makePull(shared, register, given, [discardable, scope]),
  );

/**
 * All runs share one generator function. V8 gives a function created per call its own map, and that map keeps the data of the call until a
 * full collection.
 */
const makePull = Effect.fnUntraced(function* <P, E, R>(
  shared: Shared,
  register: Register,
  given: RunOptions<P, E, R>,
  [discardable, scope]: readonly [boolean, Scope.Scope],
): Effect.fn.Return<Taken<P>, RunInterrupted, R> {
  const options = problemOfClose(register) ?? Entrance.admit(given);
  if (typeof options === "string") return yield* refuse(given?.runId, register, options);
  const services = yield* Effect.context<R>();
  for (let draw = 1; ; draw += 1) {
    const runId = options.runId ?? (draw === 1 ? yield* makeRunId : `run_${drawBits()}`);
    // Check and record the id in one step, so that only one of two runs with the same id begins. A run interrupted in between would be
    // neither live nor ended, and its finalizer would wait forever.
    const begun = yield* Effect.uninterruptible(
      Effect.suspend(() => {
        const known = problemOfLiveId(register, runId) ?? problemOfKnownId(shared, runId);
        if (known !== undefined) return Effect.succeed(known);
        const { readers, tapped } = readersOf(register, options);
        const run = new Run<P, E, R>(runId, tapped, discardable, shared, services, recordLate);
        return begin(register, { run, readers, scope });
      }),
    );
    if (typeof begun !== "string") return begun;
    if (options.runId !== undefined || draw === drawsMax) return yield* refuse(runId, register, begun);
  }
});

const takeUp = <P, E, R>(
  shared: Shared,
  register: Register,
  runId: string,
  { cursor, request, transcript }: TakeUpOptions<P, E, R>,
): Stream.Stream<RunEvent<P>, RunInterrupted, R> =>
  Stream.transformPull(Stream.empty, (_upstream, scope) =>
    Effect.gen(function* () {
      const problem =
        problemOfClose(register) ?? Entrance.problemOfRunId(runId) ?? Entrance.problemOfTakeUp(transcript, cursor);
      const admitted = problem ?? Entrance.admit(request);
      const options = typeof admitted === "string" ? admitted : (problemOfLiveId(register, runId) ?? admitted);
      if (typeof options === "string") return yield* refuse(runId, register, options);
      const services = yield* Effect.context<R>();
      const { readers, tapped } = readersOf(register, options);
      const run = new Run<P, E, R>(runId, tapped, true, shared, services, recordLate);
      // The claim and the start happen in one step. A caller that leaves in between would leave a claimed run that no fiber executes.
      const pulled = yield* Effect.uninterruptible(takeOver(register, { run, readers, scope }, transcript, cursor));
      return typeof pulled === "string" ? yield* refuse(runId, register, pulled) : pulled;
    }),
  );

/** A run with its first reader. */
interface ReadRun<P, E, R> {
  readonly run: Run<P, E, R>;
  /** The readers of the run; undefined if only its consumer can read it. */
  readonly readers: Readers<P> | undefined;
  /** The scope of the consumer. */
  readonly scope: Scope.Scope;
}

/** Connects the run with its readers. Returns the pull of the first reader. */
const connectReaders = <P, E, R>({ readers, run }: ReadRun<P, E, R>): Taken<P> =>
  readers?.begin(run) ?? run.handoff.take;

/** Creates the readers of a run that lingers, and the options that let them read its output. */
const readersOf = <P, E, R>(register: Register, options: RunOptions<P, E, R>) => {
  const { linger } = options;
  if (linger !== undefined) register.lingering ??= linger.begin();
  const readers = linger === undefined ? undefined : register.lingering?.open<P>(linger, options);
  return { readers, tapped: readers === undefined ? options : { ...options, taps: readers.taps } };
};

/** Returns the reason why no reader can attach to a run that is not listed. */
const problemOfReader = ({ closed, live }: Register, runId: string): AttachRefused["reason"] => {
  const run = live.get(runId);
  if (closed !== undefined) return "closed";
  if (run === undefined) return "unknown";
  if (run.stopper !== undefined) return "ended";
  return (run.options.linger?.ms ?? 0) > 0 ? "evicted" : "not_lingering";
};

/** Takes a run over and continues it. Returns its reader's pull, or the reason why the run cannot be taken over. */
const takeOver = Effect.fnUntraced(
  function* <P, E, R>(
    register: Register,
    read: ReadRun<P, E, R>,
    transcript: string,
    cursor: string | undefined,
  ): Effect.fn.Return<string | Taken<P>> {
    const { run } = read;
    // Pending entries must be on record before the claim. Written afterwards, they would park a run that is already continuing.
    const isOnRecord = yield* run.shared.backlog.flush(run.runId);
    const revived = isOnRecord
      ? yield* Revival.claim(run, transcript, cursor, () => registerRun(register, run))
      : "the latest entries of the run are not on record yet; take it up again when the store accepts writes";
    if (typeof revived === "string") {
      dropRun(register, run);
      return revived;
    }
    run.allowTakeUp();
    run.shared.guard.registerLedger(run.runId, run.ledger);
    yield* stopWithScope(register, read);
    yield* limitHold(read);
    yield* stopOnInterrupt(read);
    const taken = connectReaders(read);
    // Forked with the caller's services and not as a child of this fiber, because the recovery lasts until the run ends.
    Effect.runForkWith(run.services)(revive(run, revived));
    return taken;
  },
  (effect, register, { run }) => Effect.onError(effect, () => Effect.sync(() => dropRun(register, run))),
);

/**
 * Registers a claimed run, so that a close of the processor waits for it. Returns the reason if the processor has closed in the meantime.
 */
const registerRun = <P, E, R>(register: Register, run: Run<P, E, R>): string | undefined => {
  const problem = problemOfClose(register) ?? problemOfLiveId(register, run.runId);
  if (problem === undefined) register.live.set(run.runId, run);
  return problem;
};

/** Stops a run when its consumer leaves, unless the run may continue without a consumer. Forgets the run once it has ended. */
const stopWithScope = <P, E, R>(register: Register, { readers, run, scope }: ReadRun<P, E, R>): Effect.Effect<void> => {
  run.listenForAbort();
  const member = run.options.group === undefined ? undefined : RunSnapshot.memberOf(run);
  if (readers === undefined)
    return Scope.addFinalizerExit(scope, (exit) => {
      run.stopListening();
      if (!run.ledger.ended) run.stop(stopperOfSignal(run.options.signal) ?? deriveStopper(exit));
      return forget(register, run, member);
    });
  const forgetting = Effect.runForkWith(run.services)(forget(register, run, member));
  return Scope.addFinalizerExit(scope, (exit) => (readers.leave(exit) ? Fiber.await(forgetting) : Effect.void));
};

/** Forgets a run once it has ended. The effect is created only when the consumer leaves, to save memory while many runs wait. */
const forget = <P, E, R>(register: Register, run: Run<P, E, R>, member: GroupMember | undefined): Effect.Effect<void> =>
  Effect.map(Deferred.await(run.done), () => {
    run.stopListening();
    if (member !== undefined) {
      run.shared.groups.leave(member);
      Effect.runForkWith(run.services)(run.shared.sharedGroups.leave(member));
    }
    // The id of a refused run may belong to another run by now.
    if (register.live.get(run.runId) !== run) return;
    register.live.delete(run.runId);
    run.shared.guard.release(run.runId);
  });

/** Ends the hold of a whole response after the maximum hold time, unless the run ends first. */
const limitHold = <P, E, R>({ readers, run, scope }: ReadRun<P, E, R>): Effect.Effect<void> => {
  const { holdMaxMs, reveal } = run.options;
  const holdMs = reveal === "on_complete" && holdMaxMs !== undefined ? toMs(holdMaxMs) : Number.POSITIVE_INFINITY;
  if (holdMs === Number.POSITIVE_INFINITY) return Effect.void;
  const over = Effect.sync(() => {
    if (run.ledger.ended) return;
    run.note(run.attempts, "shown", "hold_is_over");
    run.response.endHold();
  });
  const waits = Effect.delay(over, holdMs);
  if (readers === undefined) return Effect.asVoid(Effect.forkIn(waits, scope));
  return Effect.asVoid(Effect.forkDetach(Effect.raceFirst(waits, Deferred.await(run.done))));
};

/**
 * Records the run and its first attempt, and starts it. While the store is unavailable, the run is not recorded and nothing is retried.
 *
 * @returns the pull of the run's reader, or the reason why its id cannot be used. Nothing was sent to the provider then.
 */
const begin = Effect.fnUntraced(
  function* <P, E, R>(register: Register, read: ReadRun<P, E, R>): Effect.fn.Return<Taken<P> | string> {
    const { run } = read;
    const { options, policy, runId, shared } = run;
    register.live.set(runId, run);
    yield* stopWithScope(register, read);
    if (run.routes !== undefined) run.switchRoute(run.routes.chooseStart(run.budget.max_moves));
    const first = run.prepare({ mode: "first", request: "first", calls: noCalls, cursor: undefined });
    if (run.isVolatile && options.runId !== undefined && options.isNewId !== true) {
      const known = yield* run.reads.within(
        Effect.orElseSucceed(shared.recorder.run(runId), () => undefined),
        undefined,
      );
      if (known !== undefined) {
        dropRun(register, run);
        return onRecord(runId, "run_exists");
      }
    }
    const transcript = yield* digestOf(run);
    if (transcript !== undefined) run.allowTakeUp();
    register.starts += 1;
    const refusal = yield* run.writeBegin([
      {
        _tag: "RunStarted",
        run_id: runId,
        provider: options.provider,
        at: shared.clock.currentTimeMillisUnsafe(),
        budget: run.budget,
        policy: policy.name,
        // `join` makes a flat string. A template string would keep its parts in memory as long as the record.
        started_by: [shared.drawn, register.starts].join("."),
        ...(transcript === undefined ? {} : { transcript }),
        ...(run.isVolatile ? { volatile: true } : {}),
        ...(options.group === undefined ? {} : { group: label(options.group) }),
        ...(options.retryOf === undefined ? {} : { retry_of: label(options.retryOf) }),
      },
      RunSnapshot.startOf(run, first, 0),
    ]);
    if (refusal !== undefined) {
      dropRun(register, run);
      return onRecord(runId, refusal);
    }
    yield* stopOnInterrupt(read);
    shared.guard.registerLedger(runId, run.ledger);
    run.response.begin(first);
    run.handoff.push(RunSnapshot.startEvent(run, first));
    first.whenEnded((end) => settle(run, first, end));
    const taken = connectReaders(read);
    run.start(first);
    if (options.spentBefore?.beside === true) Effect.runForkWith(run.services)(recordRepeat(run));
    yield* limitHold(read);
    return taken;
  },
  // A run that could not begin is marked as ended, because its finalizer would otherwise wait for it forever.
  (effect, register, { run }) => Effect.onError(effect, () => Effect.sync(() => dropRun(register, run))),
);

/**
 * Stops a run whose consumer was interrupted during the first write. The request must not be sent, and the finalizer of the consumer's
 * scope runs too late to prevent that. A lingering run continues after an unsigned interrupt.
 */
const stopOnInterrupt = <P, E, R>({ readers, run }: ReadRun<P, E, R>): Effect.Effect<void> =>
  Effect.map(Effect.exit(Effect.interruptible(Effect.void)), (exit) => {
    if (Exit.isSuccess(exit) || run.stopper !== undefined) return;
    if (readers === undefined || !canReturn(exit)) run.stop(stopperOfSignal(run.options.signal) ?? deriveStopper(exit));
  });

/** Records which earlier run this run repeats, once that is known. No other step waits for this write. */
const recordRepeat = <P, E, R>(run: Run<P, E, R>): Effect.Effect<void> =>
  Effect.flatMap(run.earlier.learn, () => {
    const entries = run.earlier.takeRepeatEntries();
    return entries.length === 0 ? Effect.void : Effect.asVoid(run.write(entries));
  });

/** Forgets a run that did not begin. */
const dropRun = <P, E, R>(register: Register, run: Run<P, E, R>): void => {
  run.ledger.ended = true;
  run.routes?.onRunEnd();
  if (register.live.get(run.runId) === run) register.live.delete(run.runId);
  run.telemetry.reportRunEnd({ state: "stopped", reason: "refused" }, 0);
  Deferred.doneUnsafe(run.done, Effect.void);
};

/** Returns the digest of the transcript. Without a transcript no process can take up the run later, so the log warns about it now. */
const digestOf = <P, E, R>(run: Run<P, E, R>): Effect.Effect<string | undefined> => {
  const { transcript } = run.options;
  // No process takes up a volatile run.
  if (transcript === undefined || run.isVolatile) return Effect.undefined;
  return Effect.catch(run.shared.recorder.digest(transcript), (error) =>
    Effect.as(Effect.logError(error.message, { run_id: run.runId }), undefined),
  );
};

const problemOfClose = (register: Register): string | undefined =>
  register.closed === undefined ? undefined : `the processor is closed: ${register.closed}`;

const problemOfLiveId = (register: Register, runId: string): string | undefined =>
  register.live.has(runId) ? `runId: expected a new id, got "${runId}", which is live` : undefined;

/** Refuses an id whose calls or pending entries this process still knows, even if the store does not know the run. */
const problemOfKnownId = ({ guard, queue }: Shared, runId: string): string | undefined =>
  guard.hasLedger(runId) || queue.has(runId) ? onRecord(runId, "run_exists") : undefined;

const refuse = (runId: unknown, register: Register, problem: string) =>
  new RunInterrupted({
    reason: "refused",
    run_id: typeof runId === "string" ? runId : "",
    rule: register.closed === undefined ? "not_retryable" : "lifecycle_closed",
    failure: register.closed === undefined ? { kind: "caller_failed" } : { kind: "cancelled", by: "lifecycle" },
    attempts: 0,
    message: problem,
  });
