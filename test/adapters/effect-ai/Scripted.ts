/**
 * A language model of `effect/ai` that plays a script, and tools that count their runs.
 */
import { Effect, Layer, Random, References, Schema, Stream } from "effect";
import { AiError, LanguageModel, type Response, Tool, Toolkit } from "effect/ai";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { shortWaits } from "./Soon.ts";

export type Part = Response.StreamPartEncoded;

/** One answer: parts, then an end or an error. */
export interface Answer {
  readonly parts: ReadonlyArray<Part>;
  /** Asked at every turn of the event loop before the end. */
  readonly waitFor?: () => boolean;
  readonly error?: AiError.AiError;
}

const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)));

export const text = (...deltas: ReadonlyArray<string>): ReadonlyArray<Part> => [
  { type: "text-start", id: "t" },
  ...deltas.map((delta): Part => ({ type: "text-delta", id: "t", delta })),
  { type: "text-end", id: "t" },
];

export const call = (id: string, name: string, params: object, providerExecuted = false): ReadonlyArray<Part> => [
  { type: "tool-params-start", id, name, providerExecuted },
  { type: "tool-params-delta", id, delta: JSON.stringify(params) },
  { type: "tool-params-end", id },
  { type: "tool-call", id, name, params, providerExecuted },
];

export const finish = (reason: Response.FinishReason): Part => ({
  type: "finish",
  reason,
  usage: { inputTokens: { total: 1 }, outputTokens: { total: 2 } },
});

export const aiError = (reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module: "Scripted", method: "streamText", reason });

export const reset = aiError(
  new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "http://provider" }),
);

export const metadata: Part = { type: "response-metadata", id: "resp_1" };

/** A request to the scripted model. */
export interface Asked {
  readonly prompts: Array<LanguageModel.ProviderOptions>;
}

/** Plays one answer a request, streamed or whole; the last one repeats. */
export const scripted = (answers: ReadonlyArray<Answer>, asked: Asked = { prompts: [] }) => {
  const next = (options: LanguageModel.ProviderOptions): Answer => {
    asked.prompts.push(options);
    return answers[Math.min(asked.prompts.length, answers.length) - 1] ?? { parts: [] };
  };
  return Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      streamText: (options) =>
        Stream.suspend(() => {
          const { error, parts, waitFor = () => true } = next(options);
          const waited = Effect.repeat(turn, { until: waitFor });
          const told = Stream.concat(
            Stream.rechunk(Stream.fromIterable(parts), 1),
            Stream.drain(Stream.fromEffect(waited)),
          );
          return error === undefined ? told : Stream.concat(told, Stream.fail(error));
        }),
      generateText: (options) =>
        Effect.suspend(() => {
          const { error, parts, waitFor = () => true } = next(options);
          const waited = Effect.repeat(turn, { until: waitFor });
          // A script for generateText holds whole parts.
          return Effect.andThen(waited, error ?? Effect.succeed([...parts] as Array<Response.PartEncoded>));
        }),
    }),
  );
};

export const ReadFile = Tool.make("read_file", {
  parameters: Schema.Struct({ path: Schema.String }),
  success: Schema.String,
}).annotate(EffectAi.ToolEffect, "read_only");

export const Bash = Tool.make("bash", {
  parameters: Schema.Struct({ cmd: Schema.String }),
  success: Schema.String,
  failure: Schema.String,
}).annotate(EffectAi.ToolEffect, "mutating");

export const tools = Toolkit.make(ReadFile, Bash);

/** Handlers that write down every run; `bash` fails for the command `fail` and dies for `die`. */
export const handlers = (ran: Array<string>) =>
  tools.toLayer({
    read_file: ({ path }) =>
      Effect.sync(() => {
        ran.push(`read_file ${path}`);
        return `content of ${path}`;
      }),
    bash: ({ cmd }) =>
      Effect.suspend(() => {
        ran.push(`bash ${cmd}`);
        if (cmd === "die") return Effect.die(new Error("handler died"));
        return cmd === "fail" ? Effect.fail("no such command") : Effect.succeed(`did ${cmd}`);
      }),
  });

/** The layers of a program: a scripted model, recovered, with the tools. */
export const layers = (answers: ReadonlyArray<Answer>, ran: Array<string>, asked?: Asked, options?: EffectAi.Options) =>
  Layer.mergeAll(EffectAi.layer(options).pipe(Layer.provide(scripted(answers, asked))), handlers(ran)).pipe(
    Layer.provideMerge(StreamProcessor.layerDefault),
    Layer.provideMerge(Layer.succeed(Random.Random, shortWaits())),
    Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "None")),
  );
