/**
 * Copies committed pages from a file's journal (SQLite's write-ahead log) into the file itself, in a separate thread.
 *
 * By default SQLite copies these pages during the commit that fills the journal, on the committing thread. That takes some milliseconds and
 * waits for the disk twice, which takes long on a busy disk, and meanwhile every stream of the process waits. A connection in another
 * thread does the same work concurrently. Durability does not change, because a commit returns once it is in the journal.
 *
 * Under constant load, a checkpoint in a thread never reaches the end of the journal, and the journal restarts only from its end. So the
 * committing connection still copies the remaining pages once the journal reaches `journalPagesMax`; by then most pages are in the file.
 */
import { pathToFileURL } from "node:url";
import type { Worker } from "node:worker_threads";

/** Rows written between two checkpoints: about 4 MB of journal, like SQLite's default of 1,000 pages. */
export const rowsBetween = 256;

/** Journal pages at which the committing connection copies them itself: 32 MB. Without a thread, SQLite's default applies. */
export const journalPagesMax = 8_192;

const journalPagesUsual = 1_000;

/** Options with which the file was opened. */
export interface CheckpointedFile {
  readonly file: string;
  readonly synchronous: "normal" | "full";
}

/**
 * Checkpoints of one connection. The thread starts with the first checkpoint, so a command that writes only a few rows starts no thread.
 */
export class SqlCheckpoints {
  readonly #data: { readonly url: string; readonly synchronous: string };
  /** Sets the number of journal pages at which the connection itself copies them. */
  readonly #setCopyThreshold: (pages: number) => void;
  #pages: number | undefined;
  #rows = 0;
  #running: Worker | undefined;
  /** True while the thread is working. */
  #isAsked = false;
  /** True if no thread is available or the thread has ended. The connection then does all the work. */
  #isGivenUp = false;

  constructor({ file, synchronous }: CheckpointedFile, setCopyThreshold: (pages: number) => void) {
    // Absolute, because the thread starts later, possibly in another working directory. `mode=rw` opens only an existing file, so a file
    // that was moved away is not created again.
    this.#data = { url: `${pathToFileURL(file).href}?mode=rw`, synchronous };
    this.#setCopyThreshold = setCopyThreshold;
  }

  /** Counts committed rows, and starts a checkpoint if one is due. */
  countRows(rows: number): void {
    this.#rows += rows;
    if (this.#rows < rowsBetween || this.#isAsked || this.#isGivenUp) return;
    this.#rows = 0;
    try {
      this.#running ??= this.#startWorker();
      this.#isAsked = true;
      this.#running.postMessage("checkpoint");
    } catch {
      this.#giveUp();
    }
  }

  /**
   * Ends the thread. Call it after the connection has closed, so that the thread's connection is the last one. The thread then copies the
   * rest of the journal and cleans up while this process continues.
   *
   * @returns resolves once the thread has released the file; undefined without a thread
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

  #startWorker(): Worker {
    const threads = process.getBuiltinModule("node:worker_threads");
    const worker = new threads.Worker(program, {
      eval: true,
      name: "checkpoints",
      workerData: this.#data,
      execArgv: ["--no-warnings"],
      // The thread must not load the preloads of NODE_OPTIONS again, because its memory is limited.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    });
    worker.unref();
    worker.on("message", (isDone: boolean) => {
      this.#isAsked = false;
      // If the disk is full, the connection copies as much as it can, and the thread is used again later.
      if (this.#running === worker) this.#copy(isDone ? journalPagesMax : journalPagesUsual);
    });
    // The thread then exits. Without a listener, the error would be thrown in the process.
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
    this.#setCopyThreshold(pages);
  }
}

/** Program of the thread. It is a string, because a bundle cannot contain a separate file for it. */
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
