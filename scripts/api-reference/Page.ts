/**
 * The pages of the API reference, one for each entry point of package.json, with the exports that each lists first.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Schema } from "effect";

/** A page of an entry point, before its exports are read. */
export interface Page {
  /** The specifier of its import. */
  readonly specifier: string;
  /** Path of its source, from the root of the repository. */
  readonly source: string;
  /** Path of the page, from the root of the repository. */
  readonly file: string;
  /** Exports that come first, in this order. The others follow in the order of the source. */
  readonly lead: ReadonlyArray<string>;
}

const leads: Readonly<Record<string, ReadonlyArray<string>>> = {
  ".": [
    ...["StreamProcessor", "RunOptions", "AttemptContext", "RunEvent", "RunInterrupted", "fromAsyncIterable"],
    ...["ToolGuard", "ToolOptions", "GuardedTool", "CallReference", "SettledCall", "ToolRefused"],
    ...["InterruptSignature", "UserDecisions", "CrashRecovery", "TakeUpOptions"],
    ...["RunRecorder", "AnswerRefused", "RecorderError"],
  ],
  "./policy": ["decide", "RecoveryPolicy", "explain", "PolicyTable", "DecisionInput"],
  "./provider": ["Protocol", "Part", "End", "ProtocolId", "AnyProtocolId", "Tolerance", "Decoder"],
  "./client": ["ProviderClient", "ProviderClientOptions", "ProviderRequest", "RequestHeaders", "Reporters"],
  "./fetch": ["recoveringFetch", "FetchRecoveryOptions", "RecoveringFetch"],
  "./promise": ["createRecovery", "PromiseRecovery", "PromiseRun", "PromiseRunOptions", "PromiseTool"],
  "./ai-sdk": ["createRecovery", "make", "Recovery", "OwnedRecovery", "RecoveryOptions", "RecoverOptions"],
  "./sqlite": ["SqlRunRecorder", "SqlFileOptions", "SqlRunRecorderOptions", "Retention"],
  "./postgres": ["PostgresRunRecorder", "PostgresOptions"],
  "./gateway": ["Gateway", "GatewayLayers", "GatewayOptions", "ProgramOptions", "readConfig", "openConfig"],
  "./stages": ["Routes", "Seam", "PlainSeam", "Linger"],
  "./otlp": ["layer"],
  "./testing": ["conformance", "runConformance", "ConformanceOptions", "ConformanceRuntime", "ConformanceTask"],
};

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    name: Schema.String,
    exports: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Struct({ default: Schema.String })])),
  }),
);

/**
 * Reads the pages, in the order of `exports` in package.json.
 *
 * @param root the root of the repository
 */
export const pages = (root: string): ReadonlyArray<Page> => {
  const manifest = Schema.decodeSync(Manifest)(readFileSync(join(root, "package.json"), "utf8"));
  return Object.entries(manifest.exports).flatMap(([entry, target]) =>
    typeof target === "string"
      ? []
      : [
          {
            specifier: manifest.name + entry.slice(1),
            source: target.default.replace(/^\.\/dist\/(.*)\.js$/, "src/$1.ts"),
            file: `docs/api/${entry === "." ? "core" : entry.slice(2)}.md`,
            lead: leads[entry] ?? [],
          },
        ],
  );
};
