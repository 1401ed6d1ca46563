/**
 * Runs the examples from the sources, as programs of their own, against a provider that breaks twice: a call is cut in its
 * arguments, and the next response fails before its first byte.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import type { Block } from "../../src/testing/script/FaultScript.ts";
import * as Program from "./Program.ts";

const examples: Readonly<Record<string, Block>> = {
  "ai-sdk-ten-lines": { tool: "list_files", input: { folder: "docs" } },
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
          const env = { OPENAI_API_KEY: "a key of a test", OPENAI_BASE_URL: `${server.url}/v1` };
          const program = yield* Program.start(`test/examples/${example}.ts`, [], env);
          const out = yield* program.succeeded;
          assert.strictEqual(out.match(/r4\.\d+·/g)?.join(""), "r4.0·r4.1·", out);
          assert.strictEqual((yield* server.log).length, 4);
        }),
      ),
    );
  }
});
