/**
 * Simultaneous actions on one run: taken up twice, answered while it is taken up, closed over its question. Uses real files and the
 * recorders of real processes, each with its own lease.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Layer, type Scope } from "effect";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Folder from "../../recorder/sql/SqlFolder.ts";
import type { Recorder } from "../../recorder/suite/Bench.ts";
import * as S from "../Scripted.ts";

const transcript = "what the user asked";
const broken = [S.start, S.text("a"), S.wait(1), S.reset];
const whole = [S.start, S.text("b"), S.done];

type Processor = StreamProcessor["Service"];

/** A process: a processor with its own recorder. */
const processOver = (recorder: Recorder, parkAfterMs: number): Effect.Effect<Processor, never, Scope.Scope> =>
  Effect.map(
    Layer.build(
      Layer.fresh(
        StreamProcessor.layer.pipe(
          Layer.provide(UserDecisions.layerDurable({ parkAfterMs, pollMs: 5 })),
          Layer.provide(Layer.succeed(RunRecorder, recorder)),
        ),
      ),
    ),
    (context) => Context.get(context, StreamProcessor),
  );

/** A run that is parked at its question. */
const parked = (recorder: Recorder, runId: string) =>
  Effect.gen(function* () {
    const processor = yield* processOver(recorder, 0);
    const provider = S.scripted(broken);
    const it = yield* S.watch(processor.run({ ...S.options(provider), runId, transcript }));
    assert.strictEqual(it.lines.at(-1), "end parked text_shown");
  });

describe("One run with several simultaneous actions", () => {
  it.live("is taken up by one of two processes, and the other one is refused and starts nothing", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const recorders = [yield* Folder.open({ file }), yield* Folder.open({ file })] as const;
      yield* parked(recorders[0], "r");
      yield* recorders[1].answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      const provider = S.scripted(whole, whole);
      const resumes = yield* Effect.forEach(
        recorders,
        (recorder) =>
          Effect.flatMap(processOver(recorder, 0), (it) =>
            S.watch(it.takeUp("r", { request: S.options(provider), transcript })),
          ),
        { concurrency: 2 },
      );
      assert.strictEqual(provider.attempts.length, 1);
      assert.sameMembers(
        resumes.map(({ lines: all }) => all.at(-1)),
        ["completed", "end refused not_retryable"],
      );
      assert.strictEqual((yield* recorders[0].run("r"))?.resumes, 1);
    }),
  );

  it.live("is answered by another process while it is taken up: once, and the stream continues", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [first, second, third] = [
        yield* Folder.open({ file }),
        yield* Folder.open({ file }),
        yield* Folder.open({ file }),
      ];
      yield* parked(first, "r");
      const provider = S.scripted(whole);
      const processor = yield* processOver(second, 60_000);
      const [resumed, answers] = yield* Effect.all(
        [
          S.watch(processor.takeUp("r", { request: S.options(provider), transcript })),
          Effect.forEach([first, third], (recorder) =>
            Effect.exit(recorder.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" })),
          ),
        ],
        { concurrency: 2 },
      );
      assert.deepStrictEqual(answers.map(Exit.isSuccess), [true, false]);
      assert.strictEqual(resumed.lines.at(-1), "completed");
      assert.strictEqual(provider.attempts.length, 1);
    }),
  );

  it.live("is closed over its question, and taken up in the same process with the same recorder", () =>
    Effect.gen(function* () {
      const recorder = yield* Folder.open({ file: yield* Folder.emptyPath });
      const processor = yield* processOver(recorder, 600_000);
      const provider = S.scripted(broken);
      const closing = S.watch(processor.run({ ...S.options(provider), runId: "r", transcript }), (event) =>
        event._tag === "QuestionAsked" ? Effect.forkDetach(processor.close("the program ends")) : Effect.void,
      );
      assert.strictEqual((yield* closing).lines.at(-1), "end parked text_shown");
      assert.strictEqual((yield* recorder.run("r"))?.state, "asking");
      yield* recorder.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      const next = yield* processOver(recorder, 600_000);
      const again = S.scripted(whole);
      const resumed = yield* S.watch(next.takeUp("r", { request: S.options(again), transcript }));
      assert.deepStrictEqual(resumed.lines.slice(-3), ["b", "done", "completed"]);
    }),
  );

  it.live("may have any id that fits: quotes, paths, new lines and other scripts", () =>
    Effect.gen(function* () {
      const recorder = yield* Folder.open({ file: yield* Folder.emptyPath });
      for (const runId of ["'; DROP TABLE runs;--", "../../etc/passwd", "a\nb\t", "💥 ключ", "%_", "__proto__"]) {
        yield* parked(recorder, runId);
        yield* recorder.answer({ run_id: runId, revision: 1, choice: "retry", by: "person" });
        const processor = yield* processOver(recorder, 0);
        const request = S.options(S.scripted(whole));
        const resumed = yield* S.watch(processor.takeUp(runId, { request, transcript }));
        assert.strictEqual(resumed.lines.at(-1), "completed", runId);
        assert.strictEqual((yield* recorder.run(runId))?.end?.state, "completed", runId);
      }
    }),
  );

  it.live("accepts ten million characters of transcript and keeps only their digest", () =>
    Effect.gen(function* () {
      const recorder = yield* Folder.open({ file: yield* Folder.emptyPath });
      const processor = yield* processOver(recorder, 0);
      const long = "x".repeat(10_000_000);
      yield* S.watch(processor.run({ ...S.options(S.scripted(broken)), runId: "r", transcript: long }));
      yield* recorder.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      const request = S.options(S.scripted(whole));
      const other = yield* S.watch(processor.takeUp("r", { request, transcript: `${long}.` }));
      assert.strictEqual(other.lines.at(-1), "end refused not_retryable");
      const same = yield* S.watch(processor.takeUp("r", { request, transcript: long }));
      assert.strictEqual(same.lines.at(-1), "completed");
      assert.isBelow(JSON.stringify(yield* recorder.run("r")).length, 20_000);
    }),
  );
});
