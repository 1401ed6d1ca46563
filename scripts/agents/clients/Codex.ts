/**
 * Runs codex: `codex exec`, with a user-defined provider. The built-in one would try a WebSocket first.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, isRecord, jsonLines } from "../Agent.ts";

const provider = `name="gateway",base_url="${gatewayOrigin}/v1",env_key="OPENAI_API_KEY",wire_api="responses"`;

/** Codex over Responses, the only protocol that it still speaks. */
export const codex: Agent = {
  name: "codex",
  packageName: "@openai/codex",
  protocol: "openai-responses",
  requestsMax: 4,
  shell: { tool: "exec_command", parameter: "cmd" },
  setup: `codex -c model_provider=gateway -c 'model_providers.gateway={${provider}}'`,
  program: "codex",
  command: (modules) => [process.execPath, join(modules, "@openai/codex/bin/codex.js")],
  launch: ({ home, patienceMs }, prompt) => {
    const folder = join(home, ".codex");
    return {
      args: [
        "exec",
        ...(patienceMs === undefined ? [] : ["-c", `model_providers.gateway.stream_idle_timeout_ms=${patienceMs}`]),
        ...["--json", "--skip-git-repo-check"],
        // The isolation is ours: no network but loopback, and a temporary folder.
        "--dangerously-bypass-approvals-and-sandbox",
        prompt,
      ],
      env: { CODEX_HOME: folder, OPENAI_API_KEY: apiKey },
      files: { [join(folder, "config.toml")]: "check_for_update_on_startup = false\n" },
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
