/** Replays traces of the model of ownership over one SQLite file. */
import { Effect } from "effect";
import { modelTraces } from "../suite/ModelTraces.ts";
import * as Folder from "./SqlFolder.ts";

modelTraces("Three processes over one SQLite file", (names) =>
  Effect.flatMap(Folder.emptyPath, (file) => Effect.forEach(names, (process) => Folder.open({ file, process }))),
);
