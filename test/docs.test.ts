/**
 * Checks the pages of docs/ against the package, and runs each "ten lines to embed" against a provider that breaks.
 */
import { spawn } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { catalogue } from "../scripts/mutants/runner/Catalogue.ts";
import { FaultProvider } from "../src/testing/index.ts";
import { withImports } from "./mutants/Imported.ts";
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
    const paths = globSync(["docs/examples/*.ts", "docs/examples/*/*.ts"], { cwd: root });
    const copied = paths.map((path) => [path.replace("docs/examples/", ""), readFileSync(join(root, path), "utf8")]);
    const options = { skipLibCheck: true, allowImportingTsExtensions: true, erasableSyntaxOnly: true };
    assert.deepStrictEqual(consumer().compile(Object.fromEntries(copied), options), []);
  });
});

describe("the page of bugs", () => {
  const page = readFileSync(join(root, "docs/bugs.md"), "utf8");
  const rows = page.split("\n").flatMap((line) => (line.startsWith("| ") ? [line.slice(2, -2).split(" | ")] : []));
  const bugs = rows.filter(([date = ""]) => /^\d{4}-\d\d-\d\d$/.test(date));
  const removed = ["the HTTP/2 client", "the delivery log", "the partitions", "the reference agent"];
  const mutants = new Map(catalogue().map(({ mutant }) => [mutant.name, mutant.proofs]));
  const testOf = (name: string) => `test/${name}.test.ts`;

  /** The error of a proof, or undefined if the proof exists. */
  const missing = (proof: string): string | undefined => {
    if (removed.some((part) => proof === `removed with ${part}`)) return undefined;
    const [, file = "", kind, words = ""] = /^`([^`]+)`(: |, mutant )"(.+)"$/.exec(proof) ?? [];
    if (kind === ": ") {
      const path = join(root, testOf(file));
      return existsSync(path) && withImports(path).includes(words) ? undefined : `no test ${proof}`;
    }
    const holds = mutants
      .get(words)
      ?.some((it) => ("test" in it ? it.test === testOf(file) : file === "npm run simulate"));
    return holds === true ? undefined : `no mutant ${proof}`;
  };

  it("names only tests and mutants that exist, newest first", () => {
    assert.isNotEmpty(bugs);
    assert.deepStrictEqual(
      bugs.flatMap((cells) => missing(cells[4] ?? "") ?? []),
      [],
    );
    const dates = bugs.map(([date = ""]) => date);
    assert.deepStrictEqual(dates, dates.toSorted().toReversed());
  });

  it("names only test files that exist as proofs of a whole class", () => {
    const named = rows
      .filter(({ length }) => length === 4)
      .flatMap((cells) => [...(cells[3] ?? "").matchAll(/`([a-z-]+\/[\w/-]+)`/g)].map(([, name = ""]) => testOf(name)));
    assert.isNotEmpty(named);
    assert.deepStrictEqual(
      named.filter((path) => !existsSync(join(root, path))),
      [],
    );
  });

  it("counts its bugs by class and by how they were found", () => {
    for (const [column, length] of [
      [1, 4],
      [3, 3],
    ] as const) {
      const counted = new Map<string, number>();
      for (const { [column]: key = "" } of bugs) counted.set(key, (counted.get(key) ?? 0) + 1);
      const printed = rows.filter((cells) => cells.length === length && /^\d+$/.test(cells[1] ?? ""));
      assert.deepStrictEqual(new Map(printed.map(([key = "", count]) => [key, Number(count)])), counted);
    }
    assert.include(page, `There were ${bugs.length} bugs`);
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
