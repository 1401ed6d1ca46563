/**
 * @anthropic-ai/sdk below a recovering fetch. It holds each response until it is complete, so a break after text is recovered too.
 */
import Anthropic from "@anthropic-ai/sdk";
import { ManagedRuntime } from "effect";
import { recoveringFetch } from "effect-stream-recovery/fetch";
import { FaultProvider } from "effect-stream-recovery/testing";

const answers = [
  { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } },
  { content: [{ text: 3 }] },
] as const;
const server = ManagedRuntime.make(FaultProvider.layer({ script: { answers } }));
const { url } = await server.runPromise(FaultProvider);

const fetch = recoveringFetch({ reveal: "on_complete" });
const to = { baseURL: url, apiKey: "not-a-key" }; // the real one: const to = {}
const anthropic = new Anthropic({ ...to, fetch, maxRetries: 0 });

const messages = [{ role: "user" as const, content: "Say hello" }];
const stream = anthropic.messages.stream({ model: "claude", max_tokens: 64, messages });
for await (const event of stream)
  if (event.type === "content_block_delta" && event.delta.type === "text_delta") process.stdout.write(event.delta.text);

await fetch.close();
await server.dispose();
