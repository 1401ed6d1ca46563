/**
 * `stream-recovery runs watch`: prints a line for every step of one or all runs as it is recorded.
 */
import { Clock, Console, Effect, Option } from "effect";
import { Argument, Command, Flag } from "effect/cli";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { openQuestion, type RunRecord } from "../../recorder/RunRecord.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { isCancelled } from "../../story/RunStatus.ts";
import { type RunStep, runSteps } from "../../story/RunSteps.ts";
import { formatLocalTime } from "../../story/Times.ts";
import { exitCodesHelp, failing } from "../command/CommandFailed.ts";
import * as Signals from "../command/Signals.ts";
import { dbFlag, jsonFlag, withStore } from "../command/Store.ts";
import { quoteForShell, type Screen } from "../terminal/Screen.ts";
import { findRun } from "./RunLookup.ts";

/** Maximum runs watched if none is named. The newest runs are watched. */
const watchedMax = 100;

/** Default polling interval, in milliseconds. */
const everyMsDefault = 500;

/** Maximum consecutive polls of a locked store before the command fails. */
const busyLooksMax = 20;

/** Prints the steps of one run or of all runs as they are recorded. With one run it exits at its end, otherwise at a signal. */
export const watchCommand = Command.make(
  "watch",
  {
    id: Argument.String("id").pipe(
      Argument.withDescription("Only this run, from its start to its end; if omitted, all runs from now on"),
      Argument.optional,
    ),
    db: dbFlag,
    every: Flag.Int("every").pipe(
      Flag.withDescription("Time between two reads of the store, in milliseconds"),
      Flag.withDefault(everyMsDefault),
      Flag.filter(
        (ms) => ms >= 50 && ms <= 60_000,
        (ms) => `Expected 50 to 60000, got ${ms}`,
      ),
    ),
    json: jsonFlag,
  },
  ({ db, every, id, json }) =>
    withStore("runs watch", db, (screen) => {
      const watching = { everyMs: every, json, screen };
      return Option.isSome(id) ? watchOne(id.value, watching) : watchAll(watching);
    }),
).pipe(
  Command.withDescription(
    `Print a line for each step as any process records it. With an id the command ends with the run, with exit code 1 if the run was stopped. Without an id it shows the newest ${watchedMax} runs until Ctrl-C.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Follow a run, or all runs, step by step"),
);

interface Watching {
  readonly everyMs: number;
  readonly json: boolean;
  readonly screen: Screen;
}

/** Follows one run to its end. */
export const watchOne = Effect.fn("cli.runs.watchOne")(function* (id: string, watching: Watching) {
  let record = yield* findRun("runs watch", id);
  const recorder = yield* RunRecorder;
  const look = retryWhileLocked(recorder.run(record.run_id), watching.everyMs);
  const seen = new Set<string>();
  while (true) {
    yield* printNewSteps(record, seen, watching);
    if (record.end !== undefined) break;
    yield* Effect.sleep(watching.everyMs);
    const next = yield* look;
    if (next === undefined) return yield* failing("runs watch")("negative", `${record.run_id} was deleted meanwhile`);
    record = next;
  }
  if (record.end.state === "stopped") {
    return yield* failing("runs watch")("negative", `${record.run_id} was stopped by ${record.end.reason}`);
  }
  if (isCancelled(record)) return yield* failing("runs watch")("negative", `${record.run_id} was cancelled`);
});

/** Follows the newest runs until interrupted. Steps recorded before the start are not printed. */
export const watchAll = Effect.fn("cli.runs.watchAll")(function* (watching: Watching) {
  const recorder = yield* RunRecorder;
  yield* Signals.endsNormally;
  const look = retryWhileLocked(recorder.runs({ limit: watchedMax }), watching.everyMs);
  let seen = new Map((yield* look).map((record) => [record.run_id, keysOf(record)]));
  if (!watching.json) yield* Console.error(`watching the newest ${watchedMax} runs; press Ctrl-C to stop`);
  while (true) {
    yield* Effect.sleep(watching.everyMs);
    const records = yield* look;
    const next = new Map<string, Set<string>>();
    for (const record of records.toReversed()) {
      const keys = seen.get(record.run_id) ?? new Set<string>();
      yield* printNewSteps(record, keys, watching);
      next.set(record.run_id, keys);
    }
    seen = next;
  }
});

const keysOf = (record: RunRecord): Set<string> => new Set(runSteps(record).map(({ key }) => key));

/** Reads the store again while another process has it locked, at most `busyLooksMax` times. Any other error fails at once. */
const retryWhileLocked = <A>(
  look: Effect.Effect<A, RecorderError>,
  everyMs: number,
): Effect.Effect<A, RecorderError> => {
  const attempt = (left: number): Effect.Effect<A, RecorderError> =>
    Effect.catchTag(look, "RecorderError", (error) =>
      error.reason === "locked" && left > 0
        ? Effect.andThen(Effect.sleep(everyMs), attempt(left - 1))
        : Effect.fail(error),
    );
  return attempt(busyLooksMax);
};

const printNewSteps = Effect.fnUntraced(function* (record: RunRecord, seen: Set<string>, { json, screen }: Watching) {
  // Steps that were recorded before the first poll are printed with their recorded time, or without a time if none was recorded.
  const now = seen.size === 0 ? undefined : yield* Clock.currentTimeMillis;
  for (const step of runSteps(record)) {
    if (seen.has(step.key)) continue;
    seen.add(step.key);
    yield* Console.log(json ? lineJson(record, step, now) : formatLine(record, step, now, screen));
  }
});

const lineJson = ({ run_id, state }: RunRecord, { at, key, text }: RunStep, now: number | undefined): string =>
  JSON.stringify({ run_id, at: at ?? now, step: key, text, state });

/** Width of the id column. Longer ids are cut to a prefix that can be typed. */
const idColumns = 20;

const timeColumns = 8;

const formatLine = (record: RunRecord, step: RunStep, now: number | undefined, { ink, type }: Screen): string => {
  const at = step.at ?? now;
  const time = at === undefined ? " ".repeat(timeColumns) : formatLocalTime(at);
  const id = record.run_id.slice(0, idColumns).padEnd(Math.min(idColumns, record.run_id.length));
  const text = step.tone === undefined ? step.text : ink(step.tone, step.text);
  const open = openQuestion(record);
  const hint =
    open !== undefined && step.key === `question ${open.revision}`
      ? `  ${ink("quiet", type(`runs answer ${quoteForShell(record.run_id)}`))}`
      : "";
  return `${ink("quiet", time)}  ${ink("strong", id)}  ${text}${hint}`;
};
