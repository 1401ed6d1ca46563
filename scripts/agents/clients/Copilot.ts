/**
 * Runs GitHub's copilot: `copilot --prompt`, with a user-defined provider and no account.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin } from "../Agent.ts";
import { platformOf } from "../Install.ts";

/** Environment variables of the user-defined provider. */
const providers = {
  "openai-chat": `COPILOT_PROVIDER_TYPE=openai COPILOT_PROVIDER_WIRE_API=completions COPILOT_PROVIDER_BASE_URL=${gatewayOrigin}/v1`,
  "openai-responses": `COPILOT_PROVIDER_TYPE=openai COPILOT_PROVIDER_WIRE_API=responses COPILOT_PROVIDER_BASE_URL=${gatewayOrigin}/v1`,
  "anthropic-messages": `COPILOT_PROVIDER_TYPE=anthropic COPILOT_PROVIDER_BASE_URL=${gatewayOrigin}`,
} as const;

/** Models that its catalogue knows, so that it prints no warnings about guessed limits. */
const models = { "openai-chat": "gpt-4.1", "openai-responses": "gpt-5.4", "anthropic-messages": "claude-sonnet-4.5" };

const copilot = (protocol: keyof typeof providers, name: string): Agent => ({
  name,
  packageName: "@github/copilot",
  protocol,
  requestsMax: 4,
  shell: { tool: "bash", parameter: "command", more: { description: "leave a mark" } },
  setup: `${providers[protocol]} copilot`,
  program: "copilot",
  command: (modules) => [join(modules, `@github/copilot-${platformOf()}`, "copilot")],
  launch: ({ home }, prompt) => ({
    args: [
      ...["--allow-all-tools", "--no-auto-update", "--no-color", "--disable-builtin-mcps"],
      // Streams the text to the screen, as a user sees it.
      ...["--silent", "--stream", "on", "--prompt", prompt],
    ],
    env: {
      COPILOT_HOME: join(home, ".copilot"),
      COPILOT_MODEL: models[protocol],
      COPILOT_OFFLINE: "true",
      COPILOT_PROVIDER_API_KEY: apiKey,
    },
    files: {},
  }),
  // The output is exactly the answer. The exit code reports errors.
  read: ({ stdout }) => ({ text: stdout, error: undefined }),
});

/** copilot over Chat Completions. */
export const copilotChat = copilot("openai-chat", "copilot, chat");

/** copilot over Responses. */
export const copilotResponses = copilot("openai-responses", "copilot, responses");

/** copilot over Anthropic Messages. */
export const copilotAnthropic = copilot("anthropic-messages", "copilot, anthropic");
