/**
 * `stream-recovery runs export ID`: a run as JSON that can be shared.
 */
import { Effect, type Option } from "effect";
import { Command, Flag } from "effect/cli";
import { encode, exportRun } from "../../recorder/export/IncidentExport.ts";
import { exitCodesHelp } from "../command/CommandFailed.ts";
import { printOrWrite } from "../command/Output.ts";
import { dbFlag, withStore } from "../command/Store.ts";
import { findRun } from "./RunLookup.ts";
import { runArgument } from "./show.ts";

/** `runs export`. */
export const exportCommand = Command.make(
  "export",
  {
    id: runArgument,
    db: dbFlag,
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
  ({ db, id, name, out }) => withStore("runs export", db, () => exported(id, name, out)),
).pipe(
  Command.withDescription(
    `Print a run as JSON without secrets, prompts, paths or ids, for a bug report (docs/incident-export.md).${exitCodesHelp}`,
  ),
  Command.withShortDescription("Print a run as JSON that can be shared"),
);

/**
 * Exports a run.
 *
 * @param names names that may come out as they are
 * @param out the file; none writes to stdout
 */
export const exported = Effect.fn("cli.runs.export")(function* (
  id: string,
  names: ReadonlyArray<string>,
  out: Option.Option<string>,
) {
  const text = encode(exportRun(yield* findRun("runs export", id), { names }));
  yield* printOrWrite("runs export", `${text}\n`, out);
});
