/**
 * `stream-recovery runs export ID`: prints a run as JSON that can be shared. `runs export --all`: exports every run unchanged,
 * for another store.
 */
import { Effect, Option, Result } from "effect";
import { Argument, Command, Flag } from "effect/cli";
import { encode, exportRun, IncidentExportError } from "../../recorder/export/IncidentExport.ts";
import { exitCodesHelp, failing } from "../command/CommandFailed.ts";
import { printOrWrite } from "../command/Output.ts";
import { dbFlag, withStore } from "../command/Store.ts";
import { exportAll } from "./AllRuns.ts";
import { findRun } from "./RunLookup.ts";
import { runArgument } from "./show.ts";

/** Exports one run without secrets, or with `--all` every run unchanged. */
export const exportCommand = Command.make(
  "export",
  {
    id: Argument.optional(runArgument),
    db: dbFlag,
    all: Flag.Boolean("all").pipe(
      Flag.withDescription(
        "Every run unchanged, for `runs import` into another store; protect the file like the store",
      ),
      Flag.withDefault(false),
    ),
    includeLive: Flag.Boolean("include-live").pipe(
      Flag.withDescription("With --all: include runs that a process owns, as if that process were gone"),
      Flag.withDefault(false),
    ),
    out: Flag.String("out").pipe(
      Flag.withDescription("Write to this file instead of stdout"),
      Flag.withMetavar("file"),
      Flag.optional,
    ),
    name: Flag.String("name").pipe(
      Flag.withDescription("A name from your own program (a tool, a model) that may be printed unchanged; repeatable"),
      Flag.atLeast(0),
    ),
  },
  (options) => withStore("runs export", options.db, () => exportChosen(options)),
).pipe(
  Command.withDescription(
    `Print a run as JSON without secrets, prompts, paths or ids, for a bug report (docs/observability.md); or, with --all, every run unchanged, one per line, for another store (docs/postgres.md).${exitCodesHelp}`,
  ),
  Command.withShortDescription("Print a run as JSON that is safe to share, or all runs for another store"),
  Command.withExamples([
    { command: "stream-recovery runs export 4f1c", description: "Export one run for a bug report" },
    {
      command: "stream-recovery runs export --all --db runs.db --out runs.jsonl",
      description: "Everything, for `runs import --db postgres://… runs.jsonl`",
    },
  ]),
);

interface ExportOptions {
  readonly id: Option.Option<string>;
  readonly all: boolean;
  readonly includeLive: boolean;
  readonly name: ReadonlyArray<string>;
  readonly out: Option.Option<string>;
}

const fail = failing("runs export");

/** Exports one run or all. `--all` must be explicit, because a forgotten id must not print data that cannot be shared. */
const exportChosen = Effect.fnUntraced(function* ({ all, id, includeLive, name, out }: ExportOptions) {
  if (Option.isSome(id)) {
    if (all || includeLive) return yield* fail("refused", "expected a run or --all, got both");
    return yield* exportOne(id.value, name, out);
  }
  if (!all) return yield* fail("refused", "expected a run, or --all to move every run to another store");
  if (name.length > 0) return yield* fail("refused", "--name applies to one run: --all changes no names");
  return yield* exportAll(includeLive, out);
});

/**
 * Exports a run.
 *
 * @param names names that may be exported unchanged
 * @param out the file; stdout if none
 */
export const exportOne = Effect.fn("cli.runs.export")(function* (
  id: string,
  names: ReadonlyArray<string>,
  out: Option.Option<string>,
) {
  const record = yield* findRun("runs export", id);
  const document = Result.try({
    try: () => exportRun(record, { names }),
    catch: (error) => (error instanceof IncidentExportError ? error.message : String(error)),
  });
  if (Result.isFailure(document)) return yield* fail("refused", document.failure);
  const text = encode(document.success);
  yield* printOrWrite("runs export", `${text}\n`, out);
});
