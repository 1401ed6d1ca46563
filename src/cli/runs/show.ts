/**
 * `stream-recovery runs show ID`: prints one run in plain words.
 */
import { Console, Effect, Option, Schema } from "effect";
import { Argument, Command, Flag } from "effect/cli";
import { runDocument } from "../../gateway/page/RunDocument.ts";
import { RunRecord } from "../../recorder/RunRecord.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { exitCodesHelp, failing } from "../command/CommandFailed.ts";
import { printOrWrite } from "../command/Output.ts";
import { dbFlag, jsonFlag, withStore } from "../command/Store.ts";
import type { Screen } from "../terminal/Screen.ts";
import { findRun } from "./RunLookup.ts";
import { runText } from "./RunText.ts";

/** The argument that names a run. */
export const runArgument = Argument.String("id").pipe(
  Argument.withDescription("The run's id, or a prefix that no other run shares"),
);

/** Prints one run in plain words, as JSON, or as one HTML file. */
export const showCommand = Command.make(
  "show",
  {
    id: runArgument,
    db: dbFlag,
    json: jsonFlag,
    html: Flag.Boolean("html").pipe(
      Flag.withDescription("Draw the run as one self-contained HTML file"),
      Flag.withDefault(false),
    ),
    out: Flag.String("out").pipe(
      Flag.withDescription("Write the HTML to this file instead of stdout"),
      Flag.withMetavar("file"),
      Flag.optional,
    ),
  },
  ({ db, html, id, json, out }) =>
    withStore("runs show", db, (screen) => (html ? renderRun(id, json, out, screen) : printRun(id, json, out, screen))),
).pipe(
  Command.withDescription(
    `Explain a run in plain words: its attempts, breaks, decisions and reasons, calls, its question, and the command that answers it.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Explain a run in plain words, with its question and how to answer it"),
);

const encode = Schema.encodeSync(Schema.toCodecJson(RunRecord));

/**
 * Prints a run in plain words, or its record as JSON.
 *
 * @param id a run's id or a prefix of it
 * @param json true to print the record instead of text
 */
export const show = Effect.fn("cli.runs.show")(function* (id: string, json: boolean, screen: Screen) {
  const record = yield* findRun("runs show", id);
  if (json) return yield* Console.log(JSON.stringify(encode(record), null, 2));
  const undecided = record.state === "live" || record.state === "parked";
  const orphans = undecided ? yield* (yield* RunRecorder).orphans(orphansMax, { waits: false }) : [];
  yield* Console.log(runText(record, new Set(orphans.map(({ run_id }) => run_id)), screen));
});

/** Prints a run, or refuses `--out`. Only HTML output has `--out`, because text and JSON can be piped. */
const printRun = (id: string, json: boolean, out: Option.Option<string>, screen: Screen) =>
  Option.isSome(out) ? failing("runs show")("refused", "--out needs --html") : show(id, json, screen);

/**
 * Renders a run as one HTML file.
 *
 * @param id a run's id or a prefix of it
 * @param out the file; stdout if none
 */
const renderRun = Effect.fn("cli.runs.drawn")(function* (
  id: string,
  json: boolean,
  out: Option.Option<string>,
  { now }: Screen,
) {
  if (json) return yield* failing("runs show")("refused", "--html and --json exclude each other: choose one");
  yield* printOrWrite("runs show", runDocument(yield* findRun("runs show", id), now), out);
});

/** Maximum runs without an owner among which this run is searched. */
const orphansMax = 10_000;
