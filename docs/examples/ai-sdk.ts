/**
 * `streamText` of the AI SDK with a recovered model and guarded tools.
 */
import { createOpenAI } from "@ai-sdk/openai";
import { isStepCount, jsonSchema, streamText, tool } from "ai";
import { ManagedRuntime } from "effect";
import { createRecovery } from "effect-stream-recovery/ai-sdk";
import { FaultProvider } from "effect-stream-recovery/testing";

const call = [{ tool: "list_files", input: { folder: "docs" } }];
const answers = [
  { content: call, break: { kind: "end", at: "tool_arguments" } },
  { content: call },
  { content: [{ text: 2 }] },
] as const;
const server = ManagedRuntime.make(FaultProvider.layer({ script: { answers } }));
const { url } = await server.runPromise(FaultProvider);
const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: "not-a-key" }); // the real one: createOpenAI()

const list_files = tool({
  inputSchema: jsonSchema<{ readonly folder: string }>({ type: "object" }),
  execute: ({ folder }) => `${folder}/README.md`,
});

const recovery = createRecovery();
const result = streamText({
  model: recovery.recover(openai.chat("gpt-5")),
  tools: recovery.guardTools({ list_files }, { effects: { list_files: "read_only" } }),
  maxRetries: 0, // retries are made below, where it is known what was shown and what ran
  stopWhen: isStepCount(5),
  prompt: "Which files are here?",
});
for await (const text of result.textStream) process.stdout.write(text);
await recovery.close();
await server.dispose();
