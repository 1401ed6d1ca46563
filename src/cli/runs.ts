/**
 * `stream-recovery runs`: inspects recorded runs, answers their questions, and cancels runs.
 */
import { Command } from "effect/cli";
import { answerCommand } from "./runs/answer.ts";
import { cancelCommand } from "./runs/cancel.ts";
import { exportCommand } from "./runs/export.ts";
import { importCommand } from "./runs/import.ts";
import { listCommand } from "./runs/list.ts";
import { pruneCommand } from "./runs/prune.ts";
import { retainCommand } from "./runs/retain.ts";
import { showCommand } from "./runs/show.ts";
import { watchCommand } from "./runs/watch.ts";

/** Groups the subcommands that read and change the runs on record. */
export const runsCommand = Command.make("runs").pipe(
  Command.withDescription("List, show, follow, answer, cancel, export, import and delete the runs on record"),
  Command.withSubcommands([
    listCommand,
    showCommand,
    watchCommand,
    answerCommand,
    cancelCommand,
    exportCommand,
    importCommand,
    pruneCommand,
    retainCommand,
  ]),
);
