/**
 * Runs the examples from the sources, as programs of their own, against a provider that breaks twice: a call is cut in its
 * arguments, and the next response fails before its first byte.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import type { Block } from "../../src/testing/script/FaultScript.ts";

const root = join(import.meta.dirname, "../..");
const source = (path: string): string => pathToFileURL(join(root, path)).href;

/** The entry points, from the sources: what a user would write runs without a build. */
const entries = {
  "effect-stream-recovery": source("src/index.ts"),
  "effect-stream-recovery/ai-sdk": source("src/adapters/ai-sdk/AiSdk.ts"),
  "effect-stream-recovery/effect-ai": source("src/adapters/effect-ai/index.ts"),
  "effect-stream-recovery/provider-model": source("src/adapters/provider-model/index.ts"),
};

const resolving = `
  import { registerHooks } from "node:module";
  const entries = ${JSON.stringify(entries)};
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier in entries ? { url: entries[specifier], shortCircuit: true } : next(specifier, context),
  });
`;

const run = async (example: string, url: string) => {
  const child = spawn(
    process.execPath,
    ["--import", `data:text/javascript,${encodeURIComponent(resolving)}`, `test/examples/${example}.ts`],
    { cwd: root, env: { ...process.env, OPENAI_API_KEY: "a key of a test", OPENAI_BASE_URL: `${url}/v1` } },
  );
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  const [code] = await once(child, "close");
  return { code, out, err };
};

const examples: Readonly<Record<string, Block>> = {
  "ai-sdk-ten-lines": { tool: "bash", input: { cmd: "ls" } },
  "effect-ai-ten-lines": { tool: "weather", input: { city: "Ulm" } },
};

describe("ten lines to embed", () => {
  for (const [example, called] of Object.entries(examples)) {
    it.live(`give the whole answer where its call and its text break: ${example}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const call = [called];
          const answers = [
            { content: call, break: { kind: "end", at: "tool_arguments" } },
            { content: call },
            { status: 503 },
            { content: [{ text: 2 }] },
          ] as const;
          const server = yield* FaultProvider.make({ script: { answers } });
          const { code, err, out } = yield* Effect.promise(() => run(example, server.url));
          assert.strictEqual(code, 0, err);
          assert.strictEqual(out.match(/r4\.\d+·/g)?.join(""), "r4.0·r4.1·", out);
          assert.strictEqual((yield* server.log).length, 4);
        }),
      ),
    );
  }
});
