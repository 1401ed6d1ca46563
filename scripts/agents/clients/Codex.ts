/**
 * Runs codex: `codex exec`, with a provider of its own in `config.toml`.
 */
import { join } from "node:path";
import { type Agent, apiKey, isRecord, jsonLines, model } from "../Agent.ts";

/** Codex over Responses, the only protocol that it still speaks. */
export const codex: Agent = {
  name: "codex",
  packageName: "@openai/codex",
  protocol: "openai-responses",
  requestsMax: 4,
  shell: { tool: "exec_command", parameter: "cmd" },
  launch: ({ baseUrl, home, modules, patienceMs }, prompt) => {
    const folder = join(home, ".codex");
    return {
      command: process.execPath,
      args: [
        join(modules, "@openai/codex/bin/codex.js"),
        ...["exec", "--json", "--skip-git-repo-check"],
        // The sandbox is ours: no network but loopback, and a folder that is thrown away.
        "--dangerously-bypass-approvals-and-sandbox",
        prompt,
      ],
      env: { CODEX_HOME: folder, FAULT_API_KEY: apiKey },
      files: { [join(folder, "config.toml")]: config(baseUrl, patienceMs) },
    };
  },
  read: ({ stdout }) => {
    const events = jsonLines(stdout);
    const items = events.filter(({ type }) => type === "item.completed").map(({ item }) => item);
    const messages = items.filter(isRecord).filter(({ type }) => type === "agent_message");
    const failed = events.find(({ type }) => type === "turn.failed");
    return {
      text: messages.map(({ text }) => String(text)).join("\n"),
      error: failed === undefined ? undefined : JSON.stringify(failed.error),
    };
  },
};

const config = (baseUrl: string, patienceMs: number | undefined): string => `model = "${model}"
model_provider = "fault"
check_for_update_on_startup = false

[model_providers.fault]
name = "fault"
base_url = "${baseUrl}"
env_key = "FAULT_API_KEY"
wire_api = "responses"
${patienceMs === undefined ? "" : `stream_idle_timeout_ms = ${patienceMs}\n`}`;
