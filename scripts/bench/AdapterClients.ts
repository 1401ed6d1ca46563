/**
 * Reads a stream with the openai SDK, both bare and with a recovering fetch.
 */
import OpenAI from "openai";
import { recoveringFetch } from "../../src/adapters/fetch/FetchRecovery.ts";
import type { Pair, Read } from "./Adapters.ts";

/** The openai SDK over Chat Completions. */
export const openAi = (url: string): Pair => {
  const options = { apiKey: "not-a-key", baseURL: `${url}/v1`, maxRetries: 0 };
  return { bare: reader(new OpenAI(options)), recovered: reader(new OpenAI({ ...options, fetch: recoveringFetch() })) };
};

const reader =
  (client: OpenAI): Read =>
  async () => {
    const messages = [{ role: "user" as const, content: "hi" }];
    const stream = await client.chat.completions.create({ model: "bench", messages, stream: true });
    let seen = 0;
    for await (const chunk of stream) if ((chunk.choices[0]?.delta.content ?? "") !== "") seen += 1;
    return seen;
  };
