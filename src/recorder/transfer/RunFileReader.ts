/**
 * Imports the runs of a file into a store in atomic batches. Importing a file again changes nothing.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Stream from "effect/Stream";
import type { RecorderError } from "../RecorderError.ts";
import type { RunRecord } from "../RunRecord.ts";
import { type FileHead, fileError, fileLineBytesMax, parseHead, parseLine, type RunFileError } from "./RunFile.ts";
import type { RunTransfer, Taken } from "./RunTransfer.ts";

/** Default maximum number of runs in a batch. */
const batchRuns = 100;

/** Maximum size of a batch, in characters. It keeps the transaction of the batch short. */
const batchCharacters = 4_194_304;

/** A line of a file as it was read. */
export interface TextLine {
  /** Line number, from 1. */
  readonly number: number;
  readonly text: string;
  readonly tooLong: boolean;
}

/** A run that the store did not accept. */
export interface RefusedRun {
  readonly run_id: string;
  readonly reason: Exclude<Taken, "added" | "same">;
}

/** Results for the runs of a file that are committed so far. */
export interface Read {
  readonly added: number;
  /** Runs that were already in the store, unchanged. */
  readonly same: number;
  readonly refused: number;
  /** Number of runs that the file reports as left out. */
  readonly leftOut: number;
}

/** Options of `take`. */
export interface ReaderOptions {
  /** True to report the results without importing any run. */
  readonly dryRun?: boolean;
  /** Maximum number of runs in a batch; default 100. */
  readonly batchRuns?: number;
  /** Called with the results after each batch is committed. */
  readonly onBatch?: (read: Read, refused: ReadonlyArray<RefusedRun>) => void;
}

/**
 * Imports the runs of a file into a store.
 *
 * Fails at the first invalid line, and for a file without its last line. Earlier batches remain imported and were reported to `onBatch`.
 *
 * @param lines the lines of the file, including empty ones
 */
export const take = <E>(
  transfer: RunTransfer,
  lines: Stream.Stream<TextLine, E>,
  options: ReaderOptions = {},
): Effect.Effect<Read, E | RecorderError | RunFileError> =>
  Effect.suspend(() => {
    const reading = new Reading(transfer, options);
    return Effect.andThen(
      Stream.runForEach(lines, (line) => reading.line(line)),
      Effect.suspend(() => reading.end()),
    );
  });

class Reading {
  readonly #transfer: RunTransfer;
  readonly #options: ReaderOptions;
  #head: FileHead | undefined;
  #isOver = false;
  #batch: Array<RunRecord> = [];
  #characters = 0;
  #runs = 0;
  #lastLine = 0;
  #read: Read = { added: 0, same: 0, refused: 0, leftOut: 0 };

  constructor(transfer: RunTransfer, options: ReaderOptions) {
    this.#transfer = transfer;
    this.#options = options;
  }

  line({ number, text, tooLong }: TextLine): Effect.Effect<void, RecorderError | RunFileError> {
    this.#lastLine = number;
    if (tooLong) return Effect.fail(fileError("too_long", number, "", `longer than ${fileLineBytesMax} bytes`));
    if (this.#head === undefined) {
      const head = parseHead(text);
      if (Result.isFailure(head)) return Effect.fail(head.failure);
      this.#head = head.success;
      return Effect.void;
    }
    if (text === "") return Effect.void;
    if (this.#isOver) return Effect.fail(fileError("bad_line", number, "", "expected nothing after the last line"));
    const parsed = parseLine(number, text);
    if (Result.isFailure(parsed)) return Effect.fail(parsed.failure);
    if (parsed.success._tag === "run") return this.#run(this.#head.digest_key, parsed.success.run, text.length);
    const { left_out, runs } = parsed.success.end;
    if (runs !== this.#runs) {
      return Effect.fail(
        fileError(
          "cut",
          number,
          "end.runs",
          `expected ${this.#runs}, the number of runs before it, got ${runs}; export the file again`,
        ),
      );
    }
    this.#isOver = true;
    this.#read = { ...this.#read, leftOut: left_out };
    return this.#commit(this.#head.digest_key);
  }

  end(): Effect.Effect<Read, RunFileError> {
    if (this.#head === undefined) return Effect.fail(fileError("not_runs", 1, "", "the file is empty"));
    if (this.#isOver) return Effect.succeed(this.#read);
    return Effect.fail(
      fileError("cut", this.#lastLine, "", "the file was cut off after this line: its last line is missing"),
    );
  }

  #run(key: string, run: RunRecord, characters: number): Effect.Effect<void, RecorderError> {
    this.#runs += 1;
    this.#batch.push(run);
    this.#characters += characters;
    const isFull = this.#batch.length >= (this.#options.batchRuns ?? batchRuns) || this.#characters >= batchCharacters;
    return isFull ? this.#commit(key) : Effect.void;
  }

  #commit(key: string): Effect.Effect<void, RecorderError> {
    const batch = this.#batch;
    this.#batch = [];
    this.#characters = 0;
    const put = batch.length === 0 ? Effect.succeed([]) : this.#transfer.insertRuns(key, batch, this.#options.dryRun);
    return Effect.map(put, (taken) => {
      const refused = batch.flatMap(({ run_id }, index): ReadonlyArray<RefusedRun> => {
        const reason = taken[index];
        return reason === undefined || reason === "added" || reason === "same" ? [] : [{ run_id, reason }];
      });
      const count = (what: Taken) => taken.filter((it) => it === what).length;
      this.#read = {
        ...this.#read,
        added: this.#read.added + count("added"),
        same: this.#read.same + count("same"),
        refused: this.#read.refused + refused.length,
      };
      this.#options.onBatch?.(this.#read, refused);
    });
  }
}
