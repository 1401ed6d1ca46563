/**
 * Tracks if the store of runs accepts writes. If the store fails, the gateway still serves requests but does not record them. Clients
 * notice nothing, so this state is reported to operators.
 */
import { Clock, Context, Effect, Exit, Layer, Option, type Scope } from "effect";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import { type Outcome, RunRecorder, type Write, withCommit } from "../../recorder/RunRecorder.ts";
import { awayMs as queueAwayMs } from "../../recorder/WriteQueue.ts";

/** State of the store's writes. */
export interface StoreState {
  /** `slow`: a write has taken longer than `slowMs`, or the last one failed. `failing`: the store counts as unavailable. */
  readonly writes: "ok" | "slow" | "failing";
  /** Reason of the last failure, in the recorder's terms, or `slow` if a write hangs. */
  readonly reason?: string;
  /** Time at which the trouble began, in milliseconds since the epoch. */
  readonly since?: number;
}

/** Reports the state of the store's writes. */
export class StoreHealth extends Context.Service<
  StoreHealth,
  {
    readonly state: Effect.Effect<StoreState>;
    /** Reads the state synchronously, because the head of every response contains it. */
    readonly now: () => StoreState;
  }
>()("effect-stream-recovery/gateway/StoreHealth") {
  /**
   * Watches the writes of a recorder.
   *
   * @param recorder the program's recorder; layers above it write through the watched one
   */
  static readonly layerOver = <E, R>(
    recorder: Layer.Layer<RunRecorder, E, R>,
  ): Layer.Layer<RunRecorder | StoreHealth, E, R> =>
    Layer.effectContext(Effect.suspend(() => watch)).pipe(Layer.provide(recorder));
}

/**
 * Time without a successful write, while writes are pending, after which a slow store counts as unavailable, in milliseconds. With a
 * shorter limit a slow server would count as unavailable, and each aborted write would add to its load.
 */
export const awayMs = queueAwayMs;

/** Duration after which a write counts as slow, in milliseconds. */
export const slowMs = 250;

/** Interval between probes of a failing store, in milliseconds. */
export const probeFailingMs = 1_000;

/** Time without a write after which the store is probed, in milliseconds. The probe detects a full disk of an idle gateway too. */
export const probeIdleMs = 30_000;

const probeWaitMs = 10_000;

/** Reasons of failures that affect the whole store. Any other reason affects one run. */
const ofStore: ReadonlySet<RecorderError["reason"]> = new Set([
  "full",
  "newer_schema",
  "read_only",
  "disk_full",
  "locked",
  "unavailable",
]);

/** Reasons that do not disappear with time, so that the store counts as failing at once. */
const isDefinite: ReadonlySet<string> = new Set(["full", "newer_schema", "read_only", "disk_full"]);

class StoreWatch {
  readonly #now: () => number;
  readonly #elapsed: () => number;
  /** Start times of the writes in flight, oldest first. */
  readonly #pending = new Set<{ readonly since: number; readonly at: number }>();
  #failing: { readonly reason: string; readonly since: number } | undefined;
  /** Monotonic time since which writes have been pending without a success; undefined after a success. */
  #dueSince: number | undefined;
  #writtenAt: number;
  readonly #isProbed: boolean;

  /**
   * @param now wall clock, in milliseconds since the epoch
   * @param elapsed monotonic time, in milliseconds
   * @param isProbed true if the store is probed
   */
  constructor(now: () => number, elapsed: () => number, isProbed: boolean) {
    this.#isProbed = isProbed;
    this.#now = now;
    this.#elapsed = elapsed;
    this.#writtenAt = elapsed();
  }

  get state(): StoreState {
    const trouble = this.#failing ?? this.#slowWrite;
    if (trouble === undefined) return { writes: "ok" };
    const isAway = isDefinite.has(trouble.reason) || this.#elapsed() - this.#pendingSince >= awayMs;
    return { writes: isAway ? "failing" : "slow", ...trouble };
  }

  /** True if a probe is due: the store fails, or was not written to for a long time. */
  get isToProbe(): boolean {
    return this.#failing !== undefined || this.#elapsed() - this.#writtenAt >= probeIdleMs;
  }

  get #slowWrite(): { readonly reason: string; readonly since: number } | undefined {
    const [oldest] = this.#pending;
    if (oldest === undefined || this.#elapsed() - oldest.since < slowMs) return undefined;
    return { reason: "slow", since: oldest.at };
  }

  /** Monotonic time since which writes have been pending without a success, including the writes in flight. */
  get #pendingSince(): number {
    const [oldest] = this.#pending;
    return Math.min(this.#dueSince ?? Number.POSITIVE_INFINITY, oldest?.since ?? Number.POSITIVE_INFINITY);
  }

  /** Follows one write until it succeeds, fails or is abandoned. */
  follow<A>(write: Effect.Effect<A, RecorderError>, isProbe?: true): Effect.Effect<A, RecorderError> {
    return Effect.suspend(() => {
      const pending = { since: this.#elapsed(), at: this.#now() };
      this.#pending.add(pending);
      return Effect.onExit(write, (exit) =>
        Effect.sync(() => {
          this.#pending.delete(pending);
          // A write that died or was interrupted by its caller counts as failed too.
          if (Exit.isSuccess(exit)) this.recordSuccess(isProbe);
          else this.#recordFailure(Option.getOrUndefined(Exit.findErrorOption(exit))?.reason ?? "unavailable", pending);
        }),
      );
    });
  }

  /** Starts to follow one commit. The caller passes the outcome to the returned function. */
  begin(): (outcome: Outcome) => void {
    const pending = { since: this.#elapsed(), at: this.#now() };
    this.#pending.add(pending);
    return (outcome) => {
      this.#pending.delete(pending);
      if (outcome === "recorded") this.recordSuccess();
      else if (outcome !== "undecided") this.#recordFailure(outcome.reason, pending);
    };
  }

  /**
   * Records a successful write. On a full disk a small write may still fit into existing pages, so only a probe ends the state `disk_full`
   * if the store is probed.
   */
  recordSuccess(isProbe = !this.#isProbed): void {
    this.#writtenAt = this.#elapsed();
    if (!isProbe && this.#failing?.reason === "disk_full") return;
    this.#failing = undefined;
    this.#dueSince = undefined;
  }

  #recordFailure(
    reason: RecorderError["reason"],
    { at, since }: { readonly at: number; readonly since: number },
  ): void {
    this.#writtenAt = this.#elapsed();
    if (!ofStore.has(reason)) return;
    this.#failing = { reason, since: this.#failing?.since ?? at };
    this.#dueSince ??= since;
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
        new RecorderError({ reason: "unavailable", run_id: "", message: "a probe did not return" }),
      );
      const once = Effect.timeoutOrElse(probe, { duration: probeWaitMs, orElse: () => late });
      const look = Effect.suspend(() =>
        watched.isToProbe ? Effect.ignoreCause(watched.follow(once, true)) : Effect.void,
      );
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(probeFailingMs), look)));
    }
    const { commit } = recorder.write;
    const write: Write = (runId, entries) => watched.follow(recorder.write(runId, entries));
    const followed =
      commit === undefined
        ? write
        : withCommit(write, commit.answers, (runId, entries, onDone) => {
            const end = watched.begin();
            commit(runId, entries, (outcome) => {
              end(outcome);
              onDone(outcome);
            });
          });
    return Context.make(RunRecorder, { ...recorder, write: followed }).pipe(
      Context.add(StoreHealth, { state: Effect.sync(() => watched.state), now: () => watched.state }),
    );
  },
);
