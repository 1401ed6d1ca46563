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
import { exportedAll } from "./AllRuns.ts";
import { findRun } from "./RunLookup.ts";
import { runArgument } from "./show.ts";

/** The `runs export` command. */
export const exportCommand = Command.make(
  "export",
  {
    id: Argument.optional(runArgument),
    db: dbFlag,
    all: Flag.Boolean("all").pipe(
      Flag.withDescription("Every run as it is, for `runs import` into another store; to be kept as the store is"),
      Flag.withDefault(false),
    ),
    includeLive: Flag.Boolean("include-live").pipe(
      Flag.withDescription("With --all: take runs along that a process drives, as if that process were gone"),
      Flag.withDefault(false),
    ),
    out: Flag.String("out").pipe(
      Flag.withDescription("Write to this file instead of stdout"),
      Flag.withMetavar("file"),
      Flag.optional,
    ),
    name: Flag.String("name").pipe(
      Flag.withDescription("A name of your own program (a tool, a model) that may come out as it is; repeat it"),
      Flag.atLeast(0),
    ),
  },
  (options) => withStore("runs export", options.db, () => chosen(options)),
).pipe(
  Command.withDescription(
    `Print a run as JSON without secrets, prompts, paths or ids, for a bug report (docs/observability.md); or with --all every run as it is, a line each, for another store (docs/postgres.md).${exitCodesHelp}`,
  ),
  Command.withShortDescription("Print a run as JSON that can be shared, or all runs for another store"),
  Command.withExamples([
    { command: "stream-recovery runs export 4f1c", description: "One run, for a bug report" },
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

/** `--all` must be explicit: a forgotten id must not print data that cannot be shared. */
const chosen = Effect.fnUntraced(function* ({ all, id, includeLive, name, out }: ExportOptions) {
  if (Option.isSome(id)) {
    if (all || includeLive) return yield* fail("refused", "name a run, or --all for every one, and not both");
    return yield* exported(id.value, name, out);
  }
  if (!all) return yield* fail("refused", "name a run, or say --all to take every run to another store");
  if (name.length > 0) return yield* fail("refused", "--name is for one run: --all changes no name");
  return yield* exportedAll(includeLive, out);
});

/**
 * Exports a run.
 *
 * @param names names that may be exported unchanged
 * @param out the file; stdout if none
 */
export const exported = Effect.fn("cli.runs.export")(function* (
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
