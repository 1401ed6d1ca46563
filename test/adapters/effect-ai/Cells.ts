/**
 * Plays one cell of the matrix: a chat with counting tools, on a real socket that breaks.
 */
import { Effect, Layer, Random, Redacted, Ref, References, Schema, Stream } from "effect";
import { AiError, Chat, type Prompt, Tool, Toolkit } from "effect/ai";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import { ProviderModel } from "../../../src/adapters/provider-model/index.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { shortWaits } from "./Soon.ts";

/** Arguments as FaultProvider writes them: their `end` is there only where nothing was cut. */
const Arguments = Schema.Struct({ serial: Schema.String, cmd: Schema.optionalKey(Schema.String), end: Schema.String });

export const Bash = Tool.make("bash", { parameters: Arguments, success: Schema.String }).annotate(
  EffectAi.ToolEffect,
  "mutating",
);
export const Read = Tool.make("read_file", { parameters: Arguments, success: Schema.String }).annotate(
  Tool.Readonly,
  true,
);
export const tools = Toolkit.make(Bash, Read);

/** The result of a cell. */
export interface Played {
  /** Everything that the caller saw, in order. */
  readonly text: string;
  /** Parts of reasoning that the caller saw. */
  readonly reasoned: number;
  readonly finished: boolean;
  readonly error: unknown;
  /** Why the run gave up, where one did. */
  readonly rule: string | undefined;
  /** Serials of the calls that ran. */
  readonly ran: ReadonlyArray<string>;
  readonly cut: number;
  readonly prompt: Prompt.Prompt;
  readonly requests: number;
  readonly sentText: ReadonlyArray<string>;
}

/** A protocol in which prompts of `effect/ai` can be written. */
export type Written = ProviderModel.Options["protocol"];

export const writtenIds: ReadonlyArray<Written> = [
  ...(["anthropic-messages", "openai-chat", "openai-responses", "google-gemini"] as const),
  ...(["bedrock-converse", "bedrock-invoke"] as const),
];

/** A chat with one server that continues until the model calls no more tools. */
export const play = (protocol: Written, script: FaultScriptInput, options: EffectAi.Options = {}) =>
  Effect.gen(function* () {
    const server = yield* FaultProvider.make({ script });
    const ran: Array<string> = [];
    let cut = 0;
    const run = ({ end, serial }: typeof Arguments.Type) =>
      Effect.sync(() => {
        ran.push(serial);
        if (end !== `${serial}·`) cut += 1;
        return `ran ${serial}`;
      });
    const model = ProviderModel.layer({
      protocol,
      model: "fault-model",
      url: server.endpoint(protocol),
      apiKey: Redacted.make("not-a-key"),
    });
    const layers = Layer.merge(
      EffectAi.layer({ provider: { id: protocol, reasoning: false }, ...options }).pipe(Layer.provide(model)),
      tools.toLayer({ bash: run, read_file: run }),
    ).pipe(
      Layer.provideMerge(StreamProcessor.layerDefault),
      Layer.provideMerge(Layer.succeed(Random.Random, shortWaits())),
      Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "None")),
    );
    return yield* Effect.gen(function* () {
      const chat = yield* Chat.empty;
      const toolkit = yield* tools;
      let text = "";
      let error: unknown;
      let reasoned = 0;
      let finished = false;
      for (let step = 0, prompt = ["go"]; step < 4 && !finished && error === undefined; step += 1, prompt = []) {
        let called = false;
        const input = prompt.map((content) => ({ role: "user" as const, content }));
        const result = yield* chat.streamText({ prompt: input, toolkit }).pipe(
          Stream.runForEach((part) =>
            Effect.sync(() => {
              if (part.type === "text-delta") text += part.delta;
              if (part.type.startsWith("reasoning")) reasoned += 1;
              if (part.type === "tool-call") called = true;
              if (part.type === "finish") finished = !called;
            }),
          ),
          Effect.result,
        );
        if (result._tag === "Failure") error = result.failure;
      }
      const rows = yield* server.log;
      return {
        text,
        reasoned,
        finished,
        error,
        rule: AiError.isAiError(error) ? EffectAi.interruptionOf(error)?.rule : undefined,
        ran,
        cut,
        prompt: yield* Ref.get(chat.history),
        requests: rows.length,
        sentText: rows.flatMap((row) => row.text),
      } satisfies Played;
    }).pipe(Effect.provide(layers));
  }).pipe(Effect.scoped);

/** The faults of a history: calls without a result, results without a call, duplicates. */
export const wrongs = (prompt: Prompt.Prompt): ReadonlyArray<string> => {
  const calls: Array<string> = [];
  const results: Array<string> = [];
  const texts: Array<string> = [];
  for (const message of prompt.content) {
    if (message.role === "system") continue;
    for (const part of message.content) {
      if (part.type === "tool-call") calls.push(part.id);
      if (part.type === "tool-result") results.push(part.id);
      if (part.type === "text" && message.role === "assistant")
        texts.push(...[...part.text.matchAll(/r\d+\.\d+·/g)].map(([serial]) => serial));
    }
  }
  const twice = (all: ReadonlyArray<string>) => all.filter((it, at) => all.indexOf(it) !== at);
  return [
    ...calls.filter((id) => !results.includes(id)).map((id) => `call ${id} has no result`),
    ...results.filter((id) => !calls.includes(id)).map((id) => `result ${id} has no call`),
    ...[...twice(calls), ...twice(results), ...twice(texts)].map((it) => `${it} stands twice`),
  ];
};
