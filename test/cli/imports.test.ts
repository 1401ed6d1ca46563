/**
 * Walks the imports of the command line. The modules that every command loads must not need Node: a single named import that
 * another runtime lacks breaks every command there.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { root } from "../../src/cli/main.ts";

const src = fileURLToPath(new URL("../../src", import.meta.url));

/** An import that is evaluated when its module is loaded; type imports are erased. */
interface Loaded {
  readonly from: string;
  readonly specifier: string;
  /** Empty for a whole module. */
  readonly names: ReadonlyArray<string>;
}

const statement =
  /^(?:import|export)\s+(?!type\b)(?:([\w*{}\s,$]+?)\s+from\s+)?["']([^"']+)["']|await import\(["']([^"']+)["']\)/gm;

const importsOf = (file: string): ReadonlyArray<Loaded> =>
  [...readFileSync(file, "utf8").matchAll(statement)].map(([, clause = "", named = "", awaited = ""]) => ({
    from: relative(src, file),
    specifier: named === "" ? awaited : named,
    names: (/\{([^}]*)\}/s.exec(clause)?.[1] ?? "")
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "" && !name.startsWith("type "))
      .map((name) => name.split(/\s+as\s+/)[0] ?? name),
  }));

/** Everything that loading a module loads, including its own imports. */
const loadedBy = (entry: string): ReadonlyArray<Loaded> => {
  const seen = new Set<string>();
  const loaded: Array<Loaded> = [];
  const walk = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const found of importsOf(file)) {
      loaded.push(found);
      if (!found.specifier.startsWith(".")) continue;
      const next = join(dirname(file), found.specifier);
      assert.isTrue(existsSync(next), `${found.from} imports ${found.specifier}`);
      walk(next);
    }
  };
  walk(entry);
  return loaded;
};

/** Modules and exports of Node that Bun 1.4 or Deno 2 lack. Code that needs one calls `process.getBuiltinModule`. */
const nodesAlone: Readonly<Record<string, ReadonlyArray<string>>> = {
  "node:sqlite": [],
  "node:sea": [],
  "node:test": [],
  "node:module": ["stripTypeScriptTypes", "registerHooks", "enableCompileCache"],
  "node:util": ["getCallSites", "transferableAbortController"],
  "node:v8": ["startupSnapshot"],
};

const runtime: string = "bun";

/** Makes a process print each module that it loads on stderr. */
const teller = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  const load = (url, context, next) => (process.stderr.write(url + "\\n"), next(url, context));
  registerHooks({ load });
`)}`;

describe("the modules that the command line loads", () => {
  const loaded = loadedBy(join(src, "cli/bin.ts"));

  it("are the whole program, and need no API that only Node has", () => {
    assert.isAbove(new Set(loaded.map(({ from }) => from)).size, 100, "the walk goes through the program");
    assert.isTrue(loaded.some(({ specifier }) => specifier === "node:http"));
    const alone = loaded.filter(({ names, specifier }) => {
      const missing = nodesAlone[specifier];
      return missing !== undefined && (missing.length === 0 || names.some((name) => missing.includes(name)));
    });
    assert.deepStrictEqual(alone, []);
  });

  it("import a runtime's module with the prefix `node:`, which Deno requires", () => {
    const bare = loaded.filter(({ specifier }) =>
      /^(?:fs|path|os|http|net|stream|util|crypto|url|zlib)(?:\/|$)/.test(specifier),
    );
    assert.deepStrictEqual(bare, []);
  });

  it("are only those of the given command: no other command, and no Redis client, which a barrel would import", () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      ["--no-warnings", "--import", teller, join(src, "cli/bin.ts"), "policy", "--json"],
      { encoding: "utf8" },
    );
    assert.strictEqual(status, 0, stderr);
    const files = stderr.split("\n").filter((line) => line.startsWith("file:"));
    const rooms = new Set(files.flatMap((url) => /\/src\/(\w+)\//.exec(url)?.[1] ?? []));
    assert.sameMembers([...rooms], ["cli", "domain", "policy"]);
    assert.deepStrictEqual(
      files.filter((url) => /redis|undici|\/cli\/(?:demo|serve|runs)\b/.test(url)),
      [],
    );
  });

  it("are those of every command for a completion script, at any position of the option", async () => {
    const names = async (...args: ReadonlyArray<string>) =>
      (await root(args)).subcommands.flatMap(({ commands }) => commands);
    assert.lengthOf(await names("policy"), 1);
    for (const asked of ["--completions", "--completions=bash"])
      assert.lengthOf(await names("policy", asked), (await names()).length);
  });

  const hasBun = spawnSync(runtime, ["--version"]).status === 0;
  it.skipIf(!hasBun)("start under Bun: policy and decide", () => {
    const bin = join(src, "cli/bin.ts");
    const policy = spawnSync(runtime, [bin, "policy", "--json"], { encoding: "utf8" });
    assert.strictEqual(policy.status, 0, policy.stderr);
    const input = '{"facts":{"shown":"text"},"failure":{"kind":"transport"}}\n';
    const decided = spawnSync(runtime, [bin, "decide"], { encoding: "utf8", input });
    assert.strictEqual(JSON.parse(decided.stdout).rule, "text_shown", decided.stderr);
  });
});
