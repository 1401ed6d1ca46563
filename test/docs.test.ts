/**
 * Checks the pages of docs/ against the package, and runs each "ten lines to embed" against a provider that breaks.
 */
import { spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../src/testing/index.ts";
import { root } from "./package/Consumer.ts";
import { holdPages } from "./package/Pages.ts";

/** Packages that the examples import besides this one. */
const used = ["@effect/vitest", "vitest", "ai", "@ai-sdk", "openai", "@anthropic-ai"];

const consumer = holdPages(globSync("docs/*.md", { cwd: root }).sort(), used);

/** The guides show these files, and a test of the tables keeps them equal. */
const examples = globSync("test/examples/*-ten-lines.ts", { cwd: root }).sort();

describe("ten lines to embed", () => {
  it("compile in a strict project that installed the package", () => {
    const files = Object.fromEntries(examples.map((path) => [basename(path), readFileSync(join(root, path), "utf8")]));
    assert.strictEqual(examples.length, 3);
    assert.deepStrictEqual(consumer().compile(files, { skipLibCheck: true, noUnusedLocals: false }), []);
  });

  for (const path of examples) {
    it.live(`${basename(path)} gets its whole answer from a provider that breaks first`, () =>
      Effect.gen(function* () {
        const provider = yield* FaultProvider.make({
          script: {
            answers: [{ content: [{ text: 3 }], break: { kind: "rst", at: "after_head" } }, { content: [{ text: 3 }] }],
          },
        });
        const { code, stderr, stdout } = yield* played(basename(path), `${provider.url}/v1`);
        assert.strictEqual(code, 0, stderr);
        assert.isAbove(stdout.length, 0);
        assert.strictEqual((yield* provider.log).length, 2, "one request that broke, and one that was answered");
      }).pipe(Effect.scoped),
    );
  }
});

describe("example programs", () => {
  it("compile after they were copied into a strict project that installed the package", () => {
    const paths = globSync("docs/examples/*/*.ts", { cwd: root });
    const copied = paths.map((path) => [path.replace("docs/examples/", ""), readFileSync(join(root, path), "utf8")]);
    const options = { skipLibCheck: true, allowImportingTsExtensions: true, erasableSyntaxOnly: true };
    assert.deepStrictEqual(consumer().compile(Object.fromEntries(copied), options), []);
  });
});

const played = (file: string, url: string) =>
  Effect.callback<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>((resume) => {
    const child = spawn(process.execPath, [file], {
      cwd: consumer().folder,
      env: { ...consumer().environment, OPENAI_BASE_URL: url, OPENAI_API_KEY: "not-a-key" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (bytes: Buffer) => {
      stdout += bytes.toString();
    });
    child.stderr.on("data", (bytes: Buffer) => {
      stderr += bytes.toString();
    });
    child.once("close", (code) => resume(Effect.succeed({ code, stdout, stderr })));
    return Effect.sync(() => child.kill("SIGKILL"));
  });
