/**
 * Runs opencode 1 and 2: `opencode run`, with providers defined in `opencode.json`. Version 2 reads the configuration of version 1.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Agent, apiKey, asideScript, gatewayOrigin, isRecord, jsonLines, model } from "../Agent.ts";

/** The package of each protocol's provider, which is part of opencode. */
const packages = {
  "openai-chat": "@ai-sdk/openai-compatible",
  "openai-responses": "@ai-sdk/openai",
  "anthropic-messages": "@ai-sdk/anthropic",
} as const;

/** opencode's names of the providers. */
const providers = { "openai-chat": "server", "openai-responses": "openai", "anthropic-messages": "anthropic" } as const;

/** The differences between the two versions. */
type Version = Pick<Agent, "packageName" | "platform" | "shell" | "command"> & {
  /** The command in the setup line. */
  readonly line: string;
  /** Options of a protocol's provider in addition to its address. */
  readonly options?: Readonly<Partial<Record<keyof typeof packages, Readonly<Record<string, string>>>>>;
  /** The arguments between the command and the prompt. */
  readonly args: ReadonlyArray<string>;
};

const first: Version = {
  packageName: "opencode-ai",
  shell: { tool: "bash", parameter: "command", more: { description: "leave a mark" } },
  command: (modules) => [binary(modules)],
  line: "opencode",
  args: ["run", "--format", "json"],
};

/**
 * The package `@opencode/cli` starts a build like this one. Without `--standalone` it uses a background server, which keeps the
 * configuration of the command that started it. `--auto` approves its commands.
 */
const second: Version = {
  packageName: "@opencode/cli-linux-x64-baseline",
  platform: "linux-x64",
  shell: { tool: "shell", parameter: "command", strict: true },
  command: (modules) => [join(modules, "@opencode", "cli-linux-x64-baseline", "bin", "opencode")],
  line: "opencode run --standalone",
  // Otherwise it tries a WebSocket first, which the gateway does not serve.
  options: { "openai-responses": { transport: "http" } },
  args: ["--auto", "--format", "json"],
};

const openCode = (
  protocol: keyof typeof packages,
  name: string,
  { args, line, options, ...version }: Version,
): Agent => ({
  ...version,
  name,
  protocol,
  requestsMax: 4,
  setup: `OPENCODE_CONFIG_CONTENT='${JSON.stringify({ provider: { [providers[protocol]]: { options: { baseURL: `${gatewayOrigin}/v1`, ...options?.[protocol] } } } })}' ${line}`,
  program: "opencode",
  launch: ({ baseUrl, home, patienceMs, work }, prompt) => ({
    args: [...args, prompt],
    env: { OPENCODE_DISABLE_AUTOUPDATE: "true", OPENCODE_DISABLE_MODELS_FETCH: "true" },
    files: {
      [join(work, "opencode.json")]: JSON.stringify(config(protocol, baseUrl, patienceMs), null, 2),
      // opencode writes its state below the XDG folders of this home.
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
export const openCodeChat = openCode("openai-chat", "opencode, chat", first);

/** opencode over Responses. */
export const openCodeResponses = openCode("openai-responses", "opencode, responses", first);

/** opencode over Anthropic Messages. */
export const openCodeAnthropic = openCode("anthropic-messages", "opencode, anthropic", first);

/** opencode 2 over each protocol. */
export const openCode2: ReadonlyArray<Agent> = [
  openCode("openai-chat", "opencode 2, chat", second),
  openCode("openai-responses", "opencode 2, responses", second),
  openCode("anthropic-messages", "opencode 2, anthropic", second),
];

const provider = (npm: string, options: Readonly<Record<string, unknown>>) => ({
  npm,
  name: "fault",
  options: { apiKey, ...options },
  models: { [model]: { name: model } },
});

/** The configuration. The title of a session is requested in addition to the task, so those requests get their own conversation. */
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

/** Finds the binary, because the package's own start script is installed by an install script, which does not run here. */
const binary = (modules: string): string => {
  const prefix = `opencode-${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  // Prefers the build without `-baseline` and `-musl`, which has the shortest name.
  const found = readdirSync(modules)
    .filter((name) => name.startsWith(prefix))
    .sort((a, b) => a.length - b.length)[0];
  if (found === undefined) throw new Error(`no package ${prefix} is installed`);
  return join(modules, found, "bin", process.platform === "win32" ? "opencode.exe" : "opencode");
};
