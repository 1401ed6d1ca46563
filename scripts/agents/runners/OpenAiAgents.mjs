/**
 * Runs an agent of @openai/agents over Responses, in the form of its documentation.
 */
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import { z } from "zod";
import { apiKey, baseUrl, describe, model, prompt, shell } from "./Shell.mjs";

setTracingDisabled(true);
const agent = new Agent({
  name: "fault",
  model,
  tools: [
    tool({ name: "shell", description: describe, parameters: z.object({ command: z.string() }), execute: shell }),
  ],
});
const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey, baseURL: baseUrl }) });
const stream = await runner.run(agent, prompt, { stream: true });
for await (const text of stream.toTextStream()) process.stdout.write(text);
await stream.completed;
if (stream.error) throw stream.error;
