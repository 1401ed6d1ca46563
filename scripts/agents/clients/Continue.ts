/**
 * Runs continue's command line: `cn --print`, with a model of its own in its configuration.
 */
import { join } from "node:path";
import { type Agent, apiKey, model } from "../Agent.ts";

/** continue over Chat Completions. */
export const continueCli: Agent = {
  name: "continue",
  packageName: "@continuedev/cli",
  protocol: "openai-chat",
  shell: { tool: "Bash", parameter: "command" },
  launch: ({ baseUrl, home, modules }, prompt) => {
    const file = join(home, "config.yaml");
    return {
      command: process.execPath,
      args: [join(modules, "@continuedev/cli/dist/cn.js"), "--print", "--auto", "--config", file, prompt],
      env: { CONTINUE_GLOBAL_DIR: join(home, ".continue"), CONTINUE_TELEMETRY_ENABLED: "0", CI: "1" },
      files: { [file]: config(baseUrl) },
    };
  },
  // What is printed is the answer, nothing else; an error has its exit code.
  read: ({ stdout }) => ({ text: stdout, error: undefined }),
};

const config = (baseUrl: string): string => `name: fault
version: 0.0.1
schema: v1
models:
  - name: fault
    provider: openai
    model: ${model}
    apiBase: ${baseUrl}
    apiKey: ${apiKey}
    roles: [chat]
    capabilities: [tool_use]
`;
