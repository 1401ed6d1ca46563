/**
 * Keeps on disk the entries that an exiting process could not write, until another process over the same store starts.
 *
 * Each process writes its own file, which only its owner may read. The next process to start claims the file by renaming it, queues its
 * entries, and deletes the file once all entries are on record.
 */
import { createHash, randomUUID } from "node:crypto";
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schema from "effect/Schema";
import { Label } from "../../domain/Limits.ts";
import { Entry } from "../RunRecord.ts";
import * as SqlFile from "../sql/sqlite/SqlFile.ts";
import { type Queue, queueBytesMax, type Spill, type Unwritten } from "../WriteQueue.ts";
import { isServer } from "./RunStore.ts";

/** Maximum size of a spilled file, in bytes. Runs beyond this size are lost, and logged. */
export const spillBytesMax = queueBytesMax;

/** Maximum time that a process waits for claimed entries to be on record, in milliseconds. After that it keeps the file. */
export const claimedWaitMs = 600_000;

const Line = Schema.fromJsonString(Schema.Struct({ runId: Label, entries: Schema.Array(Entry) }));
const lineOf = Schema.decodeUnknownOption(Line);

/** Folder and name of a store's spilled files. */
export interface SpillPlace {
  readonly folder: string;
  /** Prefix of the file names, so that another store's files stay untouched. */
  readonly prefix: string;
}

/**
 * Returns the place of a store's spilled files.
 *
 * @param store file, or address of a server; the user part of an address does not affect the name
 * @param folder folder that the operator chose; by default that of the file, or the user's state folder
 */
export const placeOf = (store: string, folder?: string): SpillPlace => {
  const isOwnFile = !isServer(store) && SqlFile.isFile(store);
  const name = isServer(store) ? store.replace(/\/\/([^/@]*)@/, "//") : resolve(store);
  const digest = createHash("sha256").update(name).digest("hex").slice(0, 16);
  return {
    folder: folder ?? dirname(isOwnFile ? resolve(store) : SqlFile.ownFile()),
    prefix: `unwritten-${digest}-`,
  };
};

/** Writes the unwritten entries to a file. Returns the number of entries that are lost because they could not be kept. */
export const spillTo =
  ({ folder, prefix }: SpillPlace): Spill =>
  (unwritten) =>
    Effect.gen(function* () {
      const file = join(folder, `${prefix}${randomUUID()}.jsonl`);
      const { kept, problem } = write(folder, file, unwritten);
      if (problem !== undefined) yield* Effect.logError(`could not keep entries of runs on disk: ${problem}`);
      if (kept > 0)
        yield* Effect.logWarning(
          "the store did not accept all entries; the rest is on disk, and the next start writes it",
          {
            runs: kept,
            file,
          },
        );
      return unwritten.slice(kept).reduce((sum, { entries }) => sum + entries.length, 0);
    });

/** Writes whole runs, oldest first, up to the size limit. */
const write = (folder: string, file: string, unwritten: ReadonlyArray<Unwritten>) => {
  const part = `${file}.part`;
  let [kept, bytes] = [0, 0];
  let problem: string | undefined;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const fd = openSync(part, "wx", 0o600);
    try {
      for (const run of unwritten) {
        const line = Buffer.from(`${JSON.stringify(run)}\n`);
        if (bytes + line.byteLength > spillBytesMax) break;
        // A disk that fills up may accept only a part of a line.
        for (let at = 0; at < line.byteLength; ) at += writeSync(fd, line, at);
        bytes += line.byteLength;
        kept += 1;
      }
    } catch (error) {
      problem = String(error);
      ftruncateSync(fd, bytes);
    } finally {
      closeSync(fd);
    }
    if (kept > 0) renameSync(part, file);
    else rmSync(part, { force: true });
  } catch (error) {
    return { kept: 0, problem: String(error) };
  }
  return { kept, problem };
};

/**
 * Queues entries that earlier processes spilled, and deletes each file once all of its entries are on record. An unreadable file stays, and
 * the log names it.
 */
export const claimInto = (queue: Queue, place: SpillPlace): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.forEach(listSpilled(place, now), (file) => claimFile(queue, file), { discard: true }),
  );

const listSpilled = ({ folder, prefix }: SpillPlace, now: number): ReadonlyArray<string> => {
  try {
    // A process that died left its claimed file as `.claimed`. The entries of that file may be queued twice; see `RunRecord.apply`.
    return readdirSync(folder)
      .filter((name) => name.startsWith(prefix) && (name.endsWith(".jsonl") || isAbandoned(join(folder, name), now)))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
};

/** True for a claimed file whose process did not finish it in time. */
const isAbandoned = (file: string, now: number): boolean =>
  file.endsWith(".claimed") && now - statSync(file).mtimeMs > 2 * claimedWaitMs;

const claimFile = (queue: Queue, file: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const mine = file.endsWith(".claimed") ? file : `${file}.claimed`;
    try {
      renameSync(file, mine);
    } catch {
      return Effect.void;
    }
    const read = readRuns(mine);
    if (typeof read === "string")
      return Effect.logError(`cannot read the entries of runs that an earlier process left on disk: ${read}`, {
        file: mine,
      });
    for (const { entries, runId } of read) queue.add(runId, entries);
    const all = Effect.forEach(read, ({ runId }) => queue.awaitRecorded(runId, claimedWaitMs), {
      concurrency: "unbounded",
    });
    return Effect.flatMap(all, (done) =>
      done.every((it) => it)
        ? Effect.andThen(
            Effect.sync(() => rmSync(mine, { force: true })),
            Effect.logInfo("recorded the entries of runs that an earlier process left on disk", { runs: read.length }),
          )
        : Effect.logWarning(
            "could not record all entries of runs that an earlier process left on disk; the file is kept",
            {
              file: mine,
            },
          ),
    );
  });

const readRuns = (file: string): ReadonlyArray<Unwritten> | string => {
  try {
    if (statSync(file).size > 2 * spillBytesMax) return "the file is too large";
    const lines = readFileSync(file, "utf8").split("\n");
    const runs = lines.flatMap((line) => (line === "" ? [] : [lineOf(line)]));
    const known = runs.flatMap((it) => (Option.isSome(it) ? [it.value] : []));
    return known.length === runs.length
      ? known
      : `${runs.length - known.length} of the file's ${runs.length} lines are damaged`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};
