/**
 * `stream-recovery runs show ID`: one run in plain words.
 */
import { Console, Effect, Schema } from "effect";
import { Argument, Command } from "effect/cli";
import { RunRecord } from "../../recorder/RunRecord.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { exitCodesHelp } from "../Outcome.ts";
import type { Screen } from "../Screen.ts";
import { dbFlag, jsonFlag, withStore } from "../Store.ts";
import { findRun } from "./FindRun.ts";
import { runStory } from "./RunStory.ts";

/** The argument that names a run. */
export const runArgument = Argument.String("id").pipe(
  Argument.withDescription("The run's id, or its beginning where no other run begins so"),
);

/** `runs show`. */
export const showCommand = Command.make("show", { id: runArgument, db: dbFlag, json: jsonFlag }, ({ db, id, json }) =>
  withStore("runs show", db, (screen) => show(id, json, screen)),
).pipe(
  Command.withDescription(
    `Tell a run in plain words: attempts, what broke, what was decided and why, calls, the question and what to type.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Tell a run in plain words, with the question and how to answer it"),
);

const encode = Schema.encodeSync(Schema.toCodecJson(RunRecord));

/**
 * Tells a run.
 *
 * @param id a run's id or its beginning
 * @param json its record instead of words
 */
export const show = Effect.fn("cli.runs.show")(function* (id: string, json: boolean, screen: Screen) {
  const record = yield* findRun("runs show", id);
  if (json) return yield* Console.log(JSON.stringify(encode(record), null, 2));
  const undecided = record.state === "live" || record.state === "parked";
  const orphans = undecided ? yield* (yield* RunRecorder).orphans(orphansMax) : [];
  yield* Console.log(runStory(record, new Set(orphans.map(({ run_id }) => run_id)), screen));
});

/** Most orphans that this run is looked for among. */
const orphansMax = 10_000;
