/**
 * Plays runs over a path that goes down and comes back: connections and probes fail while the network is down.
 */
import { Clock, Effect, Fiber, Layer, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { Choice } from "../../../src/domain/Decision.ts";
import type { Failure } from "../../../src/domain/Failure.ts";
import { Paths } from "../../../src/paths/Paths.ts";
import type { Question } from "../../../src/recorder/Question.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { AttemptContext, RunOptions } from "../../../src/runtime/contract/RunOptions.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { attached, Network } from "../../paths/Lab.ts";
import * as S from "../Scripted.ts";

export const path = "https://model";

export const refused: Failure = { kind: "transport", operation: "connect", code: "ECONNREFUSED" };

export type Options = S.More;

/** A path that was reached before, and the provider behind it. */
export class Outage {
  readonly network = new Network();
  /** The times at which requests reached the provider, in milliseconds. */
  readonly sent: Array<number> = [];
  /** Failed connections. */
  unconnected = 0;
  /** The time at which the path came back. */
  mendedAt = Number.POSITIVE_INFINITY;

  /** Takes the network down for a time. */
  away(ms: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      this.network.fail();
      yield* Effect.forkDetach(
        Effect.delay(
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            Effect.sync(() => {
              this.mendedAt = now;
              this.network.mend();
            }),
          ),
          ms,
        ),
      );
    });
  }

  /** An attempt: it connects if the network is up, and then plays its script. */
  attempts(...scripts: ReadonlyArray<ReadonlyArray<S.Step>>) {
    let answered = 0;
    return (context: AttemptContext): Stream.Stream<S.ScriptedPart, S.ProviderBroke> => {
      context.delivery("not_sent");
      return S.flat(
        Effect.gen({ self: this }, function* () {
          if (!this.network.isWell) {
            this.unconnected += 1;
            return Stream.fail(new S.ProviderBroke(refused));
          }
          this.sent.push(yield* Clock.currentTimeMillis);
          answered += 1;
          context.delivery("ambiguous");
          return S.scripted(scripts[Math.min(answered, scripts.length) - 1] ?? []).attempt({ ...context, attempt: 1 });
        }),
      );
    };
  }

  options(scripts: ReadonlyArray<ReadonlyArray<S.Step>>, more: Options = {}) {
    return S.options(
      { attempt: this.attempts(...scripts) },
      { runId: "r", path: { id: path, way: this.network }, ...more },
    );
  }

  /** Marks the path as reached before the first run. */
  readonly reached: Effect.Effect<Paths["Service"], never, Paths> = Effect.suspend(() => attached(this.network, path));
}

/** Answers questions after a time, and collects them. */
export const answering = (
  asked: Array<Question>,
  choice: (question: Question) => Choice,
  afterMs: (question: Question) => number = () => 0,
) =>
  Layer.succeed(UserDecisions, {
    ask: (question) =>
      Effect.suspend(() => {
        asked.push(question);
        return Effect.delay(Effect.succeed(choice(question)), afterMs(question));
      }),
  });

/** A processor with shared paths. */
export const processor = (decisions: Layer.Layer<UserDecisions> = UserDecisions.layerHeadless()) =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(Layer.merge(RunRecorder.layerMemory(), decisions)),
    Layer.provideMerge(Paths.layer),
  );

/** Runs everything that needs no time. */
export const settle = Effect.repeat(TestClock.adjust(0), { times: 9 });

/** Plays a run for some time, a second at a time. */
export const play = (
  options: RunOptions<S.ScriptedPart, S.ProviderBroke, never>,
  ms: number,
  onEvent?: Parameters<typeof S.watch>[1],
) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(S.watch((yield* StreamProcessor).run(options), onEvent));
    yield* settle;
    for (let at = 0; at < ms && fiber.pollUnsafe() === undefined; at += 1_000) yield* TestClock.adjust(1_000);
    const seen = yield* Fiber.join(fiber);
    return { ...seen, record: yield* S.recordOf(options.runId ?? "r") };
  });
