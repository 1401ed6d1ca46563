/**
 * Runs opencode: `opencode run`, with providers of its own in `opencode.json`.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Agent, apiKey, asideScript, gatewayOrigin, isRecord, jsonLines, model } from "../Agent.ts";

/** The package of a protocol's provider, which opencode brings. */
const packages = {
  "openai-chat": "@ai-sdk/openai-compatible",
  "openai-responses": "@ai-sdk/openai",
  "anthropic-messages": "@ai-sdk/anthropic",
} as const;

/** Its names for the providers. */
const providers = { "openai-chat": "server", "openai-responses": "openai", "anthropic-messages": "anthropic" } as const;

const openCode = (protocol: keyof typeof packages, name: string): Agent => ({
  name,
  packageName: "opencode-ai",
  protocol,
  requestsMax: 4,
  shell: { tool: "bash", parameter: "command", more: { description: "leave a mark" } },
  setup: `OPENCODE_CONFIG_CONTENT='${JSON.stringify({ provider: { [providers[protocol]]: { options: { baseURL: `${gatewayOrigin}/v1` } } } })}' opencode`,
  program: "opencode",
  command: (modules) => [binary(modules)],
  launch: ({ baseUrl, home, patienceMs, work }, prompt) => ({
    args: ["run", "--format", "json", prompt],
    env: { OPENCODE_DISABLE_AUTOUPDATE: "true", OPENCODE_DISABLE_MODELS_FETCH: "true" },
    files: {
      [join(work, "opencode.json")]: JSON.stringify(config(protocol, baseUrl, patienceMs), null, 2),
      // opencode writes its state below the XDG folders of this home
      [join(home, ".keep")]: "",
    },
  }),
  read: ({ stdout }) => {
    const events = jsonLines(stdout);
    const parts = events.filter(({ type }) => type === "text").map(({ part }) => part);
    const failed = events.find(({ type }) => type === "error");
    return {
      text: parts
        .filter(isRecord)
        .map(({ text }) => String(text))
        .join("\n"),
      error: failed === undefined ? undefined : JSON.stringify(failed.error),
    };
  },
});

/** opencode over Chat Completions. */
export const openCodeChat = openCode("openai-chat", "opencode, chat");

/** opencode over Responses. */
export const openCodeResponses = openCode("openai-responses", "opencode, responses");

/** opencode over Anthropic Messages. */
export const openCodeAnthropic = openCode("anthropic-messages", "opencode, anthropic");

const provider = (npm: string, options: Readonly<Record<string, unknown>>) => ({
  npm,
  name: "fault",
  options: { apiKey, ...options },
  models: { [model]: { name: model } },
});

/** The title of a session is asked for beside the task: its requests have a conversation of their own. */
const config = (protocol: keyof typeof packages, baseUrl: string, chunkTimeout: number | undefined) => {
  const npm = packages[protocol];
  const name = providers[protocol];
  const baseURL = protocol === "anthropic-messages" ? `${baseUrl}/v1` : baseUrl;
  const patience = chunkTimeout === undefined ? {} : { chunkTimeout };
  return {
    model: `${name}/${model}`,
    small_model: `aside/${model}`,
    autoupdate: false,
    share: "disabled",
    permission: { bash: "allow" },
    provider: {
      [name]: provider(npm, patience),
      aside: provider(npm, { baseURL, headers: { "x-script": asideScript } }),
    },
  };
};

/** The package's own start script is put in place by an install script, which does not run here. */
const binary = (modules: string): string => {
  const prefix = `opencode-${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  // Without `-baseline` and `-musl` first: the shortest name is the plain build.
  const found = readdirSync(modules)
    .filter((name) => name.startsWith(prefix))
    .sort((a, b) => a.length - b.length)[0];
  if (found === undefined) throw new Error(`no package ${prefix} is installed`);
  return join(modules, found, "bin", process.platform === "win32" ? "opencode.exe" : "opencode");
};
