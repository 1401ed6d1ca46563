/**
 * Holds the chapters and examples to what the package does: every program of docs/ compiles in a strict project that has
 * installed the package, those marked `run` run there, and each "ten lines to embed" runs against a provider that breaks.
 */
import { spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../src/testing/index.ts";
import * as Consumer from "./package/Consumer.ts";
import { root } from "./package/Consumer.ts";
import { blocks } from "./package/Markdown.ts";

/** What examples use beside the package itself. */
const used = ["@types/node", "@effect/vitest", "vitest", "ai", "@ai-sdk", "openai", "@anthropic-ai", "@langchain"];

const chapters = globSync("docs/*.md", { cwd: root }).sort();
const programs = chapters.flatMap((chapter) =>
  blocks(readFileSync(join(root, chapter), "utf8"))
    .filter(({ language, marks }) => language === "ts" && !marks.includes("norun"))
    .map((block) => ({ ...block, chapter, file: `${basename(chapter, ".md")}-${block.line}.ts` })),
);
const examples = globSync("test/examples/*-ten-lines.ts", { cwd: root }).sort();

let consumer: Consumer.Consumer;

beforeAll(() => {
  consumer = Consumer.make(used);
}, 120_000);

afterAll(() => consumer.remove());

/** A program that only declares something compares nothing: its names are read by nobody, and that is fine in a chapter. */
const options = { skipLibCheck: true, noUnusedLocals: false };

describe("the programs of docs/", () => {
  it("compile in a strict project that installed the package", () => {
    const files = Object.fromEntries(programs.map(({ file, text }) => [file, `${text}\nexport {};\n`]));
    assert.isAbove(programs.length, 0);
    assert.deepStrictEqual(consumer.compile(files, options), []);
  });

  for (const { chapter, file, line, marks } of programs) {
    it.skipIf(!marks.includes("run"))(`${chapter}, line ${line} runs`, () => {
      consumer.node(file);
    });
  }
});

describe("ten lines to embed", () => {
  it("compile in a strict project that installed the package", () => {
    const files = Object.fromEntries(examples.map((path) => [basename(path), readFileSync(join(root, path), "utf8")]));
    assert.strictEqual(examples.length, 3);
    assert.deepStrictEqual(consumer.compile(files, options), []);
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

const played = (file: string, url: string) =>
  Effect.callback<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>((resume) => {
    const child = spawn(process.execPath, [file], {
      cwd: consumer.folder,
      env: { ...consumer.environment, OPENAI_BASE_URL: url, OPENAI_API_KEY: "not-a-key" },
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
