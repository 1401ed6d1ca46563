/**
 * Tests of your own streaming code in Vitest, against a provider on a real socket that breaks as its script says.
 */
import { ManagedRuntime } from "effect";
import { recoveringFetch } from "effect-stream-recovery/fetch";
import { conformance, FaultProvider, isSafe } from "effect-stream-recovery/testing";
import OpenAI from "openai";
import { expect, it } from "vitest";

/** The code under test: a chat over the openai SDK. */
const chat = async (baseURL: string, write: (text: string) => void, signal?: AbortSignal): Promise<void> => {
  const fetch = recoveringFetch();
  try {
    const openai = new OpenAI({ baseURL, apiKey: "not-a-key", fetch, maxRetries: 0 });
    const messages = [{ role: "user" as const, content: "Say hello" }];
    const stream = await openai.chat.completions.create({ model: "gpt-5", messages, stream: true }, { signal });
    for await (const { choices } of stream) write(choices[0]?.delta.content ?? "");
    signal?.throwIfAborted(); // the SDK ends an aborted stream without an error
  } finally {
    await fetch.close();
  }
};

it("recovers a reset connection", async () => {
  // A delta reads `r2.0·`: the number of its request, and its own number. { text: 3 } has three.
  const answers = [
    { content: [{ text: 3 }], break: { kind: "rst", at: "after_head" } },
    { content: [{ text: 3 }] },
  ] as const;
  const server = ManagedRuntime.make(FaultProvider.layer({ script: { answers } }));
  const { log, url } = await server.runPromise(FaultProvider);
  let shown = "";
  await chat(`${url}/v1`, (text) => {
    shown += text;
  });
  const requests = await server.runPromise(log);
  await server.dispose();
  expect(shown).toBe("r2.0·r2.1·r2.2·");
  expect(requests).toHaveLength(2);
});

it("never shows text twice or takes a cut response for a success", async () => {
  const board = await conformance(
    {
      name: "my chat",
      protocols: ["openai-chat"],
      // One turn of the user. `base_url` has /v1; `screen.replace("")` would withdraw text; `tools` has a tool to run.
      turn: ({ base_url, screen, signal }) => chat(base_url, screen.write, signal),
    },
    { faults: ["healthy", "reset_after_head", "text_cut", "text_clean_end", "overloaded"] }, // default: all sixteen
  );
  expect(board.totals).toMatchObject({ duplicated_text: 0, silent_truncations: 0 });
  expect(isSafe(board)).toBe(true);
}, 60_000);
