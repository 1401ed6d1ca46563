/**
 * Kills an import in the middle, as if the machine had crashed, and repeats it.
 */
import { once } from "node:events";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { endLine, headLine, runLine } from "../../../src/recorder/transfer/RunFile.ts";
import * as E from "../../recorder/Entries.ts";
import * as CommandLine from "../CommandLine.ts";

/** The runs of the file, those read before the kill, and those of them in whole batches. */
export const [runs, read, committed] = [350, 250, 200];

const recordOf = (n: number): RunRecord => {
  const record = E.folded(E.life(`run-${n}`));
  if (record === undefined) throw new Error("a life is a record");
  return record;
};

export const lines: ReadonlyArray<string> = [
  headLine(7, "ab".repeat(32)),
  ...Array.from({ length: runs }, (_, n) => runLine(recordOf(n))),
  endLine({ runs, left_out: 0 }),
];

/** Parses lines, so that they can be compared whatever the order of their keys. */
export const said = (of: ReadonlyArray<string>): ReadonlyArray<unknown> =>
  of
    .join("")
    .trimEnd()
    .split("\n")
    .slice(1, -1)
    .map((line): unknown => JSON.parse(line));

/**
 * Imports, is killed once its whole batches are on record, and imports again.
 *
 * @param onRecord counts the runs on record; it reads a disk or asks a server, so it yields
 * @returns the outcome of the second import
 */
export const killed = async (db: string, onRecord: () => Promise<number>): Promise<CommandLine.Ended> => {
  const args = ["runs", "import", "--db", db];
  const first = CommandLine.start(args);
  first.stdin.on("error", () => undefined);
  first.stdin.write(lines.slice(0, 1 + read).join(""));
  while ((await onRecord()) < committed);
  first.kill("SIGKILL");
  await once(first, "close");
  return CommandLine.run(args, {}, lines.join(""));
};
