/**
 * Finds the run that was meant: by its id, or by the beginning of its id where only one run begins so.
 */
import { Effect, Stream } from "effect";
import { runsOf } from "../../recorder/RunPages.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { failing } from "../command/CommandFailed.ts";

/** Most runs whose ids are looked through, the newest first: older ones are found by their whole id. */
export const prefixRunsMax = 10_000;

/** Most ids that are named when a beginning fits several. */
const namedMax = 8;

/**
 * The run of an id, or of its beginning.
 *
 * @param command the command's name, for its error
 * @param id as it was typed
 */
export const findRun = Effect.fn("cli.findRun")(function* (command: string, id: string) {
  const recorder = yield* RunRecorder;
  const exact = yield* recorder.run(id);
  if (exact !== undefined) return exact;
  const found = id === "" ? [] : yield* beginningWith(id);
  const [only, second] = found;
  if (only !== undefined && second === undefined) return only;
  const fail = failing(command);
  if (only === undefined) return yield* fail("negative", `no run is or begins with ${JSON.stringify(id)}`);
  const named = found.slice(0, namedMax).map(({ run_id }) => run_id);
  const rest = found.length > namedMax ? ` and ${found.length - namedMax} more` : "";
  return yield* fail("refused", `${found.length} runs begin with ${JSON.stringify(id)}: ${named.join(", ")}${rest}`);
});

const beginningWith = Effect.fnUntraced(function* (id: string) {
  const recorder = yield* RunRecorder;
  const newest = Stream.take(runsOf(recorder, {}), prefixRunsMax);
  return yield* Stream.runCollect(Stream.filter(newest, ({ run_id }) => run_id.startsWith(id)));
});
