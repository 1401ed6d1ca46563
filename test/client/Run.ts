/**
 * Runs a request of the client under test through StreamProcessor, as an application does.
 */
import { Effect, Random, References, Result, Stream } from "effect";
import type { ProviderClient, ProviderRequest } from "../../src/client/index.ts";
import type { Part } from "../../src/provider/Protocols.ts";
import type { AttemptContext, RunBase, TextOptions } from "../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import type { FaultProvider } from "../../src/testing/index.ts";
import { protocols } from "./Protocols.ts";

/** Without jitter every wait is as short as possible. */
const noJitter = { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => 0 };

type More = Partial<Omit<RunBase<Part, unknown, never>, "canContinue">> &
  TextOptions<Part> & {
    readonly canContinue?: boolean;
    readonly request?: (attempt: AttemptContext) => Partial<ProviderRequest<unknown>>;
  };

/** Plays a run in OpenAI's chat protocol and records its rules and its end. */
export const played = (
  client: ProviderClient["Service"],
  server: { readonly endpoint: FaultProvider["Service"]["endpoint"] },
  { canContinue, request, ...more }: More,
) =>
  Effect.gen(function* () {
    const rules: Array<string> = [];
    let completed = false;
    const processor = yield* StreamProcessor;
    const open = (attempt: AttemptContext) =>
      client.stream({
        protocol: protocols["openai-chat"],
        url: server.endpoint("openai-chat"),
        body: { stream: true },
        delivery: attempt.delivery,
        bytes: attempt.bytes,
        ...request?.(attempt),
      });
    const result = yield* processor
      .run<Part, unknown, never>({
        provider: { id: "openai", model: "m", reasoning: false },
        tools: [],
        attempt: open,
        ...(canContinue === true ? { canContinue: open } : {}),
        observe: (part) => part.observation,
        ...more,
      })
      .pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => {
            if (event._tag === "RetryScheduled") rules.push(event.rule);
            if (event._tag === "RunCompleted") completed = true;
          }),
        ),
        Effect.result,
      );
    return { rules, completed, error: Result.isFailure(result) ? result.failure : undefined };
  }).pipe(
    Effect.provideService(Random.Random, noJitter),
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.provide(StreamProcessor.layerDefault),
  );
