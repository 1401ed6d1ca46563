import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, Layer } from "effect";
import { SqlClient } from "effect/sql/SqlClient";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as SqlNodeSqlite from "../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts";
import { suite } from "../suite/Suite.ts";
import * as Folder from "./SqlFolder.ts";

/** Layers over an empty file that is new for each build. */
const emptyFile = <A, E>(over: (file: string) => Layer.Layer<A, E>) =>
  Layer.unwrap(
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "recorder-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
      ),
      (folder) => over(join(folder, "state", "runs.db")),
    ),
  );

suite(
  "SqlRunRecorder.layerFile",
  emptyFile((file) => SqlRunRecorder.layerFile({ file })),
);

/** Writes in groups whenever possible, as a run does. */
const together = Layer.effect(
  RunRecorder,
  Effect.map(RunRecorder, (recorder): RunRecorder["Service"] => ({
    ...recorder,
    write: (runId, entries) =>
      Effect.flatMap(Folder.together(recorder, runId, entries), (isOnRecord) =>
        isOnRecord === true ? Effect.void : recorder.write(runId, entries),
      ),
  })),
);

suite(
  "SqlRunRecorder.layerFile by writes together",
  emptyFile((file) => together.pipe(Layer.provide(SqlRunRecorder.layerFile({ file })))),
);

/** The client of another driver, with only the common interface. */
const foreign = Layer.effect(
  SqlClient,
  Effect.map(SqlClient, (client) => {
    const other: SqlClient = Object.assign(((...args: [string]) => client(...args)) as SqlClient, client, {
      withoutTransforms: () => other,
    });
    return other;
  }),
);

suite(
  "SqlRunRecorder.layer over the client of another driver",
  emptyFile((file) =>
    SqlRunRecorder.layer().pipe(Layer.provide(foreign), Layer.provide(SqlNodeSqlite.layer({ file }))),
  ),
);
