/**
 * Kills an import in its middle, as a machine that goes down does, and does it again.
 */
import { once } from "node:events";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { endLine, headLine, runLine } from "../../../src/recorder/transfer/RunFile.ts";
import * as E from "../../recorder/Entries.ts";
import * as CommandLine from "../CommandLine.ts";

/** Runs of the file, those of it that are read before the kill, and those of these that make whole batches. */
export const [runs, read, committed] = [350, 250, 200];

const recordOf = (n: number): RunRecord => {
  const record = E.folded(E.life(`run-${n}`));
  if (record === undefined) throw new Error("a life is a record");
  return record;
};

/** A file of runs. */
export const lines: ReadonlyArray<string> = [
  headLine(7, "ab".repeat(32)),
  ...Array.from({ length: runs }, (_, n) => runLine(recordOf(n))),
  endLine({ runs, left_out: 0 }),
];

/** What lines say, whatever the order of their members. */
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
 * @param onRecord how many runs are on record; it looks at a disk or asks a server, so that other things happen meanwhile
 * @returns what the second one said
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
