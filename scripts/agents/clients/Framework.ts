/**
 * Runs agents written with a framework: small programs in the form of the framework's documentation.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, model } from "../Agent.ts";

const framework = (name: string, packageName: string, protocol: Agent["protocol"], program: string): Agent => ({
  name,
  packageName,
  protocol,
  shell: { tool: "shell", parameter: "command" },
  setup: `OPENAI_BASE_URL=${gatewayOrigin}/v1 node agent.mjs`,
  program: "node",
  command: () => [process.execPath],
  launch: ({ work }, prompt) => ({
    args: [prompt],
    env: {
      OPENAI_API_KEY: apiKey,
      FAULT_MODEL: model,
      NODE_NO_WARNINGS: "1",
      // LangChain and Mastra send telemetry by default.
      LANGSMITH_TRACING: "false",
      MASTRA_TELEMETRY_DISABLED: "1",
    },
    files: { [join(work, "agent.mjs")]: `import "${new URL(`../runners/${program}.mjs`, import.meta.url)}";` },
  }),
  // The output is exactly the text. The exit code reports errors.
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
