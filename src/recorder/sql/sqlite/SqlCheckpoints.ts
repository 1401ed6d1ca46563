/**
 * Moves what was committed from the journal of a file into the file itself, in a thread of its own.
 *
 * SQLite does that in the commit that fills its journal, in the thread which commits: some milliseconds of copying, and two waits for the
 * disk, which on a busy disk take as long as the disk likes. Every stream of the process waits meanwhile. A connection of another thread
 * does the same beside the commits. What is on record, and when, stays as it is: a commit has reached the journal when it returns.
 *
 * Under an unbroken load a checkpoint in a thread never meets the end of the journal, and only then the journal begins anew. So the
 * connection that commits still does it, for a journal that has grown to `journalPagesMax`: most of it is in the file by then.
 */
import { pathToFileURL } from "node:url";
import type { Worker } from "node:worker_threads";

/** Rows that are written between two checkpoints: some four MB of journal, as with SQLite's own thousand pages. */
export const rowsBetween = 256;

/** Pages of the journal at which the connection that commits copies them itself: 32 MB. Without a thread SQLite's own number stands. */
export const journalPagesMax = 8_192;

/** SQLite's own number of pages. */
const journalPagesUsual = 1_000;

/** Longest that a connection which closes waits for the thread's, in milliseconds: it has a journal of that many pages to copy at most. */
const closeMs = 5_000;

/** How the file was opened. */
export interface CheckpointedFile {
  readonly file: string;
  readonly synchronous: "normal" | "full";
}

/** A thread that is under way, and where it says that it holds the file no more. */
interface Running {
  readonly worker: Worker;
  readonly closed: Int32Array;
}

/** Checkpoints of one connection. Its thread begins with the first one: a command that writes a few rows has none. */
export class SqlCheckpoints {
  readonly #file: CheckpointedFile;
  /** Sets at how many pages of journal the connection itself copies them. */
  readonly #copiesAt: (pages: number) => void;
  #rows = 0;
  #running: Running | undefined;
  /** The thread is at work. */
  #isAsked = false;
  /** There is no thread to be had, or it has failed: the connection does it all. */
  #isGivenUp = false;

  constructor(file: CheckpointedFile, copiesAt: (pages: number) => void) {
    this.#file = file;
    this.#copiesAt = copiesAt;
  }

  /** Rows were committed. */
  committed(rows: number): void {
    this.#rows += rows;
    if (this.#rows < rowsBetween || this.#isAsked || this.#isGivenUp) return;
    this.#rows = 0;
    try {
      this.#running ??= this.#begun();
      this.#isAsked = true;
      this.#running.worker.postMessage("checkpoint");
    } catch {
      this.#giveUp();
    }
  }

  /** Ends the thread. When it returns the thread holds the file no more, so that the connection which closes next cleans up behind both. */
  close(): void {
    const running = this.#running;
    this.#running = undefined;
    this.#isGivenUp = true;
    if (running === undefined) return;
    running.worker.postMessage("close");
    Atomics.wait(running.closed, 0, 0, closeMs);
    void running.worker.terminate();
  }

  #begun(): Running {
    const threads = process.getBuiltinModule("node:worker_threads");
    const closed = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const { file, synchronous } = this.#file;
    // Only a file that is there is opened: one that was moved away must not be made anew.
    const url = `${pathToFileURL(file).href}?mode=rw`;
    const worker = new threads.Worker(program, {
      eval: true,
      execArgv: ["--no-warnings"],
      workerData: { url, synchronous, closed },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    });
    worker.unref();
    worker.on("message", () => {
      this.#isAsked = false;
      if (this.#running?.worker === worker) this.#copiesAt(journalPagesMax);
    });
    worker.on("error", () => this.#giveUp());
    return { worker, closed };
  }

  #giveUp(): void {
    if (this.#isGivenUp) return;
    this.#isGivenUp = true;
    this.#running = undefined;
    this.#copiesAt(journalPagesUsual);
  }
}

/** What the thread runs. It is a text, because a bundle has no file for it. */
const program = `
const { parentPort, workerData } = process.getBuiltinModule("node:worker_threads");
const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
const { closed, synchronous, url } = workerData;
let database;
const done = () => {
  try {
    database?.close();
  } finally {
    Atomics.store(closed, 0, 1);
    Atomics.notify(closed, 0);
  }
};
try {
  database = new DatabaseSync(new URL(url), { timeout: 0 });
  database.exec("PRAGMA synchronous = " + synchronous);
  const checkpoint = database.prepare("PRAGMA wal_checkpoint(PASSIVE)");
  parentPort.on("message", (asked) => {
    try {
      if (asked === "close") done();
      else parentPort.postMessage(checkpoint.get());
    } catch (error) {
      done();
      throw error;
    }
  });
} catch (error) {
  done();
  throw error;
}
`;
