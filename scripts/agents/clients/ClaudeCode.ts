/**
 * Runs Claude Code: `claude --print`, with the provider's address in its environment.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, isRecord, jsonLines, texts } from "../Agent.ts";
import { platformOf } from "../Install.ts";

/** Claude Code over Anthropic Messages. */
export const claudeCode: Agent = {
  name: "claude-code",
  packageName: "@anthropic-ai/claude-code",
  protocol: "anthropic-messages",
  requestsMax: 4,
  shell: { tool: "Bash", parameter: "command", more: { description: "leave a mark" }, strict: true },
  setup: `ANTHROPIC_BASE_URL=${gatewayOrigin} claude`,
  program: "claude",
  // The package's own start script is installed by an install script, which does not run here.
  command: (modules) => [join(modules, `@anthropic-ai/claude-code-${platformOf()}`, "claude")],
  launch: ({ home, patienceMs }, prompt) => ({
    args: ["--print", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", prompt],
    env: {
      ANTHROPIC_API_KEY: apiKey,
      CLAUDE_CONFIG_DIR: join(home, ".claude"),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      // It refuses to skip permissions as root unless it runs in a sandbox.
      IS_SANDBOX: "1",
      ...(patienceMs === undefined
        ? {}
        : { CLAUDE_ENABLE_STREAM_WATCHDOG: "1", CLAUDE_STREAM_IDLE_TIMEOUT_MS: String(patienceMs) }),
    },
    files: {},
  }),
  read: ({ stdout }) => {
    const events = jsonLines(stdout);
    const messages = events.filter(({ type }) => type === "assistant").map(({ message }) => message);
    const result = events.find(({ type }) => type === "result");
    const contents = messages.filter(isRecord).flatMap(({ content }) => (Array.isArray(content) ? content : []));
    return {
      text: texts(contents.filter(isRecord).filter(({ type }) => type === "text")),
      error: result?.is_error === true ? String(result.result ?? result.subtype) : undefined,
    };
  },
};
