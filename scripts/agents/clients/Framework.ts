/**
 * Runs agents that are written with a framework: small programs, each as the framework's documentation shows it.
 */
import { fileURLToPath } from "node:url";
import { type Agent, apiKey, model } from "../Agent.ts";

const framework = (name: string, packageName: string, protocol: Agent["protocol"], program: string): Agent => ({
  name,
  packageName,
  protocol,
  shell: { tool: "shell", parameter: "command" },
  launch: ({ baseUrl }, prompt) => ({
    command: process.execPath,
    args: ["--no-warnings", fileURLToPath(new URL(`../runners/${program}.mjs`, import.meta.url)), prompt],
    env: {
      FAULT_API_KEY: apiKey,
      FAULT_BASE_URL: baseUrl,
      FAULT_MODEL: model,
      // LangChain and Mastra report to their makers where nothing tells them not to.
      LANGSMITH_TRACING: "false",
      MASTRA_TELEMETRY_DISABLED: "1",
    },
    files: {},
  }),
  // What is printed is the text, nothing else; an error has its exit code.
  read: ({ stdout }) => ({ text: stdout, error: undefined }),
});

/** @openai/agents over Responses. */
export const openAiAgents = framework("@openai/agents", "@openai/agents", "openai-responses", "OpenAiAgents");

/** LangChain's createAgent over Chat Completions. */
export const langGraph = framework("LangGraph", "langchain", "openai-chat", "LangGraph");

/** Mastra over Chat Completions. */
export const mastra = framework("Mastra", "@mastra/core", "openai-chat", "Mastra");

/** The AI SDK's ToolLoopAgent over Chat Completions. */
export const toolLoopAgent = framework("ToolLoopAgent", "ai", "openai-chat", "AiSdk");
