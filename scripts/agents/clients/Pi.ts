/**
 * Runs pi: `pi --print`, with the address of its provider in `models.json`.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, model } from "../Agent.ts";

const chat = {
  baseUrl: `${gatewayOrigin}/v1`,
  api: "openai-completions",
  apiKey: "$OPENAI_API_KEY",
  models: [{ id: model }],
};

/** Built-in providers with another address keep their models and the default model. pi has no built-in one for Chat Completions only. */
const providers = {
  "openai-chat": { gateway: chat },
  "openai-responses": { openai: { baseUrl: `${gatewayOrigin}/v1` } },
  "anthropic-messages": { anthropic: { baseUrl: gatewayOrigin } },
} as const;

const keys = {
  "openai-chat": "OPENAI_API_KEY",
  "openai-responses": "OPENAI_API_KEY",
  "anthropic-messages": "ANTHROPIC_API_KEY",
} as const;

const models = { "openai-chat": ["--model", `gateway/${model}`], "openai-responses": [], "anthropic-messages": [] };

const pi = (protocol: keyof typeof providers, name: string): Agent => ({
  name,
  packageName: "@earendil-works/pi-coding-agent",
  protocol,
  requestsMax: 4,
  shell: { tool: "bash", parameter: "command" },
  setup: `mkdir -p ~/.pi/agent && echo '${JSON.stringify({ providers: providers[protocol] })}' > ~/.pi/agent/models.json && pi`,
  program: "pi",
  command: (modules) => [process.execPath, join(modules, "@earendil-works/pi-coding-agent/dist/bundle/cli.js")],
  launch: (_place, prompt) => ({
    args: ["--print", "--offline", "--no-session", "--no-context-files", ...models[protocol], prompt],
    // The default model belongs to the provider that has a key.
    env: { [keys[protocol]]: apiKey, PI_OFFLINE: "1", PI_TELEMETRY: "0" },
    files: {},
  }),
  // The output is exactly the answer. The exit code reports errors.
  read: ({ stdout }) => ({ text: stdout, error: undefined }),
});

/** pi over Chat Completions. */
export const piChat = pi("openai-chat", "pi, chat");

/** pi over Responses. */
export const piResponses = pi("openai-responses", "pi, responses");

/** pi over Anthropic Messages. */
export const piAnthropic = pi("anthropic-messages", "pi, anthropic");
