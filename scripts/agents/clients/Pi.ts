/**
 * Runs pi: `pi --print`, with a provider of its own in `models.json`.
 */
import { join } from "node:path";
import { type Agent, apiKey, model } from "../Agent.ts";

const apis = {
  "openai-chat": "openai-completions",
  "openai-responses": "openai-responses",
  "anthropic-messages": "anthropic-messages",
} as const;

const pi = (protocol: keyof typeof apis, name: string): Agent => ({
  name,
  packageName: "@mariozechner/pi-coding-agent",
  protocol,
  requestsMax: 4,
  shell: { tool: "bash", parameter: "command" },
  launch: ({ baseUrl, home, modules }, prompt) => {
    const folder = join(home, ".pi", "agent");
    const provider = { baseUrl, api: apis[protocol], apiKey, models: [{ id: model }] };
    return {
      command: process.execPath,
      args: [
        join(modules, "@mariozechner/pi-coding-agent/dist/cli.js"),
        ...["--print", "--offline", "--no-session", "--no-context-files"],
        ...["--provider", "fault", "--model", model, prompt],
      ],
      env: { PI_CODING_AGENT_DIR: folder, PI_OFFLINE: "1", PI_TELEMETRY: "0" },
      files: { [join(folder, "models.json")]: JSON.stringify({ providers: { fault: provider } }, null, 2) },
    };
  },
  // What is printed is the answer, nothing else; an error has its exit code.
  read: ({ stdout }) => ({ text: stdout, error: undefined }),
});

/** pi over Chat Completions. */
export const piChat = pi("openai-chat", "pi, chat");

/** pi over Responses. */
export const piResponses = pi("openai-responses", "pi, responses");

/** pi over Anthropic Messages. */
export const piAnthropic = pi("anthropic-messages", "pi, anthropic");
