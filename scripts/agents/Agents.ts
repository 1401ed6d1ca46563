/**
 * All agents, in the order of the table.
 */
import type { Agent } from "./Agent.ts";
import { claudeCode } from "./clients/ClaudeCode.ts";
import { cline } from "./clients/Cline.ts";
import { codex } from "./clients/Codex.ts";
import { continueCli } from "./clients/Continue.ts";
import { copilotAnthropic, copilotChat, copilotResponses } from "./clients/Copilot.ts";
import { langGraph, mastra, openAiAgents, toolLoopAgent } from "./clients/Framework.ts";
import { geminiCli } from "./clients/GeminiCli.ts";
import { openCode2, openCodeAnthropic, openCodeChat, openCodeResponses } from "./clients/OpenCode.ts";
import { piAnthropic, piChat, piResponses } from "./clients/Pi.ts";
import { qwenCode } from "./clients/QwenCode.ts";

/** The agents, and programs written with agent frameworks. */
export const agents: ReadonlyArray<Agent> = [
  codex,
  claudeCode,
  openCodeChat,
  openCodeResponses,
  openCodeAnthropic,
  ...openCode2,
  geminiCli,
  qwenCode,
  piChat,
  piResponses,
  piAnthropic,
  copilotChat,
  copilotResponses,
  copilotAnthropic,
  cline,
  continueCli,
  openAiAgents,
  langGraph,
  mastra,
  toolLoopAgent,
];
