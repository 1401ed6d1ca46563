/**
 * Says whether the store of runs takes writes. A gateway serves without one, unrecorded and without retries, so that no client
 * notices: an operator must.
 */
import { Clock, Context, Effect, Exit, Layer, Option, type Scope } from "effect";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder, staysAtOnce, type Told } from "../../recorder/RunRecorder.ts";

/** How the store's writes go. */
export interface StoreState {
  readonly writes: "ok" | "failing";
  /** Why the last write failed, in the recorder's words; `slow` where one hangs. */
  readonly reason?: string;
  /** When writes began to fail, in milliseconds since the epoch. */
  readonly since?: number;
}

/** Tells it. */
export class StoreHealth extends Context.Service<
  StoreHealth,
  {
    readonly state: Effect.Effect<StoreState>;
    /** The same in this step: each response's head asks for it. */
    readonly now: () => StoreState;
  }
>()("effect-stream-recovery/gateway/StoreHealth") {
  /**
   * Watches the writes of a recorder.
   *
   * @param recorder of the program; what stands above it writes through the watched one
   */
  static readonly watching = <E, R>(
    recorder: Layer.Layer<RunRecorder, E, R>,
  ): Layer.Layer<RunRecorder | StoreHealth, E, R> =>
    Layer.effectContext(Effect.suspend(() => watch)).pipe(Layer.provide(recorder));
}

/** A write that takes longer than this has not been taken, in milliseconds: a healthy one takes a few. */
export const slowWriteMs = 2_000;

/** From one probe of a store that fails to the next, in milliseconds. */
export const probeFailingMs = 1_000;

/** A store that was not written to for so long is probed, in milliseconds: an idle gateway tells of a full disk too. */
export const probeIdleMs = 30_000;

/** Longest that a probe is waited for, in milliseconds. */
const probeWaitMs = 10_000;

/** What the store as a whole says; any other reason is about one run. */
const ofStore: ReadonlySet<RecorderError["reason"]> = new Set([
  "full",
  "newer_schema",
  "read_only",
  "disk_full",
  "locked",
  "unavailable",
]);

/** Follows writes. */
class StoreWatch {
  readonly #now: () => number;
  readonly #elapsed: () => number;
  /** When the writes under way have begun, oldest first. */
  readonly #pending = new Set<{ readonly since: number; readonly at: number }>();
  #failing: { readonly reason: string; readonly since: number } | undefined;
  #writtenAt: number;
  readonly #isProbed: boolean;

  /**
   * @param now wall clock, milliseconds since the epoch
   * @param elapsed monotonic milliseconds
   * @param isProbed whether the store is probed
   */
  constructor(now: () => number, elapsed: () => number, isProbed: boolean) {
    this.#isProbed = isProbed;
    this.#now = now;
    this.#elapsed = elapsed;
    this.#writtenAt = elapsed();
  }

  get state(): StoreState {
    const failing = this.#failing ?? this.#slow;
    return failing === undefined ? { writes: "ok" } : { writes: "failing", ...failing };
  }

  /** Whether the store is to be probed: it fails, or nothing is known of it since long. */
  get isToProbe(): boolean {
    return this.#failing !== undefined || this.#elapsed() - this.#writtenAt >= probeIdleMs;
  }

  get #slow(): { readonly reason: string; readonly since: number } | undefined {
    const [oldest] = this.#pending;
    if (oldest === undefined || this.#elapsed() - oldest.since < slowWriteMs) return undefined;
    return { reason: "slow", since: oldest.at };
  }

  /** Follows one write to its end, whatever that is. */
  follow<A>(write: Effect.Effect<A, RecorderError>, isProbe?: true): Effect.Effect<A, RecorderError> {
    return Effect.suspend(() => {
      const pending = { since: this.#elapsed(), at: this.#now() };
      this.#pending.add(pending);
      return Effect.onExit(write, (exit) =>
        Effect.sync(() => {
          this.#pending.delete(pending);
          // A write that died, or that its caller gave up, was not taken either.
          if (Exit.isSuccess(exit)) this.taken(isProbe);
          else this.#refused(Option.getOrUndefined(Exit.findErrorOption(exit))?.reason ?? "unavailable", pending.at);
        }),
      );
    });
  }

  /** Follows one write that is told of its end. */
  begun(): Told {
    const pending = { since: this.#elapsed(), at: this.#now() };
    this.#pending.add(pending);
    return (isOnRecord, why) => {
      this.#pending.delete(pending);
      if (isOnRecord) this.taken();
      else if (why !== undefined) this.#refused(why.reason, pending.at);
    };
  }

  /**
   * A write was taken. It may have found room in what is there already, where the disk has none: that it has some again is a probe's to
   * say, where there is one.
   */
  taken(isProbe = !this.#isProbed): void {
    this.#writtenAt = this.#elapsed();
    if (isProbe || this.#failing?.reason !== "disk_full") this.#failing = undefined;
  }

  #refused(reason: RecorderError["reason"], since: number): void {
    this.#writtenAt = this.#elapsed();
    if (ofStore.has(reason)) this.#failing = { reason, since: this.#failing?.since ?? since };
  }
}

const watch: Effect.Effect<Context.Context<RunRecorder | StoreHealth>, never, RunRecorder | Scope.Scope> = Effect.gen(
  function* () {
    const recorder = yield* RunRecorder;
    const clock = yield* Clock.Clock;
    const { probe } = recorder;
    const watched = new StoreWatch(
      () => clock.currentTimeMillisUnsafe(),
      () => monotonicMs(clock),
      probe !== undefined,
    );
    if (probe !== undefined) {
      const late = Effect.fail(
        new RecorderError({ reason: "unavailable", run_id: "", message: "a probe came not back" }),
      );
      const once = Effect.timeoutOrElse(probe, { duration: probeWaitMs, orElse: () => late });
      const look = Effect.suspend(() =>
        watched.isToProbe ? Effect.ignoreCause(watched.follow(once, true)) : Effect.void,
      );
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(probeFailingMs), look)));
    }
    const around: RunRecorder["Service"] = {
      ...recorder,
      write: (runId, entries) => watched.follow(recorder.write(runId, entries)),
    };
    const followed = staysAtOnce(around, recorder, () => watched.begun());
    return Context.make(RunRecorder, followed).pipe(
      Context.add(StoreHealth, { state: Effect.sync(() => watched.state), now: () => watched.state }),
    );
  },
);
