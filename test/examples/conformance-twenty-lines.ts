/**
 * Twenty lines to prove a runtime safe: docs/conformance.md shows them, and test/testing/conformance/Docs.test.ts runs them.
 */
import OpenAI from "openai";
import {
  type ConformanceOptions,
  type ConformanceRuntime,
  conformance,
  conformanceTable,
  isSafe,
} from "../../src/testing/index.ts";

export const myChat: ConformanceRuntime = {
  name: "my chat",
  protocols: ["openai-chat"],
  turn: async ({ api_key, base_url, model, prompt, screen, signal, tools }) => {
    const client = new OpenAI({ apiKey: api_key, baseURL: base_url });
    const messages = [{ role: "user" as const, content: prompt }];
    const stream = await client.chat.completions.create({ model, messages, stream: true }, { signal });
    let call = "";
    let finish: string | undefined;
    for await (const { choices } of stream) {
      screen.write(choices[0]?.delta.content ?? ""); // what the user sees; `replace` takes it back
      call += choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? "";
      finish ??= choices[0]?.finish_reason ?? undefined;
    }
    if (finish === undefined) throw new Error("the response was cut"); // without this line the kit reports T
    if (call !== "") await tools[0]?.execute(JSON.parse(call));
  },
};

export const prove = async (options: ConformanceOptions = {}): Promise<boolean> => {
  const board = await conformance(myChat, options);
  console.log(conformanceTable([board]));
  return isSafe(board);
};
