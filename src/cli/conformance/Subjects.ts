/**
 * Lists the SDKs of the conformance command, each bare and with this package.
 */
import { Context, Effect, Layer, References } from "effect";
import * as AiSdk from "../../adapters/ai-sdk/AiSdk.ts";
import { recoveringFetch } from "../../adapters/fetch/FetchRecovery.ts";
import { upstreamsDefault } from "../../gateway/config/Options.ts";
import { Gateway } from "../../gateway/Gateway.ts";
import * as GatewayLayers from "../../gateway/GatewayLayers.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { UserDecisions } from "../../runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { conformanceTool } from "../../testing/conformance/ConformanceFault.ts";
import type { ConformanceRuntime } from "../../testing/conformance/ConformanceRuntime.ts";
import { aiSdkRuntime } from "./AiSdkRuntime.ts";
import { anthropicRuntime } from "./AnthropicRuntime.ts";
import { openAiRuntime } from "./OpenAiRuntime.ts";
import type { MissingPackage } from "./Packages.ts";
import * as WireSdks from "./WireSdks.ts";

/** SDK names on the command line. The columns of the last six with this package have a gateway in front. */
export const subjectNames = [
  ...(["openai", "anthropic", "ai-sdk"] as const),
  ...(["google-genai", "ollama", "cohere", "mistral", "bedrock", "anthropic-bedrock"] as const),
] as const;
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

const wire = (sdk: WireSdks.WireSdk): Subject => ({
  bare: (name) => WireSdks.wireRuntime(sdk, name),
  withUs: (name, settings) =>
    Effect.map(WireSdks.wireRuntime(sdk, name), (runtime) => behindGateway(runtime, settings)),
});

/** Starts a gateway for each turn, because a shared one would take the breaks of all turns for an outage. */
const behindGateway = (runtime: ConformanceRuntime, settings: WithUsSettings): ConformanceRuntime => ({
  ...runtime,
  turn: (task) =>
    Effect.gen(function* () {
      const program = { db: "memory", port: 0, reveal: settings.reveal, upstreams: upstreamsAt(task.origin) } as const;
      const layer = GatewayLayers.layer({ ...program, ...clocks(settings), limits: { drainMs: 1 } });
      const quiet = Layer.succeed(References.MinimumLogLevel, "None");
      const { url } = Context.get(yield* Layer.build(Layer.provideMerge(layer, quiet)), Gateway);
      const at = (address: string) => address.replace(task.origin, url);
      const turn = runtime.turn({ ...task, origin: url, base_url: at(task.base_url), endpoint: at(task.endpoint) });
      return yield* Effect.isEffect(turn) ? turn : Effect.promise(() => turn);
    }).pipe(Effect.scoped),
});

const upstreamsAt = (url: string) => ({
  ...Object.fromEntries(Object.keys(upstreamsDefault).map((name) => [name, url])),
  openai: `${url}/v1`,
});

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
  "google-genai": wire(WireSdks.google),
  ollama: wire(WireSdks.ollama),
  cohere: wire(WireSdks.cohere),
  mistral: wire(WireSdks.mistral),
  bedrock: wire(WireSdks.bedrock),
  "anthropic-bedrock": wire(WireSdks.anthropicBedrock),
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
