/**
 * `stream-recovery runs import FILE`: imports the runs that `runs export --all` wrote.
 */
import { Console, Effect, FileSystem, Option, Stdio, Stream } from "effect";
import { Argument, Command, Flag } from "effect/cli";
import { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { fileLineBytesMax, RunFileError } from "../../recorder/transfer/RunFile.ts";
import { type Read, type RefusedRun, type TextLine, take } from "../../recorder/transfer/RunFileReader.ts";
import { transferOf } from "../../recorder/transfer/RunTransfer.ts";
import { exitCodesHelp, failing } from "../command/CommandFailed.ts";
import { dbFlag, jsonFlag, withStore } from "../command/Store.ts";
import { LineSplitter } from "../terminal/Lines.ts";
import { startCounter } from "../terminal/Progress.ts";

/** Maximum refused runs that are named. */
const namedMax = 20;

const command = "runs import";
const fail = failing(command);

interface ImportOptions {
  readonly file: Option.Option<string>;
  readonly dryRun: boolean;
  readonly json: boolean;
}

/** Imports the runs of another store. A run that is already in this store stays unchanged. */
export const importCommand = Command.make(
  "import",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("The file that `runs export --all` wrote; if omitted, read from stdin"),
      Argument.optional,
    ),
    db: dbFlag,
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Check the file and count the runs that it would add, but add none"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
  },
  ({ db, ...options }) => withStore(command, db, () => importRuns(options), true),
).pipe(
  Command.withDescription(
    `Import the runs of another store unchanged, a hundred at a time; each hundred is added completely or not at all. A run that already exists stays unchanged, so you may import the same file again. Imported open runs have no owner: recover decides those that were not parked.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Import the runs of another store"),
  Command.withExamples([
    {
      command: "stream-recovery runs import --db postgres://recovery@db.internal/recovery runs.jsonl",
      description: "Move a file of runs into PostgreSQL",
    },
  ]),
);

/** Imports the runs of a file. */
export const importRuns = Effect.fn("cli.runs.import")(function* ({ dryRun, file, json }: ImportOptions) {
  const transfer = transferOf(yield* RunRecorder);
  if (transfer === undefined)
    return yield* fail("refused", "expected a SQLite or PostgreSQL store, which can import runs; this store cannot");
  const counter = startCounter(process.stderr, (count) => `${count} runs`);
  const named: Array<RefusedRun> = [];
  let reached: Read = { added: 0, same: 0, refused: 0, leftOut: 0 };
  const reportBatch = (read: Read, refused: ReadonlyArray<RefusedRun>) => {
    reached = read;
    named.push(...refused.slice(0, namedMax - named.length));
    counter.update(read.added + read.same + read.refused);
  };
  const read = yield* take(transfer, yield* readLines(file), { dryRun, onBatch: reportBatch }).pipe(
    Effect.ensuring(Effect.sync(counter.done)),
    Effect.tapError(() => Effect.andThen(printRefused(named, reached.refused), printAdded(reached, dryRun))),
    Effect.catchIf(
      (error) => !(error instanceof RecorderError),
      (error) => {
        const what = error instanceof RunFileError ? error.message : `cannot be read: ${error.message}`;
        return fail("refused", `${Option.getOrElse(file, () => "stdin")}: ${what}`);
      },
    ),
  );
  yield* printRefused(named, read.refused);
  const { added, leftOut, refused, same } = read;
  if (json) yield* Console.log(JSON.stringify({ dry_run: dryRun, added, same, refused, left_out: leftOut }));
  else yield* Console.log(summaryText(read, dryRun));
  if (refused > 0) return yield* fail("negative", `${runCountText(refused)} not imported`);
});

/** Reports the runs that were added before an import failed, because they may be unwanted. */
const printAdded = ({ added, same }: Read, dryRun: boolean) =>
  Console.error(
    `${command}: ${dryRun ? "nothing was added; the rest of the file was not checked" : `${runCountText(added)} added, ${same} already present; the rest of the file was not imported`}`,
  );

const summaryText = ({ added, leftOut, same }: Read, dryRun: boolean): string =>
  [
    `${runCountText(added)} ${dryRun ? "would be added" : "added"}`,
    ...(same === 0 ? [] : [`${same} already present`]),
    ...(leftOut === 0 ? [] : [`${leftOut} not in the file, because a process owned them`]),
  ].join(", ");

const runCountText = (count: number): string => (count === 1 ? "one run" : `${count} runs`);

const reasons: Readonly<Record<RefusedRun["reason"], string>> = {
  differs: "a different record with this id exists and stays",
  foreign_key:
    "it has not ended, and its transcript was digested with another store's key: import it into an empty store",
  unkept: "the id contains a lone surrogate, which no store can keep, or NUL, which PostgreSQL cannot keep",
};

const printRefused = (named: ReadonlyArray<RefusedRun>, count: number): Effect.Effect<void> => {
  const lines = named.map(({ reason, run_id }) => `${command}: ${run_id}: ${reasons[reason]}`);
  if (count > named.length) lines.push(`${command}: and ${count - named.length} more`);
  return lines.length === 0 ? Effect.void : Console.error(lines.join("\n"));
};

/** Reads the lines of the file, or of stdin. */
const readLines = Effect.fnUntraced(function* (file: Option.Option<string>) {
  const stdio = yield* Stdio.Stdio;
  const fileSystem = yield* FileSystem.FileSystem;
  if (Option.isNone(file) && (yield* stdio.stdinIsTerminal)) {
    return yield* fail("refused", "name the file that `runs export --all` wrote, or pipe it to stdin");
  }
  const splitter = new LineSplitter(fileLineBytesMax);
  const bytes = Option.isNone(file) ? stdio.stdin : fileSystem.stream(file.value);
  const whole = Stream.flatMap(bytes, (some): Stream.Stream<TextLine> => Stream.fromIterable(splitter.push(some)));
  return Stream.concat(
    whole,
    Stream.suspend(() => Stream.fromIterable(splitter.end())),
  );
});
