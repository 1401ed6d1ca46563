/**
 * Lists the runs of a processor that a reader can be attached to.
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

/** Most runs of a processor that can be attached to at once. */
export const lingeringRunsMax = 1_024;

type Reason = AttachRefused["reason"];

/** A run that can be attached to, whatever its parts are. */
interface AnyLingering {
  readonly attach: (after: AttachAfter | undefined) => AnyReader | Reason;
  readonly over: () => void;
  readonly isIdle: boolean;
}

interface AnyReader {
  readonly take: Taken<unknown>;
  readonly left: (exit: Exit.Exit<unknown, unknown>) => boolean;
}

/** A run that has not ended, as far as it is asked why it is not listed. */
export interface LiveRun {
  readonly stopper: Stopper | undefined;
  readonly options: { readonly lingerMs?: number };
}

/** Why a run that is not listed cannot be attached to. */
export const missing = (run: LiveRun | undefined, closed: string | undefined): Reason => {
  if (closed !== undefined) return "closed";
  if (run === undefined) return "unknown";
  if (run.stopper !== undefined) return "ended";
  return (run.options.lingerMs ?? 0) > 0 ? "evicted" : "not_lingering";
};

/** The runs of one processor. */
export class LingeringRuns {
  readonly #pool: KeptPool = { used: 0 };
  readonly #runs = new Map<string, AnyLingering>();

  /** How many there are. */
  get size(): number {
    return this.#runs.size;
  }

  /** What is kept of all of them, in bytes. */
  get bytes(): number {
    return this.#pool.used;
  }

  /** How a run with these options is read: by its consumer alone, or by readers that come and go. */
  readBy<P, E, R>(options: RunOptions<P, E, R>) {
    const lingering = LingeringRun.of(options, this.#pool);
    return { lingering, tapped: lingering === undefined ? options : { ...options, taps: lingering.taps } };
  }

  /** A run begins. Where there is no room, one that has ended goes; where none has, this one cannot be attached to. */
  admit<P>(runId: string, run: LingeringRun<P>): void {
    // The record of an ended run may be gone, and its id another run's.
    this.#runs.get(runId)?.over();
    if (this.#runs.size >= lingeringRunsMax) this.#oldestIdle?.over();
    if (this.#runs.size >= lingeringRunsMax) {
      run.breaks();
      return;
    }
    const listed: AnyLingering = {
      attach: (after) => run.attach(after),
      over: () => run.over(),
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
   * Attaches a reader, for as long as its stream lasts.
   *
   * @param why says why a run that is not listed cannot be attached to
   */
  attach<P>(
    runId: string,
    after: AttachAfter | undefined,
    why: () => Reason,
  ): Stream.Stream<RunEvent<P>, RunInterrupted | AttachRefused> {
    return Stream.transformPull(Stream.empty, (_upstream, scope) => {
      // Runs of all kinds of parts are listed together; only the caller knows what those of its run are.
      return this.#attached(runId, after, why, scope) as Effect.Effect<Taken<P>, AttachRefused>;
    });
  }

  #attached(runId: string, after: AttachAfter | undefined, why: () => Reason, scope: Scope.Scope) {
    return Effect.uninterruptible(
      Effect.suspend(() => {
        const reader = this.#runs.get(runId)?.attach(after) ?? why();
        if (typeof reader === "string") return Effect.fail(refused(runId, reader));
        const left = Scope.addFinalizerExit(scope, (exit) => Effect.sync(() => reader.left(exit)));
        return Effect.as(left, reader.take);
      }),
    );
  }

  /** No reader is attached any more, and what no reader takes is given back. */
  close(): void {
    for (const run of [...this.#runs.values()]) run.over();
  }

  get #oldestIdle(): AnyLingering | undefined {
    for (const run of this.#runs.values()) if (run.isIdle) return run;
    return undefined;
  }
}

/** What was wrong, for a person. */
const sentences: Readonly<Record<Reason, string>> = {
  unknown: "No run of this id can be attached to here: there never was one, or its time is over.",
  not_lingering: "The run was started without `lingerMs`, and ends with its consumer.",
  evicted: "What the run has said did not fit into the bounds of what is kept for a reader.",
  ended: "The run was cancelled, or its reader had all that it wanted.",
  ahead: "`after` names something that the run has not handed over.",
  closed: "The processor is closed.",
};

const refused = (runId: string, reason: Reason): AttachRefused =>
  new AttachRefused({ reason, run_id: label(String(runId)), message: sentences[reason] });
