import { spawn } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../../src/testing/index.ts";

const root = join(import.meta.dirname, "../../..");
const source = (path: string): string => JSON.stringify(pathToFileURL(join(root, path)).href);

/** The entry points as the sources have them, so that no build is needed to run what a user would write. */
const entries = `
  import { registerHooks } from "node:module";
  const urls = {
    "effect-stream-recovery": ${source("src/index.ts")},
    "effect-stream-recovery/effect-ai": ${source("src/adapters/effect-ai/index.ts")},
    "effect-stream-recovery/provider-model": ${source("src/adapters/provider-model/index.ts")},
  };
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier in urls ? { url: urls[specifier], shortCircuit: true } : next(specifier, context),
  });
`;

const run = (url: string): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> =>
  new Promise((resolve) => {
    const child = spawn(
      process.execPath,
      ["--import", `data:text/javascript,${encodeURIComponent(entries)}`, "test/examples/effect-ai-ten-lines.ts"],
      { cwd: root, env: { ...process.env, OPENAI_API_KEY: "a key of a test", OPENAI_BASE_URL: `${url}/v1` } },
    );
    let [out, err] = ["", ""];
    child.stdout.on("data", (data) => {
      out += String(data);
    });
    child.stderr.on("data", (data) => {
      err += String(data);
    });
    child.on("close", (code) => resolve({ code, out, err }));
  });

describe("the ten lines of Effect AI", () => {
  it.live("answer although the call was cut in its arguments and the next answer before its first byte", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const call = [{ tool: "weather", input: { city: "Ulm" } }];
        const script = {
          answers: [
            { content: call, break: { kind: "end", at: "tool_arguments" } },
            { content: call },
            { status: 503 },
            { content: [{ text: 2 }] },
          ],
        } as const;
        const server = yield* FaultProvider.make({ script });
        const { code, err, out } = yield* Effect.promise(() => run(server.url));
        assert.strictEqual(code, 0, err);
        assert.strictEqual(out.match(/r4\.\d+·/g)?.join(""), "r4.0·r4.1·", out);
        assert.strictEqual((yield* server.log).length, 4);
      }),
    ),
  );
});
