/**
 * Runs a turn with the AI SDK and its provider packages: `streamText` with a tool, up to a few steps.
 */
import { Effect } from "effect";
import { discardKind, type LiveOptions, type OwnedRecovery, type RecoverOptions } from "../../adapters/ai-sdk/AiSdk.ts";
import { conformanceTool } from "../../testing/conformance/ConformanceFault.ts";
import type { ConformanceRuntime, ConformanceTask } from "../../testing/conformance/ConformanceRuntime.ts";
import { loadPackages, type MissingPackage, versionsOf } from "./Packages.ts";

/** The packages that the user must have installed for this column. */
export const aiSdkPackages = ["ai", "@ai-sdk/openai", "@ai-sdk/anthropic", "@ai-sdk/google"] as const;

/** Maximum steps of a turn. A turn needs at most three: the call, the call again after a break, and the text. */
const stepsMax = 4;

/** Maximum response length, in tokens. Anthropic's API requires one. */
const maxTokens = 1_024;

/** The name of an AI SDK column, and the recovery of its turns if it runs with this package. */
export interface AiSdkOptions {
  /** The column's name. */
  readonly name: string;
  /**
   * Creates the recovery of a turn. The SDK's own retries are then disabled, because two layers of retries multiply. Each turn has its own
   * recovery, because a shared one would take the breaks of all turns for a retry storm and throttle them.
   */
  readonly withUs?: { readonly make: () => OwnedRecovery; readonly options: RecoverOptions };
}

const load = async () => ({
  ai: await import("ai"),
  openai: await import("@ai-sdk/openai"),
  anthropic: await import("@ai-sdk/anthropic"),
  google: await import("@ai-sdk/google"),
});

type Loaded = Awaited<ReturnType<typeof load>>;

/** Creates the AI SDK runtime for the protocols of its three provider packages. */
export const aiSdkRuntime = Effect.fn("conformance.ai-sdk")(function* (options: AiSdkOptions) {
  const sdk = yield* loadPackages(aiSdkPackages, load);
  const runtime: ConformanceRuntime = {
    name: options.name,
    versions: versionsOf(aiSdkPackages),
    protocols: ["openai-chat", "openai-responses", "anthropic-messages", "google-gemini"],
    turn: async (task) => {
      const recovery = options.withUs?.make();
      try {
        await turn(sdk, task, recovery === undefined ? bareSetup : recovered(recovery, options.withUs?.options ?? {}));
      } finally {
        await recovery?.close();
      }
    },
  };
  return runtime;
}) satisfies (options: AiSdkOptions) => Effect.Effect<ConformanceRuntime, MissingPackage>;

type Tools = ReturnType<typeof toolsOf>;
type Model = ReturnType<typeof modelOf>;

/** Adapts the model and tools before they are passed to `streamText`. */
type Setup = (
  model: Model,
  tools: Tools,
) => Partial<LiveOptions> & { readonly model: Model; readonly tools: Tools; readonly maxRetries?: number };

const bareSetup: Setup = (model, tools) => ({ model, tools });

const recovered =
  (recovery: OwnedRecovery, options: RecoverOptions): Setup =>
  (model, tools) => ({
    ...(options.reveal === "on_complete" ? { model: recovery.recover(model, options) } : recovery.live(model, options)),
    tools: recovery.guardTools(tools, { effects: { [conformanceTool]: "mutating" } }),
    maxRetries: 0,
  });

const turn = async (sdk: Loaded, task: ConformanceTask, setup: Setup): Promise<void> => {
  const { prompt, screen, signal } = task;
  const result = sdk.ai.streamText({
    ...setup(modelOf(sdk, task), toolsOf(sdk.ai, task)),
    prompt,
    maxOutputTokens: maxTokens,
    stopWhen: sdk.ai.isStepCount(stepsMax),
    abortSignal: signal,
    onError: () => undefined, // the error part reports it too; the default handler prints it
  });
  let step = "";
  for await (const part of result.stream) {
    if (part.type === "start-step") step = screen.text();
    // Withdraws the text that this step has shown, as a web page does after a `reset-step` event.
    if (part.type === "custom" && part.kind === discardKind) screen.replace(step);
    if (part.type === "text-delta") screen.write(part.text);
    if (part.type === "error") throw part.error;
    if (part.type === "abort") throw new Error("aborted");
  }
};

const toolsOf = (ai: Loaded["ai"], { tools }: ConformanceTask) =>
  Object.fromEntries(
    tools.map(({ description, execute, name, parameters }) => [
      name,
      ai.tool({
        description,
        inputSchema: ai.jsonSchema<unknown>({ ...parameters }),
        execute: (input) => execute(input),
      }),
    ]),
  );

const modelOf = ({ anthropic, google, openai }: Loaded, task: ConformanceTask) => {
  const { api_key: apiKey, base_url: baseURL, headers, model } = task;
  switch (task.protocol) {
    case "openai-chat":
      return openai.createOpenAI({ apiKey, baseURL, headers }).chat(model);
    case "openai-responses":
      return openai.createOpenAI({ apiKey, baseURL, headers }).responses(model);
    case "anthropic-messages":
      return anthropic.createAnthropic({ apiKey, baseURL: `${baseURL}/v1`, headers })(model);
    case "google-gemini":
      return google.createGoogleGenerativeAI({ apiKey, baseURL, headers })(model);
    default:
      throw new TypeError(`protocol: expected a protocol of the AI SDK, got ${task.protocol}`);
  }
};
