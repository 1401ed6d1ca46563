/**
 * Measures the time from a break on the wire to the next attempt's request, on this machine's real sockets.
 */
import { Deferred, Effect, Layer, Stream } from "effect";
import { ProviderClient } from "../../src/client/index.ts";
import { RecoveryPolicy, StreamProcessor } from "../../src/index.ts";
import * as AnthropicMessages from "../../src/provider/anthropic/Decode.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";
import { quantile } from "./Median.ts";
import { withoutLog } from "./Runs.ts";

/** The size of a measurement in one process. */
export interface NextRequestSize {
  readonly runs: number;
}

/** Milliseconds from the break to the arrival of the next request at the server. */
export interface NextRequest {
  readonly median: number;
  readonly p99: number;
  readonly max: number;
}

/** Number of runs that warm up code, sockets and the server. */
const warmUpRuns = 30;

/** The default policy without its waits. */
const atOnce = {
  ...RecoveryPolicy.default,
  name: "default+no-delay",
  decide: (input: RecoveryPolicy.DecisionInput) => ({ ...RecoveryPolicy.decide(input), delay_ms: 0 }),
  // Cast, because `RecoveryPolicy.make` accepts only tighter policies and this one drops the waits.
} as RecoveryPolicy.RecoveryPolicy;

/** Breaks every run once, alternately with a reset and a clean end. Its replay is whole. */
export const measure = async ({ runs }: NextRequestSize): Promise<NextRequest> => {
  const all = warmUpRuns + runs;
  const script: FaultScriptInput = {
    answers: Array.from({ length: all }, (_, run) => [
      {
        content: [{ text: 5 }],
        break: { kind: run % 2 === 0 ? ("rst" as const) : ("end" as const), at: "event" as const, n: 2 },
      },
      { content: [{ text: 5 }] },
    ]).flat(),
  };
  let brokeAt = 0;
  const program = Effect.gen(function* () {
    const server = yield* FaultProvider.make({
      script,
      beforeBreak: () =>
        Effect.sync(() => {
          brokeAt = performance.now();
        }),
    });
    const gaps: Array<number> = [];
    for (let run = 0; run < all; run += 1) gaps.push(yield* gapOf(server, run, () => brokeAt));
    return gaps.slice(warmUpRuns);
  });
  const gaps = await Effect.runPromise(
    withoutLog(Effect.scoped(program)).pipe(
      Effect.provide(Layer.merge(StreamProcessor.layerDefault, ProviderClient.layer())),
    ),
  );
  return { median: quantile(gaps, 0.5), p99: quantile(gaps, 0.99), max: Math.max(...gaps) };
};

/** Plays one run with one break, and returns the server's time from the break to the second request. */
const gapOf = Effect.fnUntraced(function* (server: FaultProvider["Service"], run: number, brokeAt: () => number) {
  const client = yield* ProviderClient;
  const processor = yield* StreamProcessor;
  const arrived = Deferred.makeUnsafe<number>();
  yield* Effect.forkScoped(
    server
      .until((rows) => ((rows.at(-1)?.number ?? 0) >= 2 * run + 2 ? performance.now() : undefined))
      .pipe(Effect.flatMap((at) => Deferred.succeed(arrived, at))),
    { startImmediately: true },
  );
  yield* Stream.runDrain(
    processor.run({
      // A separate provider for each run, so that the retry throttle never applies.
      provider: { id: `bench${run}`, model: "bench", reasoning: false },
      tools: [],
      policy: atOnce,
      attempt: (attempt) =>
        client.stream({
          protocol: AnthropicMessages.protocol,
          url: server.endpoint("anthropic-messages"),
          body: { stream: true },
          delivery: attempt.delivery,
          bytes: attempt.bytes,
        }),
      observe: (part) => part.observation,
    }),
  );
  return (yield* Deferred.await(arrived)) - brokeAt();
});
