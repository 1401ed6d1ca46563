/**
 * Plays one turn of `streamText` with a tool against a fault server, and judges what its user saw.
 */
import { isStepCount, jsonSchema, type ModelMessage, streamText, tool } from "ai";
import { Effect, Layer, Logger } from "effect";
import { createRecovery, type RecoverOptions } from "../../../src/adapters/ai-sdk/AiSdk.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import type { RequestLog } from "../../../src/testing/faults/FaultLog.ts";
import { FaultJudge, FaultProvider } from "../../../src/testing/index.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { type ProviderName, providers } from "./Providers.ts";

export interface Turn {
  readonly provider: ProviderName;
  readonly script: FaultScriptInput;
  /** `false` plays it without us, with the retries that the SDK has by default. */
  readonly withUs?: boolean;
  readonly options?: RecoverOptions;
}

/** The result of a turn for its user. */
export interface Played {
  readonly transcript: string;
  readonly reasoning: string;
  readonly tools: ReadonlyArray<unknown>;
  readonly completed: boolean;
  /** The error of the stream. */
  readonly error: unknown;
  /** The value or the rejection of `result.text`. */
  readonly text: { readonly value: string } | { readonly error: unknown };
  /** Calls in the response messages that have no result there. */
  readonly dangling: ReadonlyArray<string>;
  readonly log: ReadonlyArray<RequestLog>;
  readonly verdict: ReturnType<typeof FaultJudge.judge>;
}

/** The default services without a logger: broken streams are what is played here. */
export const quiet = Layer.merge(StreamProcessor.layerDefault, Logger.layer([]));

const schema = jsonSchema<Record<string, unknown>>({ type: "object" });

/** Plays a turn with a new server. */
export const play = (turn: Turn) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: turn.script });
      const seen = yield* Effect.promise(() => ask(turn, server.url));
      const log = yield* server.log;
      const { completed, tools, transcript } = seen;
      // `@ai-sdk/openai` reads no reasoning of a chat completion.
      const reasoning = turn.provider === "openai chat" ? {} : { reasoning: seen.reasoning };
      return {
        ...seen,
        log,
        verdict: FaultJudge.judge({ transcript, ...reasoning, tools, completed, log }),
      } satisfies Played;
    }),
  );

const ask = async ({ options, provider, withUs }: Turn, url: string): Promise<Omit<Played, "log" | "verdict">> => {
  const recovery = createRecovery({ layer: quiet });
  const tools: Array<unknown> = [];
  const bash = tool({
    description: "runs a command",
    inputSchema: schema,
    execute: async (input) => {
      tools.push(input);
      return "ran";
    },
  });
  const plain = providers[provider](url);
  const recovered = withUs !== false;
  const result = streamText({
    model: recovered ? recovery.recover(plain, options) : plain,
    tools: recovered ? recovery.guardTools({ bash }, { effects: { bash: "mutating" } }) : { bash },
    prompt: "hello",
    maxOutputTokens: 1_000,
    stopWhen: isStepCount(3),
    onError: () => undefined,
  });
  let [transcript, reasoning] = ["", ""];
  let error: unknown;
  try {
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") transcript += part.text;
      if (part.type === "reasoning-delta") reasoning += part.text;
      if (part.type === "error") error = part.error;
    }
  } catch (thrown) {
    error = thrown;
  }
  const text = await result.text.then(
    (value) => ({ value }),
    (rejected: unknown) => ({ error: rejected }),
  );
  const completed = "value" in text;
  const messages = completed ? (await result.response).messages : [];
  await recovery.close();
  return { transcript, reasoning, tools, completed, error, text, dangling: danglingIn(messages) };
};

const danglingIn = (messages: ReadonlyArray<ModelMessage>): ReadonlyArray<string> => {
  const parts = messages.flatMap((message) => {
    if (message.role !== "assistant" && message.role !== "tool") return [];
    return typeof message.content === "string" ? [] : [...message.content];
  });
  const settled = new Set(parts.flatMap((part) => (part.type === "tool-result" ? [part.toolCallId] : [])));
  return parts.flatMap((part) => (part.type === "tool-call" && !settled.has(part.toolCallId) ? [part.toolCallId] : []));
};
