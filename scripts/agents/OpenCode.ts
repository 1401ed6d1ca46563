/**
 * Runs opencode: `opencode run`, with providers of its own in `opencode.json`.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Agent, apiKey, asideScript, isRecord, jsonLines, model } from "./Agent.ts";

/** opencode over Chat Completions. */
export const openCode: Agent = {
  name: "opencode",
  packageName: "opencode-ai",
  protocol: "openai-chat",
  shell: { tool: "bash", parameter: "command" },
  launch: ({ baseUrl, home, modules, work }, prompt) => ({
    command: binary(modules),
    args: ["run", "--format", "json", prompt],
    env: { OPENCODE_DISABLE_AUTOUPDATE: "true", OPENCODE_DISABLE_MODELS_FETCH: "true" },
    files: {
      [join(work, "opencode.json")]: JSON.stringify(config(baseUrl), null, 2),
      // opencode writes its state below the XDG folders of this home
      [join(home, ".keep")]: "",
    },
  }),
  read: (stdout) => {
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
};

const provider = (baseURL: string, headers: Readonly<Record<string, string>>) => ({
  npm: "@ai-sdk/openai-compatible",
  name: "fault",
  options: { baseURL, apiKey, headers },
  models: { [model]: { name: model } },
});

/** The title of a session is asked for beside the task: its requests have a conversation of their own. */
const config = (baseUrl: string) => ({
  model: `fault/${model}`,
  small_model: `aside/${model}`,
  autoupdate: false,
  share: "disabled",
  permission: { bash: "allow" },
  provider: { fault: provider(baseUrl, {}), aside: provider(baseUrl, { "x-script": asideScript }) },
});

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
