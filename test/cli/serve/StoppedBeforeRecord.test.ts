/**
 * A gateway that is stopped between the end of a response and its record, so that another one considers it dead (L8).
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { FaultProvider } from "../../../src/testing/index.ts";
import { post } from "../../gateway/GatewayCases.ts";
import { polled } from "../../Polling.ts";
import { folder, runsIn, serve } from "../ServeProcess.ts";

describe("A gateway that is stopped between queue and commit", () => {
  it.live("loses nothing of its run: its late entries replace the end written by another gateway", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ content: [{ text: 8 }], delay_ms: 150 }] },
      });
      const db = join(yield* folder, "runs.db");
      const args = ["--port", "0", "--db", db, "--lease-ms", "2000", "--openai-url", `${server.url}/v1`];
      const stopped = yield* serve(args);
      yield* serve(args);
      const asked = yield* Effect.forkChild(post(stopped.url, "openai-chat"));
      yield* polled(Effect.map(runsIn(db), ([run]) => run));
      // From here the store accepts no writes, so the end of the run stays in the queue.
      const lock = new DatabaseSync(db);
      lock.exec("BEGIN IMMEDIATE");
      assert.strictEqual((yield* Fiber.join(asked)).status, 200);
      stopped.child.kill("SIGSTOP");
      lock.close();
      const lost = yield* polled(Effect.map(runsIn(db), ([run]) => (run?.end === undefined ? undefined : run)));
      assert.deepInclude(lost.end, { state: "stopped", reason: "process_lost", assumed: true });
      assert.deepStrictEqual(lost.incidents, []);
      stopped.child.kill("SIGCONT");
      const [run] = yield* polled(
        Effect.map(runsIn(db), (runs) => (runs[0]?.end?.state === "completed" ? runs : undefined)),
      );
      assert.deepInclude(run?.end, { state: "completed", attempts: 1 });
      assert.isUndefined(run?.end?.assumed);
      assert.lengthOf(yield* runsIn(db), 1);
    }),
  );
});
