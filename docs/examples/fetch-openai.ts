/**
 * The openai SDK below a recovering fetch: the client is as it was, and its streams recover.
 */
import { ManagedRuntime } from "effect";
import { recoveringFetch } from "effect-stream-recovery/fetch";
import { FaultProvider } from "effect-stream-recovery/testing";
import OpenAI from "openai";

const answers = [
  { content: [{ text: 3 }], break: { kind: "rst", at: "after_head" } },
  { content: [{ text: 3 }] },
] as const;
const server = ManagedRuntime.make(FaultProvider.layer({ script: { answers } }));
const { url } = await server.runPromise(FaultProvider);

const fetch = recoveringFetch({ tools: { read_file: "read_only" } });
const to = { baseURL: `${url}/v1`, apiKey: "not-a-key" }; // the real one: const to = {}
const openai = new OpenAI({ ...to, fetch, maxRetries: 0 });

const messages = [{ role: "user" as const, content: "Say hello" }];
const stream = await openai.chat.completions.create({ model: "gpt-5", messages, stream: true });
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");

await fetch.close();
await server.dispose();
