/**
 * Lets runs continue without their consumer, and lists those of a processor that a reader can attach to.
 */
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import { toMs } from "../../domain/Durations.ts";
import { type AttachAfter, AttachRefused } from "../../runtime/contract/AttachRefused.ts";
import type { RunEvent, RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { RunLinger, RunOptions } from "../../runtime/contract/RunOptions.ts";
import type { Lingering, Taken } from "../../runtime/contract/Stages.ts";
import { describe } from "../../runtime/Entrance.ts";
import type { KeptPool } from "./KeptEvents.ts";
import { LingeringRun } from "./LingeringRun.ts";

/** Maximum runs of a processor that readers can attach to at once. */
export const lingeringRunsMax = 1_024;

/** Maximum time that a run lingers, in milliseconds: one day. */
export const lingerMsMax = 86_400_000;

/**
 * Returns the option that lets a run continue without its consumer.
 *
 * @param time time that the run continues, as milliseconds or a duration, from 0 (it ends with its consumer) to one day
 */
export const of = (time: Duration.Input): RunLinger => ({ ms: toMs(time), admit, begin });

const admit: RunLinger["admit"] = (linger) =>
  typeof linger.ms === "number" && linger.ms >= 0 && linger.ms <= lingerMsMax
    ? linger
    : `linger.ms: expected milliseconds from 0 to ${lingerMsMax}, got ${describe(linger.ms)}`;

const begin = (): Lingering => new LingeringRuns();

type Reason = AttachRefused["reason"];

/** A run that readers can attach to, with any type of parts. */
interface AnyLingering {
  readonly attach: (after: AttachAfter | undefined) => AnyReader | Reason;
  readonly retire: () => void;
  readonly isIdle: boolean;
}

interface AnyReader {
  readonly take: Taken<unknown>;
  readonly detach: (exit: Exit.Exit<unknown, unknown>) => boolean;
}

/** The runs of one processor that a reader can attach to. */
export class LingeringRuns implements Lingering {
  readonly #pool: KeptPool = { used: 0 };
  readonly #runs = new Map<string, AnyLingering>();

  /** Number of listed runs. */
  get size(): number {
    return this.#runs.size;
  }

  /** Size of all kept events, in bytes. */
  get bytes(): number {
    return this.#pool.used;
  }

  open<P>(
    { ms }: Pick<RunLinger, "ms">,
    { sizeOf }: Pick<RunOptions<P, never, never>, "sizeOf">,
  ): LingeringRun<P> | undefined {
    return ms > 0 ? new LingeringRun<P>(ms, this.#pool, sizeOf, (run, runId) => this.#admit(runId, run)) : undefined;
  }

  /** Lists a new run. If the list is full, the oldest idle run is evicted. If none is idle, no reader can attach to the new run. */
  #admit<P>(runId: string, run: LingeringRun<P>): void {
    // The record of an ended run may be deleted and its id used again.
    this.#runs.get(runId)?.retire();
    if (this.#runs.size >= lingeringRunsMax) this.#oldestIdle?.retire();
    if (this.#runs.size >= lingeringRunsMax) {
      run.refuseReaders();
      return;
    }
    const listed: AnyLingering = {
      attach: (after) => run.attach(after),
      retire: () => run.retire(),
      get isIdle() {
        return run.isIdle;
      },
    };
    this.#runs.set(runId, listed);
    run.whenOver(() => this.#runs.delete(runId));
  }

  attach<P>(
    runId: string,
    after: AttachAfter | undefined,
    why: () => Reason,
  ): Stream.Stream<RunEvent<P>, RunInterrupted | AttachRefused> {
    return Stream.transformPull(Stream.empty, (_upstream, scope) => {
      // Runs with different types of parts are listed together; only the caller knows the type of its run.
      return this.#attach(runId, after, why, scope) as Effect.Effect<Taken<P>, AttachRefused>;
    });
  }

  #attach(runId: string, after: AttachAfter | undefined, why: () => Reason, scope: Scope.Scope) {
    return Effect.uninterruptible(
      Effect.suspend(() => {
        const reader = this.#runs.get(runId)?.attach(after) ?? why();
        if (typeof reader === "string") return Effect.fail(AttachRefused.of(runId, reader));
        const left = Scope.addFinalizerExit(scope, (exit) => Effect.sync(() => reader.detach(exit)));
        return Effect.as(left, reader.take);
      }),
    );
  }

  close(): void {
    for (const run of [...this.#runs.values()]) run.retire();
  }

  get #oldestIdle(): AnyLingering | undefined {
    for (const run of this.#runs.values()) if (run.isIdle) return run;
    return undefined;
  }
}
