/**
 * Runs Mastra's Agent in the form of its documentation.
 */
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { apiKey, baseUrl, describe, model, prompt, shell } from "./Shell.mjs";

const agent = new Agent({
  id: "fault",
  name: "fault",
  instructions: "Do the task.",
  model: { id: `fault/${model}`, url: baseUrl, apiKey },
  tools: {
    shell: createTool({
      id: "shell",
      description: describe,
      inputSchema: z.object({ command: z.string() }),
      execute: shell,
    }),
  },
});
const stream = await agent.stream(prompt);
let failure;
for await (const part of stream.fullStream) {
  if (part.type === "text-delta") process.stdout.write(part.payload.text);
  if (part.type === "error") failure = part.payload.error;
}
if (failure !== undefined) throw failure;
