/**
 * Runs continue's command line: `cn --print`, with a model of its own in its configuration.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, model } from "../Agent.ts";

/** The program reads its key from this file, so the shell puts it there. */
const key = `'"$OPENAI_API_KEY"'`;

const config = JSON.stringify({
  ...{ name: "gateway", version: "0.0.1", schema: "v1" },
  models: [{ name: model, provider: "openai", model, apiBase: `${gatewayOrigin}/v1`, apiKey: "KEY", roles: ["chat"] }],
}).replace("KEY", key);

/** continue over Chat Completions. */
export const continueCli: Agent = {
  name: "continue",
  packageName: "@continuedev/cli",
  protocol: "openai-chat",
  shell: { tool: "Bash", parameter: "command" },
  setup: `echo '${config}' > gateway.yaml && cn --config gateway.yaml`,
  program: "cn",
  command: (modules) => [process.execPath, join(modules, "@continuedev/cli/dist/cn.js")],
  launch: ({ home }, prompt) => ({
    args: ["--print", "--auto", prompt],
    env: {
      OPENAI_API_KEY: apiKey,
      CONTINUE_GLOBAL_DIR: join(home, ".continue"),
      CONTINUE_TELEMETRY_ENABLED: "0",
      CI: "1",
    },
    files: {},
  }),
  // What is printed is the answer, nothing else; an error has its exit code.
  read: ({ stdout }) => ({ text: stdout, error: undefined }),
};
