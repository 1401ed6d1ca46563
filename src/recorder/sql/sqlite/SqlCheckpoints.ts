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

/** How the file was opened. */
export interface CheckpointedFile {
  readonly file: string;
  readonly synchronous: "normal" | "full";
}

/** Checkpoints of one connection. Its thread begins with the first one: a command that writes a few rows has none. */
export class SqlCheckpoints {
  readonly #data: { readonly url: string; readonly synchronous: string };
  /** Sets at how many pages of journal the connection itself copies them. */
  readonly #copiesAt: (pages: number) => void;
  #pages: number | undefined;
  #rows = 0;
  #running: Worker | undefined;
  /** The thread is at work. */
  #isAsked = false;
  /** There is no thread to be had, or it has ended: the connection does it all. */
  #isGivenUp = false;

  constructor({ file, synchronous }: CheckpointedFile, copiesAt: (pages: number) => void) {
    // The thread begins later, when the folder of the process may be another one. Only a file that is there is opened: one that was moved
    // away must not be made anew.
    this.#data = { url: `${pathToFileURL(file).href}?mode=rw`, synchronous };
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
      this.#running.postMessage("checkpoint");
    } catch {
      this.#giveUp();
    }
  }

  /**
   * Ends the thread. The connection has closed before, so that the thread's is the last one and cleans up behind both, and copies what
   * is left of the journal beside this process's other work.
   *
   * @returns done once the thread holds the file no more; undefined where there is none
   */
  end(): Promise<void> | undefined {
    const running = this.#running;
    this.#running = undefined;
    this.#isGivenUp = true;
    if (running === undefined) return undefined;
    return new Promise((resolve) => {
      running.once("exit", () => resolve());
      running.postMessage("close");
    });
  }

  #begun(): Worker {
    const threads = process.getBuiltinModule("node:worker_threads");
    const worker = new threads.Worker(program, {
      eval: true,
      name: "checkpoints",
      workerData: this.#data,
      execArgv: ["--no-warnings"],
      // What NODE_OPTIONS has a process load first is not for this thread: it would run a second time, in little memory.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    });
    worker.unref();
    worker.on("message", (isDone: boolean) => {
      this.#isAsked = false;
      // On a full disk the connection does what it can, and the thread is asked again.
      if (this.#running === worker) this.#copy(isDone ? journalPagesMax : journalPagesUsual);
    });
    // Its end follows; without a listener the error would be the process's own.
    worker.on("error", () => undefined);
    worker.once("exit", () => this.#giveUp());
    return worker;
  }

  #giveUp(): void {
    if (this.#isGivenUp) return;
    this.#isGivenUp = true;
    this.#running = undefined;
    this.#copy(journalPagesUsual);
  }

  #copy(pages: number): void {
    if (pages === this.#pages) return;
    this.#pages = pages;
    this.#copiesAt(pages);
  }
}

/** What the thread runs. It is a text, because a bundle has no file for it. */
const program = `
const { parentPort, workerData } = process.getBuiltinModule("node:worker_threads");
const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
const database = new DatabaseSync(new URL(workerData.url), { timeout: 0 });
database.exec("PRAGMA synchronous = " + workerData.synchronous);
const checkpoint = database.prepare("PRAGMA wal_checkpoint(PASSIVE)");
parentPort.on("message", (asked) => {
  if (asked === "close") {
    database.close();
    parentPort.close();
    return;
  }
  let isDone = false;
  try {
    checkpoint.get();
    isDone = true;
  } catch {}
  parentPort.postMessage(isDone);
});
`;
