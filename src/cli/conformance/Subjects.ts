/**
 * Lists the SDKs of the conformance command, each bare and with this package.
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

/** SDK names on the command line. */
export const subjectNames = ["openai", "anthropic", "ai-sdk"] as const;
/** The name of an SDK under test. */
export type SubjectName = (typeof subjectNames)[number];

/** The settings of the recovery in the columns with this package. */
export interface WithUsSettings {
  /** `live` shows text as it arrives, `on_complete` only after the response is complete. */
  readonly reveal: "live" | "on_complete";
  /** The answer if the run asks whether shown text may be withdrawn and requested again. */
  readonly answer: "stop" | "retry";
  /** The `first_progress` and `idle` timeouts, in milliseconds: longer than a healthy silence. */
  readonly stallMs: number;
}

/** Creates the two columns of an SDK. Fails if a package of the SDK is not installed. */
export interface Subject {
  readonly bare: (name: string) => Effect.Effect<ConformanceRuntime, MissingPackage>;
  readonly withUs: (name: string, settings: WithUsSettings) => Effect.Effect<ConformanceRuntime, MissingPackage>;
}

/** The SDKs by name. */
export const subjects: Readonly<Record<SubjectName, Subject>> = {
  openai: {
    bare: (name) => openAiRuntime({ name }),
    withUs: (name, settings) => openAiRuntime({ name, makeFetch: fetchFactory(settings) }),
  },
  anthropic: {
    bare: (name) => anthropicRuntime({ name }),
    withUs: (name, settings) => anthropicRuntime({ name, makeFetch: fetchFactory(settings) }),
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

const fetchFactory = (settings: WithUsSettings) => () =>
  recoveringFetch({
    layer: layerOf(settings),
    reveal: settings.reveal,
    tools: { [conformanceTool]: "mutating" },
    ...clocks(settings),
  });

/** Records in memory and logs errors only, because the table reports every break. */
const layerOf = ({ answer }: WithUsSettings) =>
  Layer.merge(
    StreamProcessor.layer.pipe(
      Layer.provideMerge(RunRecorder.layerMemory()),
      Layer.provideMerge(UserDecisions.layerHeadless({ rules: { text_shown: answer } })),
    ),
    Layer.succeed(References.MinimumLogLevel, "Error"),
  );
