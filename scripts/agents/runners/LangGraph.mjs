/**
 * Runs LangChain's createAgent, a LangGraph graph, in the form of its documentation.
 */
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { z } from "zod";
import { apiKey, baseUrl, describe, model, prompt, shell } from "./Shell.mjs";

const agent = createAgent({
  model: new ChatOpenAI({ model, apiKey, streaming: true, configuration: { baseURL: baseUrl } }),
  tools: [tool(shell, { name: "shell", description: describe, schema: z.object({ command: z.string() }) })],
});
const stream = await agent.stream({ messages: [{ role: "user", content: prompt }] }, { streamMode: "messages" });
for await (const [chunk] of stream) {
  if (chunk.getType() === "ai") process.stdout.write(chunk.text);
}
