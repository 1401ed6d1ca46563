/**
 * `stream-recovery runs cancel ID`: ends a run on behalf of its user, whichever process drives it.
 */
import { Console, Effect } from "effect";
import { Command } from "effect/cli";
import * as RunCancel from "../../runtime/crash/RunCancel.ts";
import { cancelWords } from "../../story/CancelWords.ts";
import { exitCodesHelp, failing } from "../command/CommandFailed.ts";
import { dbFlag, jsonFlag, withStore, withWaitNotice } from "../command/Store.ts";
import type { Screen } from "../terminal/Screen.ts";
import { findRun } from "./RunLookup.ts";
import { runArgument } from "./show.ts";

const fail = failing("runs cancel");

/** The `runs cancel` command. */
export const cancelCommand = Command.make(
  "cancel",
  { id: runArgument, db: dbFlag, json: jsonFlag },
  ({ db, id, json }) => withStore("runs cancel", db, (screen) => cancel(id, json, screen)),
).pipe(
  Command.withDescription(
    `Cancel a run in its user's name: the process that drives it is told, and ends it as user_cancelled. A run that no process drives is decided as cancelled and ends; nothing of it is sent again. Where its process is silent, the command waits as long as that one's lease is, and the cancel stands for an hour.${exitCodesHelp}`,
  ),
  Command.withShortDescription("End a run in its user's name, whichever process drives it"),
  Command.withExamples([
    { command: "stream-recovery runs cancel 4f1c", description: "Stop a run that another program drives" },
  ]),
);

/**
 * Cancels a run and prints the outcome.
 *
 * @param id a run's id or a prefix of it
 */
export const cancel = Effect.fn("cli.runs.cancel")(function* (id: string, json: boolean, screen: Screen) {
  const { run_id } = yield* findRun("runs cancel", id);
  const told = yield* withWaitNotice("runs cancel", RunCancel.cancel(run_id));
  // The run was pruned after the lookup.
  if (told === undefined) return yield* fail("negative", `no run is ${JSON.stringify(run_id)}`);
  const { driver, outcome, record } = told;
  const words = cancelWords(told);
  if (outcome === "ended" || outcome === "pending" || outcome === "unreachable")
    return yield* fail("negative", `${run_id}: ${words}`);
  if (!json) return yield* Console.log(`${screen.ink("good", "✓")} ${run_id}: ${words}`);
  const { end, state } = record;
  yield* Console.log(JSON.stringify({ run_id, outcome, driver, state, end }));
});
