/**
 * Finds a run by its id or by a unique prefix of it.
 */
import { Effect, Stream } from "effect";
import { streamRuns } from "../../recorder/RunPages.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { findLate } from "../../recorder/WriteQueue.ts";
import { failing } from "../command/CommandFailed.ts";

/** Maximum runs searched for a prefix, newest first. Older runs need their whole id. */
export const prefixRunsMax = 10_000;

/** Maximum ids listed for an ambiguous prefix. */
const namedMax = 8;

/**
 * Finds a run by id or unique prefix.
 *
 * @param command the command's name, printed before an error
 */
export const findRun = Effect.fn("cli.findRun")(function* (command: string, id: string) {
  const recorder = yield* RunRecorder;
  const exact = yield* recorder.run(id);
  if (exact !== undefined) return exact;
  const found = id === "" ? [] : yield* findByPrefix(id);
  const [only, second] = found;
  if (only !== undefined && second === undefined) return only;
  const fail = failing(command);
  // A gateway records its runs up to a second late, so a new run may not be on record yet.
  const late = only === undefined && id !== "" ? yield* findLate(recorder, id) : undefined;
  if (late !== undefined) return late;
  if (only === undefined) return yield* fail("negative", `no run has the id or prefix ${JSON.stringify(id)}`);
  const named = found.slice(0, namedMax).map(({ run_id }) => run_id);
  const rest = found.length > namedMax ? ` and ${found.length - namedMax} more` : "";
  return yield* fail("refused", `${found.length} runs begin with ${JSON.stringify(id)}: ${named.join(", ")}${rest}`);
});

const findByPrefix = Effect.fnUntraced(function* (id: string) {
  const recorder = yield* RunRecorder;
  const newest = Stream.take(streamRuns(recorder, {}), prefixRunsMax);
  return yield* Stream.runCollect(Stream.filter(newest, ({ run_id }) => run_id.startsWith(id)));
});
