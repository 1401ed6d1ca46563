/**
 * Runs the AI SDK's ToolLoopAgent in the form of its documentation.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ToolLoopAgent, tool } from "ai";
import { z } from "zod";
import { apiKey, baseUrl, describe, model, prompt, shell } from "./Shell.mjs";

const provider = createOpenAICompatible({ name: "fault", apiKey, baseURL: baseUrl });
const agent = new ToolLoopAgent({
  model: provider(model),
  tools: {
    shell: tool({ description: describe, inputSchema: z.object({ command: z.string() }), execute: shell }),
  },
});
const result = await agent.stream({ prompt });
let failure;
for await (const part of result.stream) {
  if (part.type === "text-delta") process.stdout.write(part.text);
  if (part.type === "error") failure = part.error;
}
if (failure !== undefined) throw failure;
