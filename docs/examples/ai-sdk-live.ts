/**
 * The AI SDK with text that is shown at once, and withdrawn if its response breaks and the user wants it again.
 */
import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";
import { Effect, Layer, ManagedRuntime } from "effect";
import { RunRecorder, StreamProcessor, UserDecisions } from "effect-stream-recovery";
import { createRecovery, discardKind } from "effect-stream-recovery/ai-sdk";
import { FaultProvider } from "effect-stream-recovery/testing";

const answers = [
  { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } },
  { content: [{ text: 3 }] },
] as const;
const server = ManagedRuntime.make(FaultProvider.layer({ script: { answers } }));
const { url } = await server.runPromise(FaultProvider);
const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: "not-a-key" }); // the real one: createOpenAI()

// Without this layer nobody is asked, and a response that breaks after shown text ends with an error.
const asking = UserDecisions.layerAsk(({ default_choice, may_repeat }) =>
  Effect.succeed(may_repeat.length === 0 ? "retry" : default_choice),
);
const layer = StreamProcessor.layer.pipe(Layer.provideMerge(asking), Layer.provideMerge(RunRecorder.layerMemory()));

const recovery = createRecovery({ layer });
// `live` returns options of `streamText`: the model, and the transform that withdraws parts.
const result = streamText({ ...recovery.live(openai.chat("gpt-5")), maxRetries: 0, prompt: "Say hello" });
for await (const part of result.stream) {
  if (part.type === "text-delta") process.stdout.write(part.text);
  if (part.type === "custom" && part.kind === discardKind) process.stdout.write("\n[withdrawn]\n"); // all of this step
  if (part.type === "error") throw part.error; // `CallInterrupted`: the response could not be completed
}
await recovery.close();
await server.dispose();
