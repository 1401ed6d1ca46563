/**
 * `stream-recovery recover`: decides the runs whose process is gone, and says what to do next with each.
 */
import { Console, Effect } from "effect";
import { Command } from "effect/cli";
import { RunRecorder } from "../recorder/RunRecorder.ts";
import * as CrashRecovery from "../runtime/crash/CrashRecovery.ts";
import { exitCodesHelp } from "./command/Outcome.ts";
import { dbFlag, jsonFlag, toldToWait, withStore } from "./command/Store.ts";
import { recoverText } from "./recover/RecoverText.ts";
import type { Screen } from "./terminal/Screen.ts";

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
  const recorder = yield* RunRecorder;
  // Watching comes first: what is found then is taken at once. A process that was killed a moment ago is waited for too:
  // whoever types this after a crash wants its runs, and not to be told that it lives.
  yield* toldToWait("recover", recorder.orphans(1, { waits: "all" }), lately);
  const report = yield* CrashRecovery.recover({
    onProgress: (runs) =>
      runs < progressFromRuns
        ? Effect.void
        : Effect.sync(() => void process.stderr.write(inPlace ? `\r\u001b[2K${runs} runs` : `${runs} runs\n`)),
  });
  if (inPlace && report.runs.length >= progressFromRuns) {
    yield* Effect.sync(() => void process.stderr.write("\r\u001b[2K"));
  }
  const silent = yield* recorder.orphans(silentMax, { waits: false });
  const known = new Set(report.runs.map(({ run_id }) => run_id));
  const left = silent.filter(({ run_id }) => !known.has(run_id)).length;
  if (left > 0) yield* Console.error(`recover: ${leftText(left)}`);
  yield* Console.log(json ? JSON.stringify(report, null, 2) : recoverText(report, screen, left));
});

/** Said while a process that was heard of a moment ago is waited for. */
const lately =
  "runs are driven by another process; waiting for its next sign of life, or until its lease is over where it has died";

/** Most runs of silent processes that are counted. */
const silentMax = 1_000;

const leftText = (runs: number): string =>
  `${runs === silentMax ? `${runs} runs or more` : runs === 1 ? "one run" : `${runs} runs`} of a process that is silent and whose lease is longer than this waits; run it again later`;
