/** The SDKs' own suites: how they run, and the line of the SDK that selects the fetch it calls. */
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

/** The SDKs, by the option that names their checkout. */
export const sdks = ["openai", "anthropic", "genai", "ai"] as const;
export type Sdk = (typeof sdks)[number];

/** A line of a file that is replaced when the file is read. */
export interface Patch {
  /** The end of the file's path. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A suite of a checkout. */
export interface Suite {
  readonly sdk: Sdk;
  readonly name: string;
  /** The folder in which its runner starts. */
  readonly folder: string;
  readonly runner: "jest" | "vitest" | "jasmine";
  readonly args: ReadonlyArray<string>;
  readonly patches: ReadonlyArray<Patch>;
  /** Paths below the folder that must exist before the suite can run. */
  readonly needs: ReadonlyArray<string>;
}

const below = `process.getBuiltinModule("node:events")[Symbol.for("effect-stream-recovery/below")]`;

const clientFetch: Patch = {
  file: "/src/client.ts",
  find: String.raw`this\.fetch = (options\.fetch[^;]*);`,
  replace: `this.fetch = ${below}($1, options) as any;`,
};

const genai: ReadonlyArray<Patch> = [
  { file: "/dist/src/_api_client.js", find: String.raw`await fetch\(`, replace: `await ${below}(fetch)(` },
  { file: "/dist/src/gaos/lib/http.js", find: String.raw`return fetch\(`, replace: `return ${below}(fetch)(` },
];

const ai: Patch = {
  file: "/provider-utils/dist/index.js",
  find: String.raw`await (fetch\d*)\(url, \{(?=\s*method: "POST")`,
  replace: `await ${below}($1)(url, {`,
};

/** Port of the mock server that the generated tests of openai and Anthropic use. */
const mockPort = 4010;

/** Tests of a checkout's own tools (linters, packaging, examples), which send no client requests. */
const tooling = ["tests/ecosystem-*", "tests/oxlint-*", "tests/test-script*", "tests/mock-server-fetch*"];

const providers = ["openai", "anthropic", "google", "openai-compatible"] as const;

/** The suites of a checkout, without those whose mock server is not running. */
export const suitesOf = async (sdk: Sdk, checkout: string): Promise<ReadonlyArray<Suite>> => {
  const mocked = await listens(mockPort);
  const common = { sdk, folder: checkout, needs: ["node_modules"], patches: [clientFetch] };
  switch (sdk) {
    case "openai": {
      const exclude = tooling.flatMap((pattern) => ["--exclude", pattern]);
      const unit: Suite = {
        ...common,
        name: "openai-node",
        runner: "vitest",
        args: ["--config", "vitest.config.mts", ...exclude],
      };
      const generated: Suite = { ...common, name: "openai-node, generated", runner: "jest", args: ["--runInBand"] };
      return mocked ? [unit, generated] : [unit];
    }
    case "anthropic": {
      const left = mocked ? [] : ["api-resources"];
      const args = ["--testPathIgnorePatterns", "scripts", ...left, "--maxWorkers", "2"];
      return [{ ...common, name: "anthropic-sdk-typescript", runner: "jest", args }];
    }
    case "genai":
      return [
        {
          ...common,
          name: "js-genai",
          runner: "jasmine",
          args: ["dist/test/unit/**/*_test.js"],
          patches: genai,
          needs: ["node_modules", "dist/test/unit"],
        },
      ];
    case "ai":
      return providers.map((provider) => ({
        ...common,
        name: `@ai-sdk/${provider}`,
        folder: join(checkout, "packages", provider),
        runner: "vitest",
        args: ["--config", "vitest.node.config.js"],
        patches: [ai],
        needs: ["node_modules", "../provider-utils/dist/index.js"],
      }));
  }
};

/** The first path that a checkout lacks; undefined if the suite can run. */
export const missingIn = ({ folder, needs }: Suite): string | undefined =>
  needs.map((path) => join(folder, path)).find((path) => !existsSync(path));

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const answer = (is: boolean) => () => {
      socket.destroy();
      resolve(is);
    };
    socket.once("connect", answer(true));
    socket.once("error", answer(false));
  });
