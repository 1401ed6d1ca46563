/**
 * Runs cline's command line with a prompt, and with a provider in its settings.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, isRecord, jsonLines, model } from "../Agent.ts";
import { platformOf } from "../Install.ts";

/** cline over Chat Completions. */
export const cline: Agent = {
  name: "cline",
  packageName: "cline",
  protocol: "openai-chat",
  shell: { tool: "run_commands", parameter: "commands", list: true },
  setup: `cline auth -p openai-compatible -b ${gatewayOrigin}/v1 -k "$OPENAI_API_KEY" -m ${model} && cline`,
  program: "cline",
  command: (modules) => [join(modules, `@cline/cli-${platformOf()}`, "bin", "cline")],
  launch: ({ work }, prompt) => ({
    args: ["--json", "--cwd", work, prompt],
    env: { OPENAI_API_KEY: apiKey, CLINE_TELEMETRY_DISABLED: "1", CLINE_NO_AUTO_UPDATE: "1" },
    files: {},
  }),
  read: ({ stdout }) => {
    const events = jsonLines(stdout);
    const results = events.filter(({ type }) => type === "run_result");
    const failed = events.find(({ type }) => type === "error");
    return {
      text: results.map(({ text }) => String(text)).join("\n"),
      error: failed === undefined ? undefined : String(isRecord(failed.error) ? failed.error.message : failed.message),
    };
  },
};
