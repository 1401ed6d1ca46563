/**
 * Runs continue's command line: `cn --print`, with a user-defined model in its configuration.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, model } from "../Agent.ts";

/** Ends the single quotes of the setup line, so that the shell inserts the key. The program reads it from its configuration file. */
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
  // The output is exactly the answer. The exit code reports errors.
  read: ({ stdout }) => ({ text: stdout, error: undefined }),
};
