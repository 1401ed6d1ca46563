/**
 * Runs GitHub's copilot: `copilot --prompt`, with a provider of the user's own and no account.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin } from "../Agent.ts";
import { platformOf } from "../Install.ts";

/** Variables of the user's own provider. */
const providers = {
  "openai-chat": `COPILOT_PROVIDER_TYPE=openai COPILOT_PROVIDER_WIRE_API=completions COPILOT_PROVIDER_BASE_URL=${gatewayOrigin}/v1`,
  "openai-responses": `COPILOT_PROVIDER_TYPE=openai COPILOT_PROVIDER_WIRE_API=responses COPILOT_PROVIDER_BASE_URL=${gatewayOrigin}/v1`,
  "anthropic-messages": `COPILOT_PROVIDER_TYPE=anthropic COPILOT_PROVIDER_BASE_URL=${gatewayOrigin}`,
} as const;

/** Models that its catalogue knows, so that it says nothing of limits that it has to guess. */
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
      // As a user has it: text stands on the screen as it comes.
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
  // What is printed is the answer, nothing else; an error has its exit code.
  read: ({ stdout }) => ({ text: stdout, error: undefined }),
});

/** copilot over Chat Completions. */
export const copilotChat = copilot("openai-chat", "copilot, chat");

/** copilot over Responses. */
export const copilotResponses = copilot("openai-responses", "copilot, responses");

/** copilot over Anthropic Messages. */
export const copilotAnthropic = copilot("anthropic-messages", "copilot, anthropic");
