/**
 * Runs qwen-code: `qwen` with a prompt, as an OpenAI client.
 */
import { join } from "node:path";
import { type Agent, apiKey, gatewayOrigin, isRecord, jsonLines, model, texts } from "../Agent.ts";

/** qwen-code over Chat Completions. */
export const qwenCode: Agent = {
  name: "qwen-code",
  packageName: "@qwen-code/qwen-code",
  protocol: "openai-chat",
  shell: { tool: "run_shell_command", parameter: "command", more: { is_background: false } },
  setup: `OPENAI_BASE_URL=${gatewayOrigin}/v1 qwen`,
  program: "qwen",
  command: (modules) => [process.execPath, join(modules, "@qwen-code/qwen-code/cli-entry.js")],
  launch: ({ home, patienceMs }, prompt) => ({
    args: [...["--auth-type", "openai", "--yolo", "--output-format", "stream-json", prompt]],
    env: {
      OPENAI_API_KEY: apiKey,
      OPENAI_MODEL: model,
      QWEN_CODE_NO_RELAUNCH: "true",
      ...(patienceMs === undefined ? {} : { QWEN_STREAM_IDLE_TIMEOUT_MS: String(patienceMs) }),
    },
    files: { [join(home, ".qwen", "settings.json")]: JSON.stringify(settings, null, 2) },
  }),
  read: ({ stdout }) => {
    const events = jsonLines(stdout);
    const messages = events.filter(({ type }) => type === "assistant").map(({ message }) => message);
    const contents = messages.filter(isRecord).flatMap(({ content }) => (Array.isArray(content) ? content : []));
    const result = events.find(({ type }) => type === "result");
    return {
      text: texts(contents.filter(isRecord).filter(({ type }) => type === "text")),
      error: result?.is_error === true ? JSON.stringify(result.error ?? result.result) : undefined,
    };
  },
};

const settings = {
  general: { disableAutoUpdate: true, disableUpdateNag: true },
  privacy: { usageStatisticsEnabled: false },
  security: { auth: { selectedType: "openai" } },
  // Memory would ask the model about each turn after its end, in a request that is not about the task.
  memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false, enableAutoSkill: false },
  telemetry: { enabled: false },
};
