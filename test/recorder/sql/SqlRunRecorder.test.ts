import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, Layer } from "effect";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import { suite } from "../suite/Suite.ts";

/** An empty file each time that it is built. */
const emptyFile = Layer.unwrap(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "recorder-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
    ),
    (folder) => SqlRunRecorder.layerFile({ file: join(folder, "state", "runs.db") }),
  ),
);

suite("SqlRunRecorder.layerFile", emptyFile);
