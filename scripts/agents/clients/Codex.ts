/**
 * Runs codex: `codex exec`, with its built-in provider at another address.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, isRecord, jsonLines } from "../Agent.ts";

/** Codex over Responses, the only protocol that it still speaks. */
export const codex: Agent = {
  name: "codex",
  packageName: "@openai/codex",
  protocol: "openai-responses",
  requestsMax: 4,
  shell: { tool: "exec_command", parameter: "cmd" },
  setup: `codex -c openai_base_url="${gatewayOrigin}/v1"`,
  program: "codex",
  command: (modules) => [process.execPath, join(modules, "@openai/codex/bin/codex.js")],
  launch: ({ home, patienceMs }, prompt) => {
    const folder = join(home, ".codex");
    return {
      args: [
        ...["exec", "--json", "--skip-git-repo-check"],
        // The sandbox is ours: no network but loopback, and a folder that is thrown away.
        "--dangerously-bypass-approvals-and-sandbox",
        prompt,
      ],
      env: { CODEX_HOME: folder, CODEX_API_KEY: apiKey },
      files: { [join(folder, "config.toml")]: config(patienceMs) },
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

const config = (patienceMs: number | undefined): string => `check_for_update_on_startup = false
${patienceMs === undefined ? "" : `\n[model_providers.openai]\nstream_idle_timeout_ms = ${patienceMs}\n`}`;
