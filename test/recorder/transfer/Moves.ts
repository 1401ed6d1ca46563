/**
 * Moves runs between recorders like the command line, and generates runs to move.
 */
import { Effect, Stream } from "effect";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import * as RunRecord from "../../../src/recorder/RunRecord.ts";
import type { RunFileError } from "../../../src/recorder/transfer/RunFile.ts";
import type { Read, ReaderOptions, RefusedRun } from "../../../src/recorder/transfer/RunFileReader.ts";
import { take } from "../../../src/recorder/transfer/RunFileReader.ts";
import { fileOf, type WriterOptions } from "../../../src/recorder/transfer/RunFileWriter.ts";
import { type RunTransfer, transferOf } from "../../../src/recorder/transfer/RunTransfer.ts";
import { seeded } from "../../Seeded.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "../suite/Bench.ts";

/** The transfer of a recorder's store. */
export const transfer = (recorder: Recorder): RunTransfer => {
  const found = transferOf(recorder);
  if (found === undefined) throw new Error("the store gives no whole runs");
  return found;
};

/** The lines of a store's export. */
export const lines = (
  recorder: Recorder,
  options: Partial<WriterOptions> = {},
): Effect.Effect<ReadonlyArray<string>, RecorderError> =>
  Stream.runCollect(fileOf(transfer(recorder), { at: 7, takesDriven: true, ...options }));

/** The lines of runs only. */
export const runsIn = (file: ReadonlyArray<string>): ReadonlyArray<string> => file.slice(1, -1);

/** The result of an import. */
export interface Put {
  readonly read: Read | undefined;
  readonly error: RecorderError | RunFileError | undefined;
  readonly refused: ReadonlyArray<RefusedRun>;
  /** The position up to which it is committed. */
  readonly reached: Read;
}

/** Imports a file into a store. */
export const put = (
  recorder: Recorder,
  file: ReadonlyArray<string>,
  options: Omit<ReaderOptions, "told"> = {},
): Effect.Effect<Put> =>
  Effect.gen(function* () {
    const refused: Array<RefusedRun> = [];
    let reached: Read = { added: 0, same: 0, refused: 0, leftOut: 0 };
    const told: ReaderOptions["onBatch"] = (read, some) => {
      reached = read;
      refused.push(...some);
    };
    const texts = file.map((text, index) => ({ number: index + 1, text: text.trim(), tooLong: false }));
    const result = yield* Effect.result(
      take(transfer(recorder), Stream.fromIterable(texts), { ...options, onBatch: told }),
    );
    return result._tag === "Success"
      ? { read: result.success, error: undefined, refused, reached }
      : { read: undefined, error: result.failure, refused, reached };
  });

/** A random history of a run from a seed; entries that do not fit are omitted. */
export const madeUp = (seed: number, runId: string): ReadonlyArray<RunRecord.Entry> => {
  const random = seeded(seed);
  const upTo = (count: number) => Math.floor(random() * count);
  const model = ["m", "m\0n", "half \ud83d", "ünï 漢", '"}\n{"', ""][upTo(6)] ?? "";
  const begun: RunRecord.Entry = {
    _tag: "RunStarted",
    run_id: runId,
    provider: { id: "p", model },
    at: 1_000 + upTo(1_000_000) / 3,
    started_by: `s${seed}`,
    ...(random() < 0.5 ? { transcript: `digest ${seed}` } : {}),
    ...(random() < 0.3 ? { retry_of: `before-${seed}`, group: "night" } : {}),
  };
  const entries: Array<RunRecord.Entry> = [begun];
  let record = E.folded(entries);
  for (let n = 0; n < 4 + upTo(24); n += 1) {
    const revision = 1 + upTo(3);
    const next = [
      E.attempt(1 + upTo(4), upTo(2) === 0 ? "replay" : "continue"),
      E.raised(1 + upTo(2), { shown: "text", text_through: 3, tools: [E.call("handed_over")] }),
      E.noted(upTo(900) + 0.5, "failure", "transport"),
      E.joined(1 + upTo(3), upTo(500)),
      E.opened(runId, 1 + upTo(3)),
      E.marked(runId, 1 + upTo(3), "acted_on", "retry"),
      E.asked(runId, revision),
      E.answered(revision, "retry"),
      E.parked((["question", "interrupted", "recovered", "answered"] as const)[upTo(4)] ?? "question"),
      ...(n > 3 ? [E.ended({ at: 9_000 + upTo(100), attempts: 1 + upTo(3) })] : []),
    ][upTo(n > 3 ? 10 : 9)];
    if (next === undefined) continue;
    const folded = RunRecord.applyAll(record, [next]);
    if (typeof folded === "string" || folded === undefined) continue;
    record = folded;
    entries.push(next);
  }
  return entries;
};

/** Stores generated runs, one write per run, and returns their ids. */
export const filled = Effect.fnUntraced(function* (recorder: Recorder, seed: number, count: number) {
  const ids = Array.from({ length: count }, (_, n) => `run ${seed}/${n} 漢"`);
  for (const [n, id] of ids.entries()) yield* recorder.write(id, madeUp(seed * 1_000 + n, id));
  return ids;
});

/**
 * The law of a move: runs that were moved from one store to another are exported from it again, run for run and in order, as the other
 * store reads them. A second import changes nothing.
 */
export const moved = Effect.fnUntraced(function* (from: Recorder, to: Recorder, page: number) {
  const file = yield* lines(from, { pageRuns: page });
  const { read, refused } = yield* put(to, file, { batchRuns: page + 1 });
  const count = runsIn(file).length;
  const again = yield* lines(to);
  const second = yield* put(to, again);
  return { count, file: file.slice(1), again: again.slice(1), read, refused, second: second.read };
});
