/** Law L7: a stream ends once and its record has one terminal state, even if several ends coincide. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import type { Entry } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import * as S from "../runtime/Scripted.ts";

/** A processor that collects its writes. */
const recording = (written: Array<Entry>) =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(
      Layer.merge(
        Layer.effect(
          RunRecorder,
          Effect.map(RunRecorder, (memory) => ({
            ...memory,
            write: (id: string, entries: ReadonlyArray<Entry>) => {
              written.push(...entries);
              return Effect.andThen(Effect.sleep(3), memory.write(id, entries));
            },
          })),
        ).pipe(Layer.provide(RunRecorder.layerMemory())),
        UserDecisions.layerHeadless(),
      ),
    ),
  );

const scripts: ReadonlyArray<readonly [name: string, script: ReadonlyArray<S.Step>]> = [
  ["completes", [S.start, S.text("all"), S.wait(10), S.done]],
  ["breaks", [S.start, S.text("half"), S.wait(10), S.reset]],
  ["breaks behind its marker", [S.start, S.wait(10), S.done, S.reset]],
];

describe("L7 one end", () => {
  for (const [name, script] of scripts) {
    it.effect(`a stream that ${name} while it is cancelled, closed and interrupted at any moment has one end`, () =>
      Effect.gen(function* () {
        for (let at = 0; at <= 30; at += 1) {
          const written: Array<Entry> = [];
          const ends = yield* raced(script, at, written);
          assert.strictEqual(written.filter(({ _tag }) => _tag === "RunEnded").length, 1, `at ${at} ms`);
          assert.isAtMost(ends, 1, `at ${at} ms`);
        }
      }),
    );
  }
});

/** Plays a script, stops it in three ways at one moment, and counts the ends that its caller saw. */
const raced = (script: ReadonlyArray<S.Step>, at: number, written: Array<Entry>) =>
  Effect.gen(function* () {
    const processor = yield* StreamProcessor;
    const stream = processor.run(S.options(S.scripted(script), { runId: "r" }));
    const fiber = yield* Effect.forkChild(S.watch(stream));
    yield* TestClock.adjust(at);
    yield* Effect.forkChild(processor.cancel("r"));
    yield* Effect.forkChild(processor.close("over"));
    yield* Effect.forkChild(Fiber.interrupt(fiber));
    yield* TestClock.adjust("1 hour");
    const exit = yield* Fiber.await(fiber);
    const lines = exit._tag === "Success" ? exit.value.lines : [];
    return lines.filter((line) => line === "completed" || line.startsWith("end ")).length;
  }).pipe(Effect.provide(Layer.fresh(recording(written))));
