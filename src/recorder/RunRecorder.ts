/**
 * Remembers runs: the facts of each attempt, its incidents with their decisions, questions, answers and the end.
 *
 * Durable layers share the service. A recorder never decides: it commits its entries, or says why it does not.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { RunIncident } from "../domain/RunIncident.ts";
import { digester, newKey } from "./Digest.ts";
import { waitedUntil } from "./Orphan.ts";
import { type Answer, AnswerRefused, refusal } from "./Question.ts";
import { RecorderError, refused } from "./RecorderError.ts";
import { isListed, type RunQuery } from "./RunFilter.ts";
import * as RunRecord from "./RunRecord.ts";
import type { SharedCancels } from "./shared/SharedCancels.ts";
import type { SharedFacts, SharedPacing } from "./shared/SharedFacts.ts";

export { RecorderError } from "./RecorderError.ts";
export type { RunQuery } from "./RunFilter.ts";

/** Which ended runs to forget; a run that has not ended is never forgotten. */
export interface PruneQuery {
  /** Runs that ended before this wall clock time, in milliseconds since the epoch. */
  readonly endedBefore?: number;
  /** Keep at most this many ended runs, those that ended last. */
  readonly keep?: number;
}

/** Most runs that the memory layer keeps by default: a few KiB each, and more than one process streams at once. */
export const memoryRunsMax = 10_000;

/**
 * Longest that a caller waits for one write, read, digest or claim of a recorder, in milliseconds, unless the recorder names
 * another time.
 */
export const recorderWaitMs = 5_000;

/** Longest that a caller waits for a list of runs, in milliseconds: a store may have to read many. */
export const listWaitMs = 30_000;

/** Runs listed when a query names no limit. */
export const listLimitDefault = 100;

/** The store of runs. */
export class RunRecorder extends Context.Service<
  RunRecorder,
  {
    /** Whether runs outlive the process: a run that its caller left unsigned is then parked for `recover`, not ended. */
    readonly durable: boolean;
    /**
     * Longest that one write, read, digest or claim may take, in milliseconds; default 5,000. A call that takes longer is
     * given up, and counts as one that the store did not take.
     */
    readonly waitMs?: number;
    /** The same for `claim` and `orphans`, where they wait for silent drivers. */
    readonly claimWaitMs?: number;
    /**
     * Commits entries of one run together; returns when they are committed. A write whose outcome its caller does not know
     * comes again: entries that are on record already change nothing (`RunRecord.apply` sees to that). A run that goes on
     * (`RunResumed`, `AttemptStarted`) was begun or claimed first. One that was given back meanwhile is refused as `fenced`:
     * a write whose caller has left may come late.
     *
     * @param runId the run that the entries belong to
     * @param entries in the order in which they happened
     */
    write(runId: string, entries: ReadonlyArray<RunRecord.Entry>): Effect.Effect<void, RecorderError>;
    /** Reads one run; undefined when it is not known (any more). */
    run(runId: string): Effect.Effect<RunRecord.RunRecord | undefined, RecorderError>;
    /** Lists runs, newest first. */
    runs(query?: RunRecorder.RunQuery): Effect.Effect<ReadonlyArray<RunRecord.RunRecord>, RecorderError>;
    /** Reads the incidents of a run, oldest first; empty when the run is not known. */
    incidents(runId: string): Effect.Effect<ReadonlyArray<RunIncident>, RecorderError>;
    /**
     * Takes over a run that no process drives: it is parked, or the process that drove it is gone. From then on only this
     * process writes it. Fails with `unknown_run`, `run_ended` or `owned`. Where the driver is silent, the call waits until the
     * driver has beaten or counts as gone, about as long as a process may be silent. A caller that leaves meanwhile has taken
     * nothing.
     */
    claim(runId: string): Effect.Effect<RunRecord.RunRecord, RecorderError>;
    /**
     * Gives a claimed run back without having driven it. A durable recorder whose store is away keeps that and does it later:
     * otherwise no process could take the run up.
     */
    release(runId: string): Effect.Effect<void, RecorderError>;
    /**
     * Runs that no process drives and no process has decided: their process is gone, or their caller left them
     * (`interrupted`). Oldest first, at most `limit` (default 100).
     *
     * @param options.waits whether silent processes are waited for, as `claim` does (default). `false` is for looking: it
     *   gives their runs too, at once, and takes nothing from them. `all` is for one look after a crash: a process that may
     *   have died just now is waited for too, until it has beaten once more or its lease is over
     */
    orphans(
      limit?: number,
      options?: { readonly waits?: boolean | "all" },
    ): Effect.Effect<ReadonlyArray<RunRecord.RunRecord>, RecorderError>;
    /**
     * Answers the newest question of a run, whichever process drives it: once (compare and set), and only while its facts
     * have not grown since. Returns the record with the answer. The process that drives the run acts on it.
     */
    answer(answer: RunRecorder.Answer): Effect.Effect<RunRecord.RunRecord, AnswerRefused | RecorderError>;
    /**
     * A digest of content that is never stored: HMAC-SHA-256 under a key of this store, as hex.
     *
     * @param content any text
     */
    digest(content: string): Effect.Effect<string, RecorderError>;
    /**
     * Writes something that changes no run, and says whether the store took it. Left out where a store has nothing that could
     * be away.
     */
    readonly probe?: Effect.Effect<void, RecorderError>;
    /** Forgets ended runs; returns how many. */
    prune(query: RunRecorder.PruneQuery): Effect.Effect<number, RecorderError>;
    /**
     * Tells of each run that this process drove and that another one has taken over, as soon as this process knows: before
     * the next write of the run, which is refused. Without a listener the run learns of that at its next write.
     *
     * @param listener gives whether it has driven the run, which it stops then. It must not throw
     * @returns ends it
     */
    onLost?(listener: (runId: string) => boolean): () => void;
    /**
     * Takes note that another process has ended, as whoever started it knows: its runs may be taken over at once. Left out where
     * no other process shares the store.
     *
     * @param process the name that its recorder was given. It must have ended: one that lives loses its runs
     */
    processEnded?(process: string): Effect.Effect<void, RecorderError>;
    /**
     * The process is about to end: a store that does not answer is waited for some seconds from now on, and no longer. Left out
     * where nothing waits longer.
     */
    readonly hurry?: Effect.Effect<void>;
    /** What the processes of the store know together beside its runs. Left out where each knows its own. */
    readonly shared?: SharedFacts;
    /** What bounds the retries of all processes of the store together. Left out where no other process uses it. */
    readonly pacing?: SharedPacing;
    /** How processes of the store ask each other to cancel a run. Left out where no other process uses the store. */
    readonly cancels?: SharedCancels;
  }
>()("effect-stream-recovery/RunRecorder") {
  /**
   * Keeps runs in this process's memory.
   *
   * @param options.runsMax most runs kept (default 10,000). When it is full the oldest ended run goes; when every run is
   *   still live a new one is refused with reason `full`, because forgetting a live run would lose it.
   */
  static readonly layerMemory = (options?: { readonly runsMax?: number }) =>
    Layer.effect(RunRecorder, makeMemory(options?.runsMax ?? memoryRunsMax));
}

/** Its types stand in the namespace of the same name. */
export declare namespace RunRecorder {
  export type { Answer, PruneQuery, RunQuery };
}

/** Commits the entries of one run, all of them or none; gives why it does not. */
export type WriteAtOnce = (runId: string, entries: ReadonlyArray<RunRecord.Entry>) => RecorderError | undefined;

/**
 * Hears of the end of a write.
 *
 * @param isOnRecord whether its entries are
 * @param why they are not, as `write` would have failed. Left out, nothing has changed and `write` finds out
 */
export type Told = (isOnRecord: boolean, why?: RecorderError) => void;

/**
 * Commits the entries of one run, all of them or none, together with those of other runs: in a step of its own that comes soon.
 *
 * @param told called once, and never in the step of the call
 * @returns false where it does not take them: then nothing has changed, and nobody is told
 */
export type WriteTogether = (runId: string, entries: ReadonlyArray<RunRecord.Entry>, told: Told) => boolean;

// Kept beside the service: one which is wrapped or was copied is taken for any other store.
const atOnce = new WeakMap<object, WriteAtOnce>();
const together = new WeakMap<object, { readonly write: WriteTogether; readonly waits: boolean }>();

/** Says that this very recorder commits so. Its `write` must do the same. */
export const commitsAtOnce = <Recorder extends object>(recorder: Recorder, write: WriteAtOnce): Recorder => {
  atOnce.set(recorder, write);
  return recorder;
};

/** How a recorder commits at once; undefined where it may take time. */
export const writeAtOnceOf = (recorder: object): WriteAtOnce | undefined => atOnce.get(recorder);

/**
 * Says that this very recorder commits so. Its `write` must do the same.
 *
 * @param waits it may wait, for a server as an example. What its callers are told is bounded then; otherwise it is told in a few
 *   milliseconds, whatever happens
 */
export const commitsTogether = <Recorder extends object>(
  recorder: Recorder,
  write: WriteTogether,
  waits = false,
): Recorder => {
  together.set(recorder, { write, waits });
  return recorder;
};

/** How a recorder commits the writes of several runs together; undefined where it does not. */
export const writeTogetherOf = (recorder: object): WriteTogether | undefined => together.get(recorder)?.write;

/** Whether a recorder that commits the writes of several runs together may wait for that. */
export const waitsTogether = (recorder: object): boolean => together.get(recorder)?.waits === true;

/**
 * A recorder that stands around another one goes on to commit at once, or together, where that one does.
 *
 * @param begun called where a write begins; what it gives hears of its end. Of one that was not taken and of which no reason is
 *   known, nobody hears before `write` finds out
 */
export const staysAtOnce = <Recorder extends object>(
  around: Recorder,
  recorder: object,
  begun: () => Told,
): Recorder => {
  const all = writeTogetherOf(recorder);
  if (all !== undefined) {
    const write: WriteTogether = (runId, entries, told) => {
      const over = begun();
      const isTaken = all(runId, entries, (isOnRecord, why) => {
        over(isOnRecord, why);
        told(isOnRecord, why);
      });
      if (!isTaken) over(false);
      return isTaken;
    };
    commitsTogether(around, write, waitsTogether(recorder));
  }
  const write = writeAtOnceOf(recorder);
  if (write === undefined) return around;
  return commitsAtOnce(around, (runId, entries) => {
    const over = begun();
    const refusal = write(runId, entries);
    over(refusal === undefined);
    return refusal;
  });
};

const makeMemory = (runsMax: number): Effect.Effect<RunRecorder["Service"]> =>
  Effect.map(Effect.all([Clock.Clock, Effect.sync(newKey)]), ([clock, key]) => {
    const records = new Map<string, RunRecord.RunRecord>();
    /** Runs that this process drives. */
    const driven = new Set<string>();

    const commit = (runId: string, entries: ReadonlyArray<RunRecord.Entry>): RecorderError | undefined => {
      const before = records.get(runId);
      const isGivenBack = before !== undefined && !driven.has(runId);
      const record = RunRecord.applyAll(before, entries, isGivenBack);
      if (typeof record === "string") return refused(record, runId);
      if (record === undefined) return undefined;
      if (before === undefined && records.size >= runsMax && !forgetOldestEnded(records)) return refused("full", runId);
      records.set(runId, record);
      if (before === undefined) driven.add(runId);
      if (record.state === "ended" || entries.some(({ _tag }) => _tag === "RunParked")) driven.delete(runId);
      return undefined;
    };

    const claim = (runId: string): RunRecord.RunRecord | RecorderError => {
      const record = records.get(runId);
      if (record === undefined) return refused("unknown_run", runId);
      if (record.state === "ended") return refused("run_ended", runId);
      if (driven.has(runId)) return refused("owned", runId);
      driven.add(runId);
      const known = waitedUntil(record, undefined);
      records.set(runId, known);
      return known;
    };

    const answer = (given: Answer) => {
      const unanswered = refusal(records.get(given.run_id), given, clock.currentTimeMillisUnsafe());
      if (unanswered !== undefined) return unanswered;
      const { by, choice, revision, run_id } = given;
      const failed = commit(run_id, [{ _tag: "QuestionAnswered", revision, answer: choice, by }]);
      return failed ?? records.get(run_id) ?? refused("unknown_run", run_id);
    };

    const recorder = RunRecorder.of({
      durable: false,
      write: (runId, entries) => Effect.suspend(() => orFail(commit(runId, entries))),
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
      digest: digester(key),
      prune: (query) => Effect.sync(() => prune(records, query)),
    });
    return commitsAtOnce(recorder, commit);
  });

/** In memory a run without a driver that is not parked was given back by its driver. */
const isAbandoned = ({ parked, run_id }: RunRecord.RunRecord, driven: ReadonlySet<string>): boolean =>
  (parked === undefined || parked === "interrupted") && !driven.has(run_id);

type Refusal = RecorderError | AnswerRefused;

const orFail = <A>(value: A): Effect.Effect<Exclude<A, Refusal>, Extract<A, Refusal>> =>
  // The two halves of the union that `isRefusal` tells apart; the compiler does not narrow a generic by it.
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
