/**
 * `stream-recovery recover`: decides the runs whose process is gone, and says what to do next with each.
 */
import { Console, Effect } from "effect";
import { Command } from "effect/cli";
import { RunRecorder } from "../recorder/RunRecorder.ts";
import * as CrashRecovery from "../runtime/CrashRecovery.ts";
import { exitCodesHelp } from "./Outcome.ts";
import { recoverText } from "./recover/RecoverText.ts";
import type { Screen } from "./Screen.ts";
import { dbFlag, jsonFlag, toldToWait, withStore } from "./Store.ts";

/** `recover`. */
export const recoverCommand = Command.make("recover", { db: dbFlag, json: jsonFlag }, ({ db, json }) =>
  withStore("recover", db, (screen) => recover(json, screen)),
).pipe(
  Command.withDescription(
    `Decide the runs whose process is gone, by the policy and from their recorded facts: what is safe is offered for a retry, what is not becomes a question. Reaches no provider; a second time it finds nothing. A process that is only silent is watched for as long as its lease is before its runs are taken.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Decide the runs whose process is gone"),
  Command.withExamples([
    { command: "stream-recovery recover", description: "After a crash, and at every boot" },
    { command: "stream-recovery runs list --state asking", description: "What it left to you" },
  ]),
);

/** Runs after which there is progress on stderr: fewer are done before anybody looks. */
const progressFromRuns = 200;

/** Recovers, and prints what it found. */
export const recover = Effect.fn("cli.recover")(function* (json: boolean, screen: Screen) {
  const inPlace = process.stderr.isTTY === true;
  // Watching comes first: what is found then is taken at once.
  yield* toldToWait(
    "recover",
    Effect.flatMap(RunRecorder, (recorder) => recorder.orphans(1)),
  );
  const report = yield* CrashRecovery.recover({
    onProgress: (runs) =>
      runs < progressFromRuns
        ? Effect.void
        : Effect.sync(() => void process.stderr.write(inPlace ? `\r\u001b[2K${runs} runs` : `${runs} runs\n`)),
  });
  if (inPlace && report.runs.length >= progressFromRuns) {
    yield* Effect.sync(() => void process.stderr.write("\r\u001b[2K"));
  }
  yield* Console.log(json ? JSON.stringify(report, null, 2) : recoverText(report, screen));
});
