/**
 * A question that is answered elsewhere: the run waits, and another process reads its question from the store and answers it.
 */
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, Layer, Stream } from "effect";
import { CrashRecovery, Observation, StreamProcessor, UserDecisions } from "effect-stream-recovery";
import { SqlRunRecorder } from "effect-stream-recovery/sqlite";

const file = process.argv[2] ?? join(mkdtempSync(join(tmpdir(), "elsewhere-")), "runs.db");
const store = SqlRunRecorder.layerFile({ file });

/** The other process: lists the open questions, and answers those that repeat no side effect. */
const answering = Effect.gen(function* () {
  for (const { choices, may_repeat, message, revision, rule, run_id } of yield* CrashRecovery.questions()) {
    console.log(run_id, rule, message);
    // A person confirms a retry that may repeat a side effect.
    if (choices.includes("retry") && may_repeat.length === 0)
      yield* CrashRecovery.answer({ run_id, revision, choice: "retry", by: "program" });
  }
});

let requests = 0; // your provider: its first response breaks after text
const attempt = () =>
  ++requests === 1
    ? Stream.concat(Stream.make("Hello"), Stream.fail(Object.assign(new Error("hang up"), { code: "ECONNRESET" })))
    : Stream.make("Hello", " world", "[end]");
const observe = (part: string) => (part === "[end]" ? Observation.terminal("stop") : Observation.text(part.length));

const asking = Effect.gen(function* () {
  const run = (yield* StreamProcessor).run({
    provider: { id: "example" },
    tools: [],
    attempt,
    observe,
    runId: "greeting",
    transcript: "Say hello", // the request, as one string: a run with it can wait without its process
  });
  let shown = "";
  yield* Stream.runForEach(run, (event) =>
    Effect.sync(() => {
      if (event._tag === "Part" && event.part !== "[end]") shown += event.part;
      if (event._tag === "AttemptDiscarded") shown = "";
      if (event._tag === "QuestionAsked")
        spawn(process.execPath, [process.argv[1] ?? "", file, "answer"], { stdio: "inherit" });
    }),
  );
  console.log(shown);
});
const services = StreamProcessor.layer.pipe(
  Layer.provideMerge(UserDecisions.layerDurable()), // waits ten minutes, then parks the run
  Layer.provideMerge(store),
);
if (process.argv[3] === "answer") await Effect.runPromise(Effect.provide(answering, store));
else await Effect.runPromise(Effect.provide(asking, services));
