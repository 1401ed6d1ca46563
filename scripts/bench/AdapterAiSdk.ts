/**
 * Reads a stream with the AI SDK and its OpenAI provider, both bare and with a recovered model.
 */
import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";
import { createRecovery } from "../../src/adapters/ai-sdk/AiSdk.ts";
import type { Pair, Read } from "./Adapters.ts";

/**
 * The AI SDK over Chat Completions.
 *
 * @param live true if parts are shown as they arrive and can be withdrawn; false if shown parts are final
 */
export const aiSdk = (url: string, live: boolean): Pair => {
  const model = createOpenAI({ apiKey: "not-a-key", baseURL: `${url}/v1` }).chat("bench");
  const recovery = createRecovery();
  return {
    bare: reader(() => ({ model })),
    recovered: reader(() => (live ? recovery.live(model) : { model: recovery.recover(model) })),
  };
};

type Model = Pick<Parameters<typeof streamText>[0], "model" | "experimental_transform">;

const reader =
  (setup: () => Model): Read =>
  async () => {
    const result = streamText({ ...setup(), prompt: "hi", maxRetries: 0 });
    let seen = 0;
    for await (const part of result.stream) {
      if (part.type === "text-delta") seen += 1;
      if (part.type === "error") throw part.error;
    }
    return seen;
  };
