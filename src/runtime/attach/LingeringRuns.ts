/**
 * Lists the runs of a processor that a reader can attach to.
 */
import * as Effect from "effect/Effect";
import type * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import { label } from "../../domain/Limits.ts";
import { type AttachAfter, AttachRefused } from "../contract/AttachRefused.ts";
import type { Stopper } from "../contract/InterruptSignature.ts";
import type { RunEvent, RunInterrupted } from "../contract/RunEvent.ts";
import type { RunOptions } from "../contract/RunOptions.ts";
import type { KeptPool } from "./KeptEvents.ts";
import { LingeringRun, type Taken } from "./LingeringRun.ts";

/** Maximum runs of a processor that readers can attach to at once. */
export const lingeringRunsMax = 1_024;

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

/** The properties of a live run that explain why it is not listed. */
export interface LiveRun {
  readonly stopper: Stopper | undefined;
  readonly options: { readonly lingerMs?: number };
}

/** Returns the reason why no reader can attach to a run that is not listed. */
export const missing = (run: LiveRun | undefined, closed: string | undefined): Reason => {
  if (closed !== undefined) return "closed";
  if (run === undefined) return "unknown";
  if (run.stopper !== undefined) return "ended";
  return (run.options.lingerMs ?? 0) > 0 ? "evicted" : "not_lingering";
};

/** The runs of one processor that a reader can attach to. */
export class LingeringRuns {
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

  /** Chooses the readers of a run with these options: only its consumer, or readers that come and go. */
  readBy<P, E, R>(options: RunOptions<P, E, R>) {
    const lingering = LingeringRun.of(options, this.#pool);
    return { lingering, tapped: lingering === undefined ? options : { ...options, taps: lingering.taps } };
  }

  /** Lists a new run. If the list is full, the oldest idle run is evicted. If none is idle, no reader can attach to the new run. */
  admit<P>(runId: string, run: LingeringRun<P>): void {
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
    run.whenOver(() => {
      if (this.#runs.get(runId) === listed) this.#runs.delete(runId);
    });
  }

  /**
   * Attaches a reader for the lifetime of its stream.
   *
   * @param why returns the reason why no reader can attach to a run that is not listed
   */
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
        if (typeof reader === "string") return Effect.fail(refusal(runId, reader));
        const left = Scope.addFinalizerExit(scope, (exit) => Effect.sync(() => reader.detach(exit)));
        return Effect.as(left, reader.take);
      }),
    );
  }

  /** Prevents readers from attaching, and discards the kept events of runs without a reader. */
  close(): void {
    for (const run of [...this.#runs.values()]) run.retire();
  }

  get #oldestIdle(): AnyLingering | undefined {
    for (const run of this.#runs.values()) if (run.isIdle) return run;
    return undefined;
  }
}

/** Messages for the caller. */
const sentences: Readonly<Record<Reason, string>> = {
  unknown: "No run with this id is available here: it never existed, or its linger time is over.",
  not_lingering: "The run was started without `lingerMs` and ends with its consumer.",
  evicted: "The run's output was evicted because it exceeded the limit of what is kept for a reader.",
  ended: "The run was cancelled, or its reader had everything that it wanted.",
  ahead: "`after` names a position that the run has not reached.",
  closed: "The processor is closed.",
};

const refusal = (runId: string, reason: Reason): AttachRefused =>
  new AttachRefused({ reason, run_id: label(String(runId)), message: sentences[reason] });
