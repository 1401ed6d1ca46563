/**
 * A user's signal that the program gave to its own SDK, fetch or model below an adapter, and to the call above it: what breaks
 * by it is the user's cancel, also where the SDK sees it first, and is never asked for again (law L10).
 */
import { assert, describe, it } from "@effect/vitest";
import { Cause, Effect, Exit, Layer, Option, References, Stream } from "effect";
import { AiError, LanguageModel } from "effect/ai";
import { CallInterrupted, createRecovery } from "../../src/adapters/ai-sdk/AiSdk.ts";
import { EffectAi } from "../../src/adapters/effect-ai/index.ts";
import { recoveringFetch } from "../../src/adapters/fetch/FetchRecovery.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";

const quiet = Layer.provideMerge(StreamProcessor.layerDefault, Layer.succeed(References.MinimumLogLevel, "None"));

/** Rejects when the signal aborts, in the words of `fetch`. */
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const heard = () => reject(new DOMException("This operation was aborted", "AbortError"));
    if (signal.aborted) return heard();
    signal.addEventListener("abort", heard, { once: true });
  });

const role = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] })}\n\n`;

/** A fetch of the program that gives its own signal to every request. */
const fetching = (signal: AbortSignal, answers: boolean) => {
  let requests = 0;
  const fetch = async () => {
    requests += 1;
    if (!answers) return await aborted(signal);
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(role));
        aborted(signal).catch((error) => controller.error(error));
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  return { fetch, requests: () => requests };
};

const asked = (signal: AbortSignal) => ({
  method: "POST",
  body: JSON.stringify({ model: "m", stream: true, messages: [] }),
  signal,
});

const failureOf = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  );

const soon = () => new Promise((done) => setImmediate(done));

/** A program that knows nothing of Effect aborts here. */
const aborting = () => new AbortController();

describe("a signal that the program gave to its own fetch", () => {
  for (const [moment, answers] of [
    ["before the head", false],
    ["in the body", true],
  ] as const)
    it(`is its user's: ${moment}`, async () => {
      const stop = aborting();
      const own = fetching(stop.signal, answers);
      const fetch = recoveringFetch({ fetch: own.fetch, layer: quiet });
      const failed = failureOf(
        fetch("https://provider.test/v1/chat/completions", asked(stop.signal)).then((it) => it.text()),
      );
      while (own.requests() === 0) await soon();
      await soon();
      stop.abort();
      assert.strictEqual(String(await failed), String(stop.signal.reason));
      await fetch.close();
      assert.strictEqual(own.requests(), 1);
    });
});

describe("a signal that the program gave to its own AI SDK model", () => {
  for (const way of ["doStream", "doGenerate"] as const)
    it(`is its user's: ${way}`, async () => {
      const stop = aborting();
      let requests = 0;
      const answer = async () => {
        requests += 1;
        return await aborted(stop.signal);
      };
      const recovery = createRecovery({ layer: quiet });
      const model = recovery.recover({
        specificationVersion: "v4",
        provider: "own",
        modelId: "m",
        supportedUrls: {},
        doStream: answer,
        doGenerate: answer,
      });
      const call = { prompt: [], abortSignal: stop.signal };
      const failed = failureOf(
        way === "doGenerate"
          ? model.doGenerate(call)
          : model.doStream(call).then(({ stream }) => stream.getReader().read()),
      );
      while (requests === 0) await soon();
      stop.abort();
      const error = await failed;
      assert.isTrue(
        error === stop.signal.reason || (error instanceof CallInterrupted && error.rule === "user_cancelled"),
      );
      await recovery.close();
      assert.strictEqual(requests, 1);
    });
});

describe("a signal that the program gave to its own model of effect/ai", () => {
  it.live("is its user's", () => {
    const stop = aborting();
    let requests = 0;
    const broken = Effect.tryPromise({
      try: () => {
        requests += 1;
        return aborted(stop.signal);
      },
      catch: (cause) =>
        AiError.make({
          module: "Own",
          method: "streamText",
          reason: new AiError.NetworkError({
            reason: "TransportError",
            method: "POST",
            url: "https://own.test",
            cause,
          }),
        }),
    });
    const own = LanguageModel.make({ streamText: () => Stream.fromEffect(broken), generateText: () => broken });
    const layer = EffectAi.layer().pipe(
      Layer.provide(Layer.effect(LanguageModel.LanguageModel, own)),
      Layer.provideMerge(quiet),
    );
    return Effect.gen(function* () {
      const [exit] = yield* LanguageModel.streamText({ prompt: "x" }).pipe(
        Stream.provideService(EffectAi.StopSignal, stop.signal),
        Stream.runDrain,
        Effect.exit,
        Effect.zip(
          Effect.promise(async () => {
            while (requests === 0) await soon();
            stop.abort();
          }),
          { concurrent: true },
        ),
      );
      const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined;
      assert.strictEqual(AiError.isAiError(error) && EffectAi.interruptionOf(error)?.rule, "user_cancelled");
      assert.strictEqual(requests, 1);
    }).pipe(Effect.provide(layer));
  });
});
