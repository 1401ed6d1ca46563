/**
 * Ten lines to embed below a bare SDK: the client is as it was, its streams recover.
 *
 * Run it with OPENAI_BASE_URL and OPENAI_API_KEY set.
 */
import { recoveringFetch } from "effect-stream-recovery/fetch";
import OpenAI from "openai";

const fetch = recoveringFetch({ tools: { read_file: "read_only" } });
const openai = new OpenAI({ fetch, maxRetries: 0 });

const messages = [{ role: "user" as const, content: "Say hello" }];
const stream = await openai.chat.completions.create({ model: "gpt-5", messages, stream: true });
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");

await fetch.close();
