/**
 * Takes every run out of a store as it is: the file that `runs import` reads.
 */
import { Clock, Console, Effect, FileSystem, Option, Stdio, Stream } from "effect";
import { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { fileOf, type Written } from "../../recorder/transfer/RunFileWriter.ts";
import { transferOf } from "../../recorder/transfer/RunTransfer.ts";
import { failing } from "../command/CommandFailed.ts";
import { toldToWait } from "../command/Store.ts";
import { counting } from "../terminal/Progress.ts";

const command = "runs export";
const fail = failing(command);

/** The file is to be kept as the store is, whose own file only its owner reads. */
const fileMode = 0o600;

/**
 * Writes every run to stdout, or to a file.
 *
 * A run that a living process drives is left out, unless the caller wants it: the store that it comes into takes it for one whose
 * process has died, and decides it, while that process goes on.
 *
 * @param takesDriven whether such runs are taken along
 * @param out the file; none writes to stdout
 */
export const exportedAll = Effect.fn("cli.runs.exportAll")(function* (
  takesDriven: boolean,
  out: Option.Option<string>,
) {
  const recorder = yield* RunRecorder;
  const stdio = yield* Stdio.Stdio;
  const fileSystem = yield* FileSystem.FileSystem;
  const transfer = transferOf(recorder);
  if (transfer === undefined) return yield* fail("refused", "this store does not give whole runs");
  if (Option.isNone(out) && (yield* stdio.stdoutIsTerminal)) {
    return yield* fail("refused", "what it prints is for a file: name one with --out");
  }
  // Afterwards the lease of every process that is gone is known to be over, and its runs are no more driven.
  if (!takesDriven) yield* toldToWait(command, recorder.orphans(1, { waits: "all" }));
  const counter = counting(process.stderr, (count) => `${count} runs`);
  let written: Written = { runs: 0, leftOut: 0, damaged: 0 };
  const told = (now: Written) => {
    written = now;
    counter.reached(now.runs);
  };
  const texts = fileOf(transfer, { at: yield* Clock.currentTimeMillis, takesDriven, told });
  const sink = Option.isNone(out)
    ? stdio.stdout({ endOnDone: false })
    : fileSystem.sink(out.value, { flag: "w", mode: fileMode });
  yield* Stream.run(Stream.encodeText(texts), sink).pipe(
    Effect.ensuring(Effect.sync(counter.done)),
    Effect.catchIf(
      (error) => !(error instanceof RecorderError),
      ({ message }) => fail("refused", `${Option.getOrElse(out, () => "stdout")} cannot be written: ${message}`),
    ),
  );
  yield* Console.error(`${command}: ${written.runs} ${written.runs === 1 ? "run" : "runs"}`);
  return yield* complete(written);
});

const complete = Effect.fnUntraced(function* ({ damaged, leftOut }: Written) {
  const missing = [
    ...(leftOut === 0
      ? []
      : [`${leftOut} left out, as a process drives them: end it and export again, or take them with --include-live`]),
    ...(damaged === 0 ? [] : [`${damaged} left out, as their records are damaged`]),
  ];
  if (missing.length > 0) return yield* fail("negative", missing.join("; "));
});
