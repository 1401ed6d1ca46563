/**
 * Records runs: the facts of each attempt, incidents with their decisions, questions, answers and the end.
 *
 * All durable layers implement this service. A recorder never decides: it commits entries, or reports why it did not.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { RunIncident } from "../domain/RunIncident.ts";
import { generateKey, makeDigester } from "./Digest.ts";
import { closeWait } from "./Orphan.ts";
import { type Answer, AnswerRefused, checkAnswer } from "./Question.ts";
import { RecorderError, runError } from "./RecorderError.ts";
import { isListed, type RunQuery } from "./RunFilter.ts";
import * as RunRecord from "./RunRecord.ts";
import type { SharedCancels } from "./shared/SharedCancels.ts";
import type { SharedFacts, SharedPacing } from "./shared/SharedFacts.ts";

export { RecorderError } from "./RecorderError.ts";
export type { RunQuery } from "./RunFilter.ts";

/** Selects the ended runs to delete. A run that has not ended is never deleted. */
export interface PruneQuery {
  /** Deletes runs that ended before this wall clock time, in milliseconds since the epoch. */
  readonly endedBefore?: number;
  /** Maximum ended runs to keep, newest end first. */
  readonly keep?: number;
}

/** Default maximum of runs that the memory layer keeps. A run takes a few KiB, and a process rarely has that many streams at once. */
export const memoryRunsMax = 10_000;

/** Default timeout of one write, read, digest or claim of a recorder, in milliseconds. */
export const recorderWaitMs = 5_000;

/** Timeout of a list of runs, in milliseconds. A store may have to read many runs. */
export const listWaitMs = 30_000;

/** Default limit of a list of runs. */
export const listLimitDefault = 100;

/** The store of runs. */
export class RunRecorder extends Context.Service<
  RunRecorder,
  {
    /** True if runs outlive the process. A run whose caller left without a signed cancel is then parked for `recover` and not ended. */
    readonly durable: boolean;
    /**
     * Timeout of one write, read, digest or claim, in milliseconds; default 5,000. A call that exceeds it is abandoned and
     * counts as not done.
     */
    readonly waitMs?: number;
    /** Timeout of `claim` and `orphans`, in milliseconds. Both may wait for owners that do not renew their leases. */
    readonly claimWaitMs?: number;
    /**
     * Commits entries of one run together, and returns after the commit. A caller that does not know the outcome repeats the write, because
     * entries that are already on record change nothing (see `RunRecord.apply`). An entry that continues a run (`RunResumed`,
     * `AttemptStarted`) requires that this process started or claimed the run. After a release, such an entry is refused as `fenced`,
     * because it may come from an abandoned write that arrives late.
     *
     * @param entries entries in the order in which they happened
     */
    readonly write: Write;
    /** Reads one run; returns undefined if it is unknown or was deleted. */
    run(runId: string): Effect.Effect<RunRecord.RunRecord | undefined, RecorderError>;
    /** Lists runs, newest first, at most `query.limit` (default 100). */
    runs(query?: RunRecorder.RunQuery): Effect.Effect<ReadonlyArray<RunRecord.RunRecord>, RecorderError>;
    /** Reads the incidents of a run, oldest first; empty if the run is unknown. */
    incidents(runId: string): Effect.Effect<ReadonlyArray<RunIncident>, RecorderError>;
    /**
     * Takes over a run that no process owns, because it is parked or its process is gone. Afterwards only this process may write the run.
     * Fails with `unknown_run`, `run_ended` or `owned`. If the owner has not renewed its lease lately (a silent owner), the call waits
     * until the owner renews the lease or counts as gone, which takes about one lease. A caller that is interrupted during this wait has
     * claimed nothing.
     */
    claim(runId: string): Effect.Effect<RunRecord.RunRecord, RecorderError>;
    /**
     * Releases a claimed run that was not continued. If the store is unavailable, a durable recorder retries later. Without the release, no
     * process could take the run over.
     */
    release(runId: string): Effect.Effect<void, RecorderError>;
    /**
     * Lists runs that no process owns and whose next step no process has decided, because their process is gone or their caller left
     * (`interrupted`). Oldest first, at most `limit` (default 100).
     *
     * @param options.waits true to wait for silent processes, as `claim` does (default). With `false` it only reads: it lists the runs of
     *   silent processes at once and ends no lease. `all` also waits for a process that may just have died, until that process renews its
     *   lease or the lease expires; use it once after a crash
     */
    orphans(
      limit?: number,
      options?: { readonly waits?: boolean | "all" },
    ): Effect.Effect<ReadonlyArray<RunRecord.RunRecord>, RecorderError>;
    /**
     * Answers the newest question of a run once (compare and set), and only if the facts have not grown since the question. Any process may
     * call it. Returns the record with the answer. The process that owns the run acts on the answer.
     */
    answer(answer: RunRecorder.Answer): Effect.Effect<RunRecord.RunRecord, AnswerRefused | RecorderError>;
    /** Digests content that is never stored: HMAC-SHA-256 under a key of this store, as hex. */
    digest(content: string): Effect.Effect<string, RecorderError>;
    /** Writes without changing any run, to check that the store accepts writes. Omitted if the store is always available. */
    readonly probe?: Effect.Effect<void, RecorderError>;
    /** Deletes ended runs; returns their number. */
    prune(query: RunRecorder.PruneQuery): Effect.Effect<number, RecorderError>;
    /**
     * Registers a listener for runs of this process that another process took over. It is called as soon as this process knows of the
     * takeover. Without a listener, the run learns of it when its next write is refused.
     *
     * @param listener returns true if a stream of this process was running the run; the listener then stops that stream. It must not throw
     * @returns a function that removes the listener
     */
    onLost?(listener: (runId: string) => boolean): () => void;
    /**
     * Reports that another process has ended, so that its runs can be taken over at once. Call it only if you started the
     * process and know that it ended: a live process would lose its runs. Omitted if no other process shares the store.
     *
     * @param process name that was given to the recorder of the ended process
     */
    processEnded?(process: string): Effect.Effect<void, RecorderError>;
    /**
     * Announces that this process is about to exit. From then on, calls wait only a few seconds for an unresponsive store. Omitted if no
     * call waits longer.
     */
    readonly hurry?: Effect.Effect<void>;
    /** Facts that the processes of a store share in addition to runs. Omitted if the processes share no facts. */
    readonly shared?: SharedFacts;
    /** Limits on the retries of all processes of a store together. Omitted if no other process uses the store. */
    readonly pacing?: SharedPacing;
    /** Requests to cancel a run, which the processes of a store send each other. Omitted if no other process uses the store. */
    readonly cancels?: SharedCancels;
  }
>()("effect-stream-recovery/RunRecorder") {
  /**
   * Keeps runs in this process's memory. They are lost when the process ends.
   *
   * @param options.runsMax maximum runs kept (default 10,000). At the maximum, the oldest ended run is evicted. If every run is live, a new
   *   one is refused with reason `full`, because evicting a live run would lose it.
   */
  static readonly layerMemory = (options?: { readonly runsMax?: number }) =>
    Layer.effect(RunRecorder, makeMemory(options?.runsMax ?? memoryRunsMax));
}

/** The types of the service. */
export declare namespace RunRecorder {
  export type { Answer, PruneQuery, RunQuery };
}

/** Result of a commit. `undecided` means that nothing has changed, and that `write` with the same entries reports why. */
export type Outcome = "recorded" | "undecided" | RecorderError;

/** Commits the entries of one run, all of them or none, without a fiber. */
export interface Commit {
  /** @param onDone called once, possibly before `commit` returns */
  (runId: string, entries: ReadonlyArray<RunRecord.Entry>, onDone: (outcome: Outcome) => void): void;
  /**
   * Time at which `onDone` is called: before `commit` returns (`at_once`), within a few milliseconds (`soon`), or after a server has
   * responded (`late`).
   */
  readonly answers: "at_once" | "soon" | "late";
}

/** Commits entries of one run together, and returns after the commit. */
export interface Write {
  (runId: string, entries: ReadonlyArray<RunRecord.Entry>): Effect.Effect<void, RecorderError>;
  /** Commits without a fiber. It is attached to this function, so a copy of a recorder with another `write` lacks it. */
  readonly commit?: Commit;
}

/** Attaches a commit that needs no fiber to a `write`. */
export const withCommit = (
  write: Write,
  answers: Commit["answers"],
  commit: (...all: Parameters<Commit>) => void,
): Write =>
  Object.assign((...all: Parameters<Write>) => write(...all), {
    commit: Object.assign((...all: Parameters<Commit>) => commit(...all), { answers }),
  });

const makeMemory = (runsMax: number): Effect.Effect<RunRecorder["Service"]> =>
  Effect.map(Effect.all([Clock.Clock, Effect.sync(generateKey)]), ([clock, key]) => {
    const records = new Map<string, RunRecord.RunRecord>();
    const driven = new Set<string>();

    const commit = (runId: string, entries: ReadonlyArray<RunRecord.Entry>): RecorderError | undefined => {
      const before = records.get(runId);
      const isGivenBack = before !== undefined && !driven.has(runId);
      const record = RunRecord.applyAll(before, entries, isGivenBack);
      if (typeof record === "string") return runError(record, runId);
      if (record === undefined) return undefined;
      if (before === undefined && records.size >= runsMax && !forgetOldestEnded(records))
        return runError("full", runId);
      records.set(runId, record);
      if (before === undefined) driven.add(runId);
      if (record.state === "ended" || entries.some(({ _tag }) => _tag === "RunParked")) driven.delete(runId);
      return undefined;
    };

    const claim = (runId: string): RunRecord.RunRecord | RecorderError => {
      const record = records.get(runId);
      if (record === undefined) return runError("unknown_run", runId);
      if (record.state === "ended") return runError("run_ended", runId);
      if (driven.has(runId)) return runError("owned", runId);
      driven.add(runId);
      const known = closeWait(record, undefined);
      records.set(runId, known);
      return known;
    };

    const answer = (given: Answer) => {
      const unanswered = checkAnswer(records.get(given.run_id), given, clock.currentTimeMillisUnsafe());
      if (unanswered !== undefined) return unanswered;
      const { by, choice, revision, run_id } = given;
      const failed = commit(run_id, [{ _tag: "QuestionAnswered", revision, answer: choice, by }]);
      return failed ?? records.get(run_id) ?? runError("unknown_run", run_id);
    };

    return RunRecorder.of({
      durable: false,
      write: withCommit(
        (runId, entries) => Effect.suspend(() => orFail(commit(runId, entries))),
        "at_once",
        (runId, entries, onDone) => onDone(commit(runId, entries) ?? "recorded"),
      ),
      run: (runId) => Effect.sync(() => records.get(runId)),
      runs: (query) => Effect.sync(() => list(records, query)),
      incidents: (runId) => Effect.sync(() => records.get(runId)?.incidents ?? []),
      claim: (runId) => Effect.suspend(() => orFail(claim(runId))),
      release: (runId) => Effect.sync(() => void driven.delete(runId)),
      orphans: (limit = listLimitDefault) =>
        Effect.sync(() =>
          [...records.values()].filter((it) => it.state !== "ended" && isAbandoned(it, driven)).slice(0, limit),
        ),
      answer: (given) => Effect.suspend(() => orFail(answer(given))),
      digest: makeDigester(key),
      prune: (query) => Effect.sync(() => prune(records, query)),
    });
  });

/** True if no process owns the run and it waits for no answer, because its owner released it or its caller left. */
const isAbandoned = ({ parked, run_id }: RunRecord.RunRecord, driven: ReadonlySet<string>): boolean =>
  (parked === undefined || parked === "interrupted") && !driven.has(run_id);

type Refusal = RecorderError | AnswerRefused;

const orFail = <A>(value: A): Effect.Effect<Exclude<A, Refusal>, Extract<A, Refusal>> =>
  // `isRefusal` distinguishes the two members of the union, but the compiler cannot narrow a generic type by it.
  isRefusal(value) ? Effect.fail(value as Extract<A, Refusal>) : Effect.succeed(value as Exclude<A, Refusal>);

const isRefusal = (value: unknown): boolean => value instanceof RecorderError || value instanceof AnswerRefused;
const forgetOldestEnded = (records: Map<string, RunRecord.RunRecord>): boolean => {
  for (const [id, record] of records) {
    if (record.state === "ended") return records.delete(id);
  }
  return false;
};

const list = (records: Map<string, RunRecord.RunRecord>, query: RunQuery = {}) => {
  const all = [...records.values()].reverse();
  const from = query.before === undefined ? 0 : all.findIndex((record) => record.run_id === query.before) + 1;
  return all
    .slice(from)
    .filter((record) => isListed(record, query))
    .slice(0, query.limit ?? listLimitDefault);
};

const prune = (records: Map<string, RunRecord.RunRecord>, { endedBefore, keep }: PruneQuery): number => {
  const endOf = ({ end }: RunRecord.RunRecord) => end?.at ?? 0;
  const ended = [...records.values()].filter((record) => record.state === "ended").reverse();
  ended.sort((a, b) => endOf(b) - endOf(a));
  const victims = ended.filter(
    (record, index) =>
      (keep !== undefined && index >= keep) || (endedBefore !== undefined && endOf(record) < endedBefore),
  );
  for (const { run_id } of victims) records.delete(run_id);
  return victims.length;
};
