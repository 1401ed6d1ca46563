/**
 * Runs a turn with the official openai SDK as its documentation shows: one streamed request, with the tools run at its end.
 */
import { Effect } from "effect";
import type OpenAI from "openai";
import type { ConformanceRuntime, ConformanceTask } from "../../testing/conformance/ConformanceRuntime.ts";
import { loadPackages, type MissingPackage, versionsOf } from "./Packages.ts";
import { type SdkOptions, withFetch } from "./Subject.ts";
import { ToolCalls } from "./ToolCalls.ts";

/** The packages that the user must have installed for this column. */
export const openAiPackages = ["openai"] as const;

/** Creates the openai SDK runtime for Chat Completions, Responses and text completions. */
export const openAiRuntime = Effect.fn("conformance.openai")(function* (options: SdkOptions) {
  const sdk = yield* loadPackages(openAiPackages, () => import("openai"));
  const runtime: ConformanceRuntime = {
    name: options.name,
    versions: versionsOf(openAiPackages),
    protocols: ["openai-chat", "openai-responses", "openai-completions"],
    turn: (task) =>
      withFetch(options, (own) => {
        const client = new sdk.default({
          apiKey: task.api_key,
          baseURL: task.base_url,
          logLevel: "off",
          defaultHeaders: task.headers,
          ...own,
        });
        if (task.protocol === "openai-completions") return completions(client, task);
        return task.protocol === "openai-responses" ? responses(client, task) : chat(client, task);
      }),
  };
  return runtime;
}) satisfies (options: SdkOptions) => Effect.Effect<ConformanceRuntime, MissingPackage>;

const chat = async (client: OpenAI, { model, prompt, screen, signal, tools }: ConformanceTask): Promise<void> => {
  const calls = new ToolCalls();
  const stream = await client.chat.completions.create(
    {
      model,
      stream: true,
      messages: [{ role: "user", content: prompt }],
      tools: tools.map(({ description, name, parameters }) => ({
        type: "function",
        function: { name, description, parameters: { ...parameters } },
      })),
    },
    { signal },
  );
  for await (const chunk of stream) {
    const delta = chunk.choices[0]?.delta;
    if (typeof delta?.content === "string") screen.write(delta.content);
    for (const call of delta?.tool_calls ?? []) {
      calls.start(call.index, call.function?.name ?? "");
      calls.add(call.index, call.function?.arguments ?? "");
    }
  }
  signal.throwIfAborted(); // the SDK ends an aborted stream without an error
  await calls.run(tools);
};

const responses = async (client: OpenAI, { model, prompt, screen, signal, tools }: ConformanceTask): Promise<void> => {
  const calls = new ToolCalls();
  const stream = await client.responses.create(
    {
      model,
      stream: true,
      input: prompt,
      tools: tools.map(({ description, name, parameters }) => ({
        type: "function",
        name,
        description,
        parameters: { ...parameters },
        strict: false,
      })),
    },
    { signal },
  );
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") screen.write(event.delta);
    if (event.type === "response.output_item.added" && event.item.type === "function_call")
      calls.start(event.output_index, event.item.name);
    if (event.type === "response.function_call_arguments.delta") calls.add(event.output_index, event.delta);
    if (event.type === "error") throw new Error(`the provider reports: ${event.message}`);
    if (event.type === "response.failed") throw new Error(`the provider reports: ${event.response.error?.message}`);
  }
  signal.throwIfAborted();
  await calls.run(tools);
};

const completions = async (client: OpenAI, { model, prompt, screen, signal }: ConformanceTask): Promise<void> => {
  for await (const { choices } of await client.completions.create({ model, prompt, stream: true }, { signal }))
    screen.write(choices[0]?.text ?? "");
  signal.throwIfAborted();
};
