/**
 * Runs cline's command line with a prompt, and a provider in its settings.
 */
import { join } from "node:path";
import { type Agent, apiKey, isRecord, jsonLines, model } from "../Agent.ts";
import { platformOf } from "../Install.ts";

/** cline over Chat Completions. */
export const cline: Agent = {
  name: "cline",
  packageName: "cline",
  protocol: "openai-chat",
  shell: { tool: "run_commands", parameter: "commands", list: true },
  launch: ({ baseUrl, home, modules, work }, prompt) => {
    const data = join(home, "cline");
    const settings = { provider: "openai-compatible", apiKey, model, baseUrl };
    const saved = { settings, updatedAt: "2026-01-01T00:00:00.000Z", tokenSource: "manual" };
    return {
      command: join(modules, `@cline/cli-${platformOf()}`, "bin", "cline"),
      args: ["--json", "--cwd", work, "--data-dir", data, "--provider", "openai-compatible", "--model", model, prompt],
      env: { CLINE_TELEMETRY_DISABLED: "1", CLINE_NO_AUTO_UPDATE: "1" },
      files: {
        [join(data, "settings", "providers.json")]: JSON.stringify({
          version: 1,
          lastUsedProvider: "openai-compatible",
          modes: {},
          providers: { "openai-compatible": saved },
        }),
      },
    };
  },
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
