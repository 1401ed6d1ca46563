/**
 * Installs the package from its tarball into a separate project, and uses it there.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, rmSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import * as Consumer from "./package/Consumer.ts";
import { manifest, specifierOf } from "./package/Consumer.ts";
import { brokenLinks } from "./package/Links.ts";

const entries = Object.keys(manifest.exports).filter((entry) => entry !== "./package.json");

const specifiers = entries.map(specifierOf);

let consumer: Consumer.Consumer;

beforeAll(() => {
  consumer = Consumer.make(["@types/node"]);
});

afterAll(() => consumer.remove());

describe("the packed package", () => {
  it("contains the build and its documents, and nothing else", () => {
    const expected = [...manifest.files, "package.json"].sort();
    assert.deepStrictEqual(globSync("*", { cwd: consumer.installed }).sort(), expected);
    const strangers = globSync("dist/**/*.*", { cwd: consumer.installed }).filter(
      (path) => !/\.(js|d\.ts)$/.test(path),
    );
    assert.deepStrictEqual(strangers, []);
  });

  it("has every file and heading that its pages link to, including the API reference", () => {
    const pages = globSync(["*.md", "docs/**/*.md"], { cwd: consumer.installed });
    assert.include(pages, "docs/api.md");
    assert.include(pages, "docs/api/core.md");
    assert.deepStrictEqual(
      pages.flatMap((page) => brokenLinks(consumer.installed, page, (target) => !target.startsWith(".."))),
      [],
    );
  });

  it("has at most 900 files and 8 MB, with room for a tenth more", () => {
    const files = globSync("**/*", { cwd: consumer.installed, withFileTypes: true }).filter((entry) => entry.isFile());
    const bytes = files.reduce((sum, { name, parentPath }) => sum + statSync(join(parentPath, name)).size, 0);
    assert.isAtMost(files.length, 810);
    assert.isAtMost(bytes, 7_200_000);
  });

  it("keeps the modules of an embedder in files of their own, under the names of their sources", () => {
    const kept = ["index", "policy/RecoveryPolicy", "runtime/run/Run", "provider/anthropic/Decode", "client/index"];
    for (const name of kept) assert.isTrue(existsSync(join(consumer.installed, `dist/${name}.js`)), name);
    const error = consumer.node(
      "--input-type=module",
      "-e",
      `import { RecoveryPolicy } from "${manifest.name}";\ntry { RecoveryPolicy.decide(); } catch (error) { console.log(error.stack); }`,
    );
    assert.match(error, /at .*\/dist\/policy\/\w+\.js:\d+:\d+/);
  });

  it("has no module that nothing loads, and no declaration that no entry point names", () => {
    assert.deepStrictEqual(globSync("dist/{cli,gateway}/**/*.js", { cwd: consumer.installed }).sort(), [
      "dist/cli/bin.js",
      "dist/cli/main.js",
      "dist/cli/serve/WorkerMain.js",
      "dist/gateway/index.js",
      "dist/gateway/page/Browser.js",
    ]);
    assert.deepStrictEqual(globSync("dist/cli/**/*.d.ts", { cwd: consumer.installed }), []);
  });

  it("exports only files that it contains", () => {
    const targets = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === "object" && entry !== null ? Object.values(entry) : [entry],
    );
    const missing = targets.filter(
      (target) => typeof target !== "string" || !existsSync(join(consumer.installed, target)),
    );
    assert.deepStrictEqual(missing, []);
  });

  it("supports import of each entry in Node", () => {
    const script = specifiers.map((it) => `console.log(Object.keys(await import("${it}")).length > 0);`).join("\n");
    assert.strictEqual(consumer.node("--input-type=module", "-e", script), specifiers.map(() => "true\n").join(""));
  });

  it("supports require of each entry in Node, with the same exports as import", () => {
    const script = `
      const required = ${JSON.stringify(specifiers)}.map((it) => [it, require(it)]);
      (async () => {
        for (const [it, all] of required) console.log((await import(it)) === all, Object.keys(all).length > 0);
      })();
    `;
    writeFileSync(join(consumer.folder, "required.cjs"), script);
    assert.strictEqual(consumer.node("required.cjs"), specifiers.map(() => "true true\n").join(""));
  });

  for (const resolution of ["node16", "nodenext", "bundler"]) {
    it(`type-checks in a strict project with the library check on (${resolution})`, () => {
      const { foreign, ours } = typeErrors(resolution, { "program.ts": program });
      assert.deepStrictEqual(ours, []);
      // Errors of other packages: they name types of the DOM and an undeclared `json-schema`, and `ai` breaks its own constraints.
      assert.deepStrictEqual(foreign, ["@ai-sdk/provider", "@ai-sdk/provider-utils", "ai", "effect"]);
    });
  }

  it("type-checks in a CommonJS project that requires it (nodenext)", () => {
    assert.deepStrictEqual(typeErrors("nodenext", { "program.cts": commonProgram }, true).ours, []);
  });

  it("cannot be required from a CommonJS project with node16, because TypeScript does not know require of a module there", () => {
    const errors = typeErrors("node16", { "program.cts": commonProgram }, true).ours;
    assert.strictEqual(errors.length, entries.length);
    for (const error of errors) assert.match(error, /^program\.cts\(\d+,\d+\): error TS1471/);
  });

  it("has types that reject a wrong program", () => {
    const wrong = `${program}export const wrong: number = decide;\n`;
    const errors = typeErrors("nodenext", { "program.ts": wrong }, true).ours;
    assert.match(errors.join("\n"), /^program\.ts\(\d+,\d+\): error TS2322/);
  });

  it("runs its command through the link that npm makes", () => {
    for (const command of Object.keys(manifest.bin)) {
      const link = join(consumer.folder, "node_modules", ".bin", command);
      const options = { cwd: consumer.folder, encoding: "utf8", env: consumer.environment } as const;
      const { status, stdout, stderr } = spawnSync(link, ["--version"], options);
      assert.include(stdout, manifest.version, stderr);
      assert.strictEqual(status, 0);
    }
  });
});

describe("the packed package's gateway", () => {
  it("serves, reports that it is alive, and exits with 0 when it is stopped", async () => {
    const link = join(consumer.folder, "node_modules", ".bin", "stream-recovery");
    const env = { ...consumer.environment, STREAM_RECOVERY_PORT: "0", STREAM_RECOVERY_DB: "memory" };
    const child = spawn(link, ["serve"], { cwd: consumer.folder, env, stdio: ["ignore", "pipe", "inherit"] });
    const [line] = await once(child.stdout, "data");
    const url = /^listening on (http:\/\/\S+)\n/.exec(String(line))?.[1];
    const response = await fetch(`${url}/livez`);
    assert.strictEqual(`${response.status} ${await response.text()}`, '200 {"status":"ok"}\n');
    child.kill("SIGTERM");
    assert.deepStrictEqual(await once(child, "close"), [0, null]);
  });
});

describe("a checkout", () => {
  it("runs its own command with npx on the PATH of a plain shell", () => {
    const plain = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
    // npx keeps a link to every checkout that it has seen, and this one is temporary.
    const env = { ...process.env, PATH: plain.join(delimiter), npm_config_cache: join(consumer.folder, "../npm") };
    const options = { cwd: consumer.checkout, env, encoding: "utf8", timeout: 25_000 } as const;
    const { status, stdout, stderr } = spawnSync("npx", ["--no-install", "stream-recovery", "--version"], options);
    assert.strictEqual(status, 0, stderr);
    assert.include(stdout, manifest.version);
  });

  it("builds everything that the package needs at run time if nothing was built, for every command", () => {
    const scripts = () => globSync("dist/**/*.js", { cwd: consumer.checkout }).sort();
    // The package joins the modules of the programs; a checkout does not.
    const compiled = scripts().filter((path) => !path.startsWith("dist/programs/"));
    rmSync(join(consumer.checkout, "dist"), { recursive: true });
    const options = { cwd: consumer.checkout, encoding: "utf8" } as const;
    const built = spawnSync(process.execPath, ["scripts/built.mjs"], options);
    assert.deepStrictEqual([built.status, built.stdout], [0, ""], built.stderr);
    assert.includeMembers(scripts(), compiled);
    // Help lists all commands, so it loads each of them.
    const { status, stderr, stdout } = spawnSync(join(consumer.checkout, "dist/cli/bin.js"), ["--help"], options);
    assert.strictEqual(status, 0, stderr);
    assert.include(stdout, "serve");
  });
});

describe("an embedder loads only what it imports", () => {
  for (const entry of [".", "./policy", "./provider"]) {
    it(`"${specifierOf(entry)}" loads nothing but itself and stable effect modules`, () => {
      const urls = [...loaded(specifierOf(entry))];
      const own = urls.filter((url) => url.includes(`/node_modules/${manifest.name}/`));
      assert.isAbove(own.length, 0);
      const others = urls.filter((url) => !own.includes(url) && !url.startsWith("node:"));
      assert.deepStrictEqual(
        others.filter((url) => !url.includes("/node_modules/effect/")),
        [],
      );
      // Schema itself needs three http modules for its codecs of headers and URLs.
      const fromSchema = loaded("effect/Schema");
      assert.deepStrictEqual(
        others.filter((url) => /\/dist\/(http|http-api|sql|ai|cli|persistence)\//.test(url) && !fromSchema.has(url)),
        [],
      );
      assert.deepStrictEqual(
        own.filter((url) => /\/dist\/(client|adapters|gateway|cli|testing)\/|\/Sql\w*\.js$/.test(url)),
        [],
      );
    });
  }

  it("./promise loads one module besides the core, and no further package", () => {
    const core = loaded(specifierOf("."));
    const further = [...loaded(specifierOf("./promise"))].filter((url) => !core.has(url));
    assert.deepStrictEqual(
      further.filter((url) => !url.includes("/node_modules/effect/")).map((url) => url.split("/dist/")[1]),
      ["adapters/promise/PromiseRecovery.js"],
    );
  });

  it("the trace does see more if an entry loads more: the client loads undici", () => {
    assert.isTrue([...loaded(specifierOf("./client"))].some((url) => url.includes("/node_modules/undici/")));
  });
});

describe("on a Node that is too old", () => {
  const old = oldNode();
  const starts = [
    ["the command", () => join(consumer.installed, "dist/cli/bin.js")],
    ["the check before every script", () => join(Consumer.root, "scripts/require-node.mjs")],
  ] as const;

  for (const [name, start] of starts) {
    it.skipIf(old === undefined)(`${name} says so in one line`, () => {
      const { status, stdout, stderr } = spawnSync(old ?? "", [start()], { encoding: "utf8" });
      assert.strictEqual(stdout, "");
      assert.match(stderr, /^[^\n]* needs Node 22\.19 or newer, this is \d+\.\d+\.\d+\.[^\n]*\n$/);
      assert.strictEqual(status, 1);
    });
  }
});

/** Imports every entry point, so each must have types. */
const program = [
  ...entries.map((entry, index) => `import * as entry${index} from "${specifierOf(entry)}";`),
  `import { decide } from "${specifierOf("./policy")}";`,
  `import { StreamProcessor } from "${manifest.name}";`,
  `export const all = [${entries.map((_, index) => `entry${index}`).join(", ")}];`,
  "export const decided: (...input: Parameters<typeof decide>) => ReturnType<typeof decide> = decide;",
  "export { StreamProcessor };",
  "",
].join("\n");

const commonProgram = entries
  .map(
    (entry, index) =>
      `import entry${index} = require("${specifierOf(entry)}");\nexport const all${index} = entry${index};\n`,
  )
  .join("");

/** Errors in the program and in our declarations, and the packages whose own declarations have errors. */
const typeErrors = (resolution: string, files: Readonly<Record<string, string>>, skipLibCheck = false) => {
  const lines = consumer.compile(files, {
    module: resolution === "bundler" ? "esnext" : resolution,
    moduleResolution: resolution,
    skipLibCheck,
  });
  const foreignOf = (line: string): string | undefined => {
    const [, name] = /^[^(]*node_modules\/((?:@[^/]+\/)?[^/(]+)\//.exec(line) ?? [];
    return name === manifest.name ? undefined : name;
  };
  const errors = lines.filter((line) => !line.startsWith(" "));
  return {
    ours: errors.filter((line) => foreignOf(line) === undefined),
    foreign: [...new Set(errors.flatMap((line) => foreignOf(line) ?? []))].sort(),
  };
};

/** The URL of every module that an import loads. */
const loaded = (specifier: string): ReadonlySet<string> => {
  const trace = [
    'import { registerHooks } from "node:module";',
    "const urls = new Set();",
    "registerHooks({ resolve(name, context, next) { const to = next(name, context); urls.add(to.url); return to; } });",
    `await import("${specifier}");`,
    "console.log(JSON.stringify([...urls]));",
  ].join("\n");
  const urls = Schema.decodeSync(Schema.fromJsonString(Schema.Array(Schema.String)))(
    consumer.node("--input-type=module", "-e", trace),
  );
  return new Set(urls);
};

/** A Node below 22.19, if the machine has one. */
function oldNode(): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/bin", "/usr/local/bin"];
  return [...new Set(folders.map((folder) => join(folder, "node")))].find((node) => {
    if (!existsSync(node)) return false;
    const version = spawnSync(node, ["--version"], { encoding: "utf8" }).stdout ?? "";
    const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version) ?? [];
    return major !== undefined && (Number(major) < 22 || (Number(major) === 22 && Number(minor) < 19));
  });
}
