/**
 * Runs the example programs of one file as they stand: each brings a provider that breaks, so each shows that it recovers.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { root, start } from "./Program.ts";
// Declares the tests of the example here, so that they run.
import "../../docs/examples/policy.test.ts";
import "../../docs/examples/testing.test.ts";

/** What each program prints once. The numbers of a text are those of the request that it comes from. */
const printed: Readonly<Record<string, string>> = {
  "ai-sdk": "r3.0·r3.1·",
  "ai-sdk-live": "\n[withdrawn]\nr2.0·r2.1·r2.2·",
  answer: "Hello world",
  "chat-loop": "r4.0·r4.1·",
  crash: "The tool: it_ran\npaid: 42 EUR\n",
  "effect-ai": "r3.0·r3.1·",
  "effect-ai-live": "\n[withdrawn]\nr2.0·r2.1·r2.2·",
  elsewhere: "Hello world",
  "fetch-anthropic": "r2.0·r2.1·r2.2·",
  "fetch-openai": "r2.0·r2.1·r2.2·",
  "gateway-python": "r2.0·r2.1·r2.2·",
  promise: "Hello world",
  "retry-loop": '"rule":"budget_exhausted"',
  routes: "r1.0·r1.1·\nanswered by spare",
};

const hasPython = spawnSync("python3", ["--version"]).status === 0;

describe.concurrent("the example program", () => {
  for (const [name, text] of Object.entries(printed)) {
    it.live.skipIf(name === "gateway-python" && !hasPython)(`${name} shows its whole answer once`, () =>
      Effect.gen(function* () {
        const out = yield* (yield* start(`docs/examples/${name}.ts`, [])).succeeded;
        assert.strictEqual(out.split(text).length, 2, out);
      }).pipe(Effect.scoped),
    );
  }
});

describe("the examples of one file", () => {
  const files = globSync("docs/examples/*.ts", { cwd: root }).map((path) => path.replace("docs/examples/", ""));

  it("are all run", () => {
    const run = [...Object.keys(printed).map((name) => `${name}.ts`), "policy.test.ts", "testing.test.ts"];
    assert.sameMembers(files, run);
  });

  it("are short, and import only public entry points", () => {
    for (const file of files) {
      const text = readFileSync(join(root, "docs/examples", file), "utf8");
      assert.isAtMost(text.split("\n").length, 75, file);
      assert.notMatch(text, /from "\./, file);
    }
  });

  it("are listed in llms.txt or in docs/README.md", () => {
    const pages = ["llms.txt", "docs/README.md"].map((page) => readFileSync(join(root, page), "utf8")).join("");
    assert.deepStrictEqual(
      files.filter((file) => !pages.includes(`examples/${file}`)),
      [],
    );
  });
});

describe("llms.txt", () => {
  const text = readFileSync(join(root, "llms.txt"), "utf8");

  it("has at most 1,000 lines", () => {
    assert.isAtMost(text.split("\n").length, 1_000);
  });

  it("names every entry point, and only files that exist", () => {
    const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    for (const entry of Object.keys(exports).filter((it) => it !== "." && it !== "./package.json"))
      assert.match(text, new RegExp(`/${entry.slice(2)}\\b`), entry);
    // The API reference is written when the package is packed.
    const paths = [...text.matchAll(/\bdocs\/[\w/.-]+\.(?:md|ts)\b/g)].map(([path]) => path);
    assert.deepStrictEqual(
      paths.filter((path) => path !== "docs/api.md" && globSync(path, { cwd: root }).length === 0),
      [],
    );
  });
});
