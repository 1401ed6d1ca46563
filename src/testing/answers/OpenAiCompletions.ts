/**
 * Writes an answer as a stream of text completions: pieces of text, a finish reason, and `[DONE]`. Completions have no thoughts and no
 * calls, so those items are left out.
 */
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { bytesFrame, commentFrame, frame, tokens } from "./Frames.ts";
import type { AnswerEvent, FinishName, Item, NumberedAnswer } from "./Items.ts";
import { model } from "./Items.ts";
import { openAiChat } from "./OpenAiChat.ts";
import { errors } from "./OpenAiErrors.ts";

const events = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  const envelope = { id: `cmpl-r${answer.request}`, object: "text_completion", created: 1_700_000_000, model };
  const chunk = (text: string, finish_reason: string | null = null) => ({
    ...envelope,
    choices: [{ index: 0, text, logprobs: null, finish_reason }],
  });
  const written = answer.items.flatMap((item) => itemEvents(item, chunk));
  if (answer.finish === "none") return written;
  written.push(frame("terminal", chunk("", finishReasons[answer.finish])));
  if (answer.usage) {
    const { input, output } = tokens(answer.items);
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
    written.push(frame("terminal", { ...envelope, choices: [], usage }));
  }
  return [...written, frame("terminal", "[DONE]")];
};

const itemEvents = (item: Item, chunk: (text: string) => object): ReadonlyArray<AnswerEvent> => {
  switch (item.type) {
    case "text":
    case "refusal":
      return item.deltas.map((serial) => frame("text", chunk(serial), { serials: [serial] }));
    case "ping":
      return Array.from({ length: item.count }, () => commentFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error": {
      const { code, message, type } = errors[item.error];
      return [frame("error", { error: { message, type, param: null, code } })];
    }
    default:
      return [];
  }
};

const finishReasons: Record<Exclude<FinishName, "none">, string> = {
  stop: "stop",
  tool: "stop",
  length: "length",
  content_filter: "content_filter",
};

/** Text completions, as OpenAI's older endpoint writes them. */
export const openAiCompletions: AnswerProtocol = {
  ...openAiChat,
  id: "openai-completions",
  shortName: "completions",
  path: "/v1/completions",
  isServed: (path) => /(?<!\/chat)\/completions$/.test(path),
  hasCalls: false,
  write: events,
};
