/**
 * Puts one run on record: entries with the evidence that waits for them, and what a write that fails means.
 */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import { label } from "../domain/Limits.ts";
import type { Evidence } from "../domain/RunIncident.ts";
import type { Entry } from "../recorder/RunRecord.ts";
import type { RunRecorder } from "../recorder/RunRecorder.ts";

/** Evidence that waits for the next commit; of what comes beyond it the newest are dropped, and counted. */
const pendingMax = 64;

/** Entries that wait for the store to take writes again; what comes beyond it is lost, as its own log line said. */
const unwrittenMax = 256;

/** Reasons that say something of the store, and nothing of the entries: the same write may be taken later. */
const ofStore: ReadonlySet<string> = new Set(["locked", "disk_full", "read_only", "corrupt", "unavailable", "full"]);

/** What the writer needs of its run. */
interface Owner {
  readonly runId: string;
  /** Milliseconds since the run started. */
  readonly elapsedMs: number;
  /** Another process has taken the run over. */
  readonly takenOver: () => void;
}

/** One run's side of the recorder. */
export class RunWriter {
  readonly #owner: Owner;
  readonly #recorder: RunRecorder["Service"];
  #pending: Array<Entry> = [];
  /** What has happened all the same and a write has lost: it goes before the next one. */
  #unwritten: ReadonlyArray<Entry> = [];
  #dropped = 0;
  #fenced = false;

  constructor(owner: Owner, recorder: RunRecorder["Service"]) {
    this.#owner = owner;
    this.#recorder = recorder;
  }

  /** Notes evidence; it is committed with the next write. */
  note(attempt: number, event: Evidence["event"], detail?: string): void {
    if (this.#pending.length >= pendingMax) {
      this.#dropped += 1;
      return;
    }
    const evidence = {
      at_ms: this.#owner.elapsedMs,
      attempt,
      event,
      ...(detail === undefined ? {} : { detail: label(detail) }),
    };
    this.#pending.push({ _tag: "EvidenceNoted", evidence, ...(this.#dropped === 0 ? {} : { omitted: this.#dropped }) });
    this.#dropped = 0;
  }

  /**
   * Commits entries with the evidence that waits; whether that worked. A failure is logged, counted and remembered.
   *
   * @param happened the entries say what is so whether they are on record or not: while the store takes nothing they wait,
   *   and go before the next write. Others are what their caller does only once they are written.
   */
  write(entries: ReadonlyArray<Entry>, happened = false): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (this.#fenced) return Effect.succeed(false);
      const [first, ...rest] = entries;
      const [pending, unwritten] = [this.#pending, this.#unwritten];
      this.#pending = [];
      this.#unwritten = [];
      // Evidence of the beginning comes after the entry that begins the run.
      const starts = first?._tag === "RunStarted";
      const own = starts ? [first, ...pending, ...rest] : [...pending, ...entries];
      return this.#recorder.write(this.#owner.runId, [...unwritten, ...own]).pipe(
        Effect.as(true),
        // A recorder that dies is a failed write as well: what it knows of the run is not known.
        Effect.catchCause((cause) => {
          const error = Cause.findErrorOption(cause);
          const reason = Option.isSome(error) ? error.value.reason : "defect";
          if (ofStore.has(reason)) {
            this.#unwritten = waiting([...unwritten, ...this.#unwritten, ...(happened ? entries : [])]);
            this.#pending = [...pending, ...this.#pending].slice(0, pendingMax);
          }
          return Effect.as(this.#failed(reason), false);
        }),
      );
    });
  }

  /** Who was fenced may not act any more: another process decides what becomes of the run, on facts that end here. */
  #failed(reason: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const told = { run_id: this.#owner.runId, reason };
      if (reason !== "fenced") return Effect.logError("a run could not be recorded", told);
      this.#fenced = true;
      this.#owner.takenOver();
      return Effect.logError("another process has taken this run over; it stops here", told);
    });
  }
}

/** Of an attempt's facts the newest are enough: they only grow (law L1). */
const waiting = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> =>
  entries
    .filter(
      (it, index) => it._tag !== "FactsRaised" || !entries.slice(index + 1).some((later) => raisesSame(it, later)),
    )
    .slice(0, unwrittenMax);

const raisesSame = ({ attempt }: Extract<Entry, { readonly _tag: "FactsRaised" }>, later: Entry): boolean =>
  later._tag === "FactsRaised" && later.attempt === attempt;
