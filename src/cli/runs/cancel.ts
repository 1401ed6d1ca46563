/** `stream-recovery runs cancel ID`: ends a run as if its user had cancelled it, whichever process owns it. */
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

/** Cancels a run that this process need not own. Its owner ends it; a run without an owner ends at once. */
export const cancelCommand = Command.make(
  "cancel",
  { id: runArgument, db: dbFlag, json: jsonFlag },
  ({ db, id, json }) => withStore("runs cancel", db, (screen) => cancel(id, json, screen)),
).pipe(
  Command.withDescription(
    `Cancel a run as its user would. The process that owns it is notified and ends it as user_cancelled. A run without an owner is ended as cancelled; no request is sent again. If the owner is silent, the command waits until its lease has expired, and the cancel stays pending for an hour.${exitCodesHelp}`,
  ),
  Command.withShortDescription("End a run as if its user had cancelled it, in whichever process owns it"),
  Command.withExamples([
    { command: "stream-recovery runs cancel 4f1c", description: "Stop a run that another program owns" },
  ]),
);

/**
 * Cancels a run and prints the outcome.
 *
 * @param id a run's id or a prefix of it
 */
export const cancel = Effect.fn("cli.runs.cancel")(function* (id: string, json: boolean, screen: Screen) {
  const { run_id } = yield* findRun("runs cancel", id);
  const cancelled = yield* withWaitNotice("runs cancel", RunCancel.cancel(run_id));
  // Undefined if the run was pruned after the lookup.
  if (cancelled === undefined) return yield* fail("negative", `no run has the id ${JSON.stringify(run_id)}`);
  const { driver, outcome, record } = cancelled;
  const words = cancelWords(cancelled);
  if (outcome === "ended" || outcome === "pending" || outcome === "unreachable")
    return yield* fail("negative", `${run_id}: ${words}`);
  if (!json) return yield* Console.log(`${screen.ink("good", "✓")} ${run_id}: ${words}`);
  const { end, state } = record;
  yield* Console.log(JSON.stringify({ run_id, outcome, driver, state, end }));
});
