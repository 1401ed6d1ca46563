/**
 * Runs gemini-cli: `gemini --prompt`, with the provider's address in its environment.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, isRecord, jsonLines } from "../Agent.ts";

/** gemini-cli over Gemini's generateContent. */
export const geminiCli: Agent = {
  name: "gemini-cli",
  packageName: "@google/gemini-cli",
  protocol: "google-gemini",
  shell: { tool: "run_shell_command", parameter: "command" },
  setup: `GOOGLE_GEMINI_BASE_URL=${gatewayOrigin} gemini`,
  program: "gemini",
  command: (modules) => [process.execPath, join(modules, "@google/gemini-cli/bundle/gemini.js")],
  launch: ({ home }, prompt) => ({
    args: [
      // Names a model, because `auto` would ask a classifier first.
      ...["--model", "gemini-2.5-flash", "--yolo", "--skip-trust", "--output-format", "stream-json"],
      ...["--prompt", prompt],
    ],
    env: {
      GEMINI_API_KEY: apiKey,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
      // Without it the program restarts itself with more memory.
      GEMINI_CLI_NO_RELAUNCH: "true",
    },
    files: { [join(home, ".gemini", "settings.json")]: JSON.stringify(settings, null, 2) },
  }),
  read: ({ stdout }) => {
    const events = jsonLines(stdout);
    const said = events.filter(({ role, type }) => type === "message" && role === "assistant");
    const failed = events.find(({ status, type }) => type === "error" || (type === "result" && status === "error"));
    return {
      text: said.map(({ content }) => String(content)).join(""),
      error: failed === undefined ? undefined : JSON.stringify(isRecord(failed.error) ? failed.error : failed),
    };
  },
};

const settings = {
  general: { disableAutoUpdate: true, disableUpdateNag: true },
  privacy: { usageStatisticsEnabled: false },
  security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
  telemetry: { enabled: false },
};
