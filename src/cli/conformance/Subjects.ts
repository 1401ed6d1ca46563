/**
 * Names the SDKs that ship with the conformance command, each bare and with this package.
 */
import { type Effect, Layer, References } from "effect";
import * as AiSdk from "../../adapters/ai-sdk/AiSdk.ts";
import { recoveringFetch } from "../../adapters/fetch/FetchRecovery.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { UserDecisions } from "../../runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { conformanceTool } from "../../testing/conformance/ConformanceFault.ts";
import type { ConformanceRuntime } from "../../testing/conformance/ConformanceRuntime.ts";
import { aiSdkRuntime } from "./AiSdkRuntime.ts";
import { anthropicRuntime } from "./AnthropicRuntime.ts";
import { openAiRuntime } from "./OpenAiRuntime.ts";
import type { MissingPackage } from "./Packages.ts";

/** The SDKs by the name that the command line takes. */
export const subjectNames = ["openai", "anthropic", "ai-sdk"] as const;
/** The name of one of them. */
export type SubjectName = (typeof subjectNames)[number];

/** How this package is set up under an SDK. */
export interface WithUsSettings {
  /** Text as it comes, or only when the response is whole. */
  readonly reveal: "live" | "on_complete";
  /** The answer to the question whether a text that was shown may be withdrawn and asked for again. */
  readonly answer: "stop" | "retry";
  /** The clocks `first_progress` and `idle`, in milliseconds: longer than the silence that is healthy. */
  readonly stallMs: number;
}

/** How an SDK becomes a column. */
export interface Subject {
  readonly bare: (name: string) => Effect.Effect<ConformanceRuntime, MissingPackage>;
  readonly withUs: (name: string, settings: WithUsSettings) => Effect.Effect<ConformanceRuntime, MissingPackage>;
}

/** Every SDK. */
export const subjects: Readonly<Record<SubjectName, Subject>> = {
  openai: {
    bare: (name) => openAiRuntime({ name }),
    withUs: (name, settings) => openAiRuntime({ name, makeFetch: fetching(settings) }),
  },
  anthropic: {
    bare: (name) => anthropicRuntime({ name }),
    withUs: (name, settings) => anthropicRuntime({ name, makeFetch: fetching(settings) }),
  },
  "ai-sdk": {
    bare: (name) => aiSdkRuntime({ name }),
    withUs: (name, settings) =>
      aiSdkRuntime({
        name,
        withUs: {
          make: () => AiSdk.createRecovery({ layer: layerOf(settings) }),
          options: { reveal: settings.reveal, ...clocks(settings) },
        },
      }),
  },
};

const clocks = ({ stallMs }: WithUsSettings) => ({ clocks: { first_progress: stallMs, idle: stallMs } });

const fetching = (settings: WithUsSettings) => () =>
  recoveringFetch({
    layer: layerOf(settings),
    reveal: settings.reveal,
    tools: { [conformanceTool]: "mutating" },
    ...clocks(settings),
  });

/** A recorder in memory, and no log: the table tells every break. */
const layerOf = ({ answer }: WithUsSettings) =>
  Layer.merge(
    StreamProcessor.layer.pipe(
      Layer.provideMerge(RunRecorder.layerMemory()),
      Layer.provideMerge(UserDecisions.layerHeadless({ rules: { text_shown: answer } })),
    ),
    Layer.succeed(References.MinimumLogLevel, "Error"),
  );
