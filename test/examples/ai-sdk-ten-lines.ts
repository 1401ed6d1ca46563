/**
 * Ten lines to embed it in a program of the AI SDK. The test runs them against a provider that breaks.
 */
import { openai } from "@ai-sdk/openai";
import { isStepCount, jsonSchema, streamText, tool } from "ai";
import { createRecovery } from "effect-stream-recovery/ai-sdk";

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
