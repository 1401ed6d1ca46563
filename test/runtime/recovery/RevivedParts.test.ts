/** Nothing twice across processes: parts handed over by an attempt of an earlier process are withdrawn when another one replaces it. */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Layer } from "effect";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const layer = StreamProcessor.layer.pipe(
  Layer.provideMerge(Layer.merge(S.recorderThat({ durable: true }), UserDecisions.layerHeadless())),
);
const search = { name: "web_search", executor: "provider", effect: "read_only" } as const;
const head = [S.start, S.providerCall("web_search"), S.reasoning("hm")];

describe("Parts of an attempt of an earlier process", () => {
  for (const [shown, script] of [
    ["a message's start", head.slice(0, 1)],
    ["a provider's own search", head.slice(0, 2)],
    ["reasoning", head],
  ] as const) {
    it.live(`that showed ${shown} are withdrawn once, even over several processes`, () =>
      Effect.gen(function* () {
        const processor = yield* StreamProcessor;
        const left = S.scripted([...script, S.never], [...script, S.never], [...script, S.text("all"), S.done]);
        const budget = { max_after_shown: 9 };
        const options = S.options(left, { tools: [search], transcript: "t", budget });
        let transcript: Array<{ readonly attempt: number; readonly ordinal: number; readonly name: string }> = [];
        /** Collects the transcript that a caller would keep, and leaves after some parts. */
        const play = (
          stream: ReturnType<typeof processor.run<S.ScriptedPart, S.ProviderBroke, never>>,
          parts: number,
        ) =>
          Effect.gen(function* () {
            const all = yield* Deferred.make<void>();
            let count = 0;
            const fiber = yield* Effect.forkChild(
              S.watch(stream, (event) => {
                if (event._tag === "AttemptDiscarded")
                  transcript = transcript.filter(
                    (it) => it.attempt !== event.attempt || it.ordinal <= event.keep_through,
                  );
                if (event._tag !== "Part") return Effect.void;
                transcript.push({ attempt: event.attempt, ordinal: event.ordinal, name: event.part.name });
                return ++count === parts ? Deferred.succeed(all, undefined) : Effect.void;
              }),
            );
            yield* Effect.raceFirst(Deferred.await(all), Fiber.await(fiber));
            return fiber;
          });
        const request = { request: options, transcript: "t" };
        yield* Fiber.interrupt(yield* play(processor.run({ ...options, runId: "r" }), script.length));
        yield* Fiber.interrupt(yield* play(processor.takeUp("r", request), script.length));
        yield* Fiber.join(yield* play(processor.takeUp("r", request), Number.POSITIVE_INFINITY));
        assert.deepStrictEqual(
          transcript.map(({ name }) => name),
          [...script, S.text("all"), S.done].map((step) => ("part" in step ? step.part.name : "")),
        );
        const withdrawn = left.attempts.map(({ discarded }) => discarded.map(({ attempt }) => attempt));
        assert.deepStrictEqual(withdrawn, [[], [1], [1, 2]]);
      }).pipe(Effect.provide(layer)),
    );
  }
});
