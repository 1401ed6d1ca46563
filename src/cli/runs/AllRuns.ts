/**
 * Exports every run of a store, unchanged, to a file for `runs import`.
 */
import { Clock, Console, Effect, FileSystem, Option, Stdio, Stream } from "effect";
import { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { fileOf, type Written } from "../../recorder/transfer/RunFileWriter.ts";
import { transferOf } from "../../recorder/transfer/RunTransfer.ts";
import { failing } from "../command/CommandFailed.ts";
import { withWaitNotice } from "../command/Store.ts";
import { startCounter } from "../terminal/Progress.ts";

const command = "runs export";
const fail = failing(command);

/** Mode of the exported file. The file needs the same protection as a store's file, so only its owner can read it. */
const fileMode = 0o600;

/**
 * Writes every run to stdout or to a file.
 *
 * Runs that a live process owns are omitted by default. The importing store would consider them abandoned and recover them while that
 * process still runs them.
 *
 * @param takesDriven true to include runs that a live process owns
 * @param out the file; stdout if none
 */
export const exportAll = Effect.fn("cli.runs.exportAll")(function* (takesDriven: boolean, out: Option.Option<string>) {
  const recorder = yield* RunRecorder;
  const stdio = yield* Stdio.Stdio;
  const fileSystem = yield* FileSystem.FileSystem;
  const transfer = transferOf(recorder);
  if (transfer === undefined)
    return yield* fail("refused", "expected a SQLite or PostgreSQL store, which can export runs; this store cannot");
  if (Option.isNone(out) && (yield* stdio.stdoutIsTerminal)) {
    return yield* fail("refused", "the output is meant for a file: name one with --out");
  }
  // After this wait, the leases of dead processes have expired, and their runs no longer count as owned.
  if (!takesDriven) yield* withWaitNotice(command, recorder.orphans(1, { waits: "all" }));
  const counter = startCounter(process.stderr, (count) => `${count} runs`);
  let written: Written = { runs: 0, leftOut: 0, damaged: 0 };
  const reportProgress = (now: Written) => {
    written = now;
    counter.update(now.runs);
  };
  const texts = fileOf(transfer, { at: yield* Clock.currentTimeMillis, takesDriven, onProgress: reportProgress });
  const sink = Option.isNone(out)
    ? stdio.stdout({ endOnDone: false })
    : fileSystem.sink(out.value, { flag: "w", mode: fileMode });
  yield* Stream.run(Stream.encodeText(texts), sink).pipe(
    Effect.ensuring(Effect.sync(counter.done)),
    Effect.catchIf(
      (error) => !(error instanceof RecorderError),
      ({ message }) => fail("refused", `cannot write ${Option.getOrElse(out, () => "stdout")}: ${message}`),
    ),
  );
  yield* Console.error(`${command}: ${written.runs} ${written.runs === 1 ? "run" : "runs"}`);
  return yield* failIfIncomplete(written);
});

const failIfIncomplete = Effect.fnUntraced(function* ({ damaged, leftOut }: Written) {
  const missing = [
    ...(leftOut === 0
      ? []
      : [
          `${leftOut} skipped, because a process owns them: end it and export again, or include them with --include-live`,
        ]),
    ...(damaged === 0 ? [] : [`${damaged} skipped, because their records are damaged`]),
  ];
  if (missing.length > 0) return yield* fail("negative", missing.join("; "));
});
