/**
 * Runs a turn with the official Anthropic SDK as its documentation shows: one streamed request, with the tools run at its end.
 */
import type Anthropic from "@anthropic-ai/sdk";
import { Effect } from "effect";
import type { ConformanceRuntime, ConformanceTask } from "../../testing/conformance/ConformanceRuntime.ts";
import { loadPackages, type MissingPackage, versionsOf } from "./Packages.ts";
import { type SdkOptions, withFetch } from "./Subject.ts";
import { ToolCalls } from "./ToolCalls.ts";

/** The packages that the user must have installed for this column. */
export const anthropicPackages = ["@anthropic-ai/sdk"] as const;

/** Maximum response length, in tokens. The API requires one. */
const maxTokens = 1_024;

/** Creates the Anthropic SDK runtime for Messages. */
export const anthropicRuntime = Effect.fn("conformance.anthropic")(function* (options: SdkOptions) {
  const sdk = yield* loadPackages(anthropicPackages, () => import("@anthropic-ai/sdk"));
  const runtime: ConformanceRuntime = {
    name: options.name,
    versions: versionsOf(anthropicPackages),
    protocols: ["anthropic-messages"],
    turn: (task) =>
      withFetch(options, (own) =>
        messages(
          new sdk.default({
            apiKey: task.api_key,
            baseURL: task.base_url,
            logLevel: "off",
            defaultHeaders: task.headers,
            ...own,
          }),
          task,
        ),
      ),
  };
  return runtime;
}) satisfies (options: SdkOptions) => Effect.Effect<ConformanceRuntime, MissingPackage>;

/** Runs one streamed request of Messages, and its tools at the end. */
export const messages = async (
  client: Pick<Anthropic, "messages">,
  { model, prompt, screen, signal, tools }: ConformanceTask,
): Promise<void> => {
  const calls = new ToolCalls();
  const stream = await client.messages.create(
    {
      model,
      max_tokens: maxTokens,
      stream: true,
      messages: [{ role: "user", content: prompt }],
      tools: tools.map(({ description, name, parameters }) => ({
        name,
        description,
        input_schema: { ...parameters },
      })),
    },
    { signal },
  );
  for await (const event of stream) {
    if (event.type === "content_block_start" && event.content_block.type === "tool_use")
      calls.start(event.index, event.content_block.name);
    if (event.type === "content_block_delta" && event.delta.type === "text_delta") screen.write(event.delta.text);
    if (event.type === "content_block_delta" && event.delta.type === "input_json_delta")
      calls.add(event.index, event.delta.partial_json);
  }
  signal.throwIfAborted(); // the SDK ends an aborted stream without an error
  await calls.run(tools);
};
