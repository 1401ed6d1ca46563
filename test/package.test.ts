/**
 * Packs the package as npm would, installs it into a project of its own, and uses it from there.
 *
 * The build and the tarball are made in a temporary folder: no test finds a half-written `dist`. What the package declares as a
 * dependency is linked from this repository's node_modules, and nothing else is: an undeclared import fails.
 */
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import { Schema } from "effect";

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    name: Schema.String,
    version: Schema.String,
    files: Schema.Array(Schema.String),
    bin: Schema.Record(Schema.String, Schema.String),
    exports: Schema.Record(Schema.String, Schema.Unknown),
    dependencies: Schema.Record(Schema.String, Schema.String),
    peerDependencies: Schema.Record(Schema.String, Schema.String),
  }),
);

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest = Schema.decodeSync(Manifest)(readFileSync(join(root, "package.json"), "utf8"));
const entries = Object.keys(manifest.exports).filter((entry) => entry !== "./package.json");
const nameOf = (entry: string): string => manifest.name + entry.slice(1);

const temporary = realpathSync(mkdtempSync(join(tmpdir(), "package-test-")));
const staged = join(temporary, "staged");
const consumer = join(temporary, "consumer");
const installed = join(consumer, "node_modules", manifest.name);

beforeAll(() => {
  stage();
  install();
}, 120_000);

afterAll(() => rmSync(temporary, { recursive: true, force: true }));

describe("the packed package", () => {
  it("holds the build and its papers, and nothing else", () => {
    for (const name of [...manifest.files, "package.json"]) assert.isTrue(existsSync(join(installed, name)), name);
    const roots = globSync("*", { cwd: installed }).sort();
    assert.deepStrictEqual(roots, [...manifest.files, "package.json"].sort());
    assert.deepStrictEqual(
      globSync("dist/**/*.*", { cwd: installed }).filter((path) => !/\.(js|d\.ts|css|html|svg)$/.test(path)),
      [],
    );
  });

  it("exports only files that it has", () => {
    const targets = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === "object" && entry !== null ? Object.values(entry) : [entry],
    );
    assert.deepStrictEqual(
      targets.filter((target) => typeof target !== "string" || !existsSync(join(installed, target))),
      [],
    );
  });

  for (const entry of entries) {
    it(`answers import("${nameOf(entry)}") under Node`, () => {
      const script = `console.log(Object.keys(await import("${nameOf(entry)}")).length)`;
      assert.isAbove(Number(run(["--input-type=module", "-e", script])), 0);
    });
  }

  for (const resolution of ["nodenext", "bundler"]) {
    it(`type-checks in a strict project with the library check on (${resolution})`, () => {
      assert.deepStrictEqual(typeErrors(resolution, program), []);
    });
  }

  it("gives types that a wrong program does not pass", () => {
    const errors = typeErrors("nodenext", `${program}export const wrong: number = decide;\n`);
    assert.match(errors.join("\n"), /^program\.ts\(\d+,\d+\): error TS2322/);
  });

  it("runs its command through the link that npm makes", () => {
    for (const command of Object.keys(manifest.bin)) {
      const link = join(consumer, "node_modules", ".bin", command);
      const { status, stdout, stderr } = spawnSync(link, ["--version"], {
        cwd: consumer,
        encoding: "utf8",
        env: environment,
      });
      assert.include(stdout, manifest.version, stderr);
      assert.strictEqual(status, 0);
    }
  });
});

describe("an embedder loads no more than it asked for", () => {
  const packageOnly = (urls: ReadonlySet<string>): ReadonlyArray<string> =>
    [...urls].filter((url) => url.includes(`/node_modules/${manifest.name}/`));

  for (const entry of [".", "./policy", "./provider"]) {
    // `import "effect"` itself loads some of its own http and sql modules (Persistence does): they are its own affair.
    it(`"${nameOf(entry)}" loads itself and what \`import "effect"\` loads`, () => {
      const fromEffect = loaded("effect");
      const fromUs = loaded(nameOf(entry));
      const own = packageOnly(fromUs);
      assert.isAbove(own.length, 0);
      assert.deepStrictEqual(
        [...fromUs].filter((url) => !own.includes(url) && !fromEffect.has(url)),
        [],
      );
      assert.deepStrictEqual(
        own.filter((url) => /\/dist\/(client|adapters|gateway|cli|testing)\/|\/Sql\w*\.js$/.test(url)),
        [],
      );
    });
  }

  it("and the trace sees more where there is more: the client loads undici", () => {
    assert.isTrue([...loaded(nameOf("./client"))].some((url) => url.includes("/node_modules/undici/")));
  });
});

describe("on a Node that is too old", () => {
  const old = oldNode();

  for (const start of [join(installed, "dist/cli/bin.js"), join(root, "scripts/require-node.mjs")]) {
    it.skipIf(old === undefined)(`${start.split("/").at(-1)} says so in one line`, () => {
      const { status, stdout, stderr } = spawnSync(old ?? "", [start], { cwd: consumer, encoding: "utf8" });
      assert.strictEqual(stdout, "");
      assert.match(stderr, /^[^\n]* needs Node 22\.19 or newer, this is \d+\.\d+\.\d+\.[^\n]*\n$/);
      assert.strictEqual(status, 1);
    });
  }
});

/** Uses every entry point: each must have types. */
const program = [
  ...entries.map((entry, index) => `import * as entry${index} from "${nameOf(entry)}";`),
  `import { decide } from "${nameOf("./policy")}";`,
  `import { StreamProcessor } from "${manifest.name}";`,
  `export const all = [${entries.map((_, index) => `entry${index}`).join(", ")}];`,
  "export const decided: (...input: Parameters<typeof decide>) => ReturnType<typeof decide> = decide;",
  "export { StreamProcessor };",
  "",
].join("\n");

/** What tests start must not inherit the test runner's own options. */
const environment = { PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ""}` };

const stage = (): void => {
  mkdirSync(staged);
  for (const name of ["package.json", ...manifest.files.filter((file) => file !== "dist")]) {
    // what is missing is named by the first test
    if (existsSync(join(root, name))) copyFileSync(join(root, name), join(staged, name));
  }
  execFileSync(process.execPath, [
    join(root, "node_modules/typescript/bin/tsc"),
    "-p",
    join(root, "scripts/tsconfig.build.json"),
    "--outDir",
    join(staged, "dist"),
  ]);
  execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", temporary], {
    cwd: staged,
    env: { ...process.env, ...environment },
    stdio: "pipe",
  });
};

const install = (): void => {
  mkdirSync(installed, { recursive: true });
  const tarball = join(temporary, `${manifest.name}-${manifest.version}.tgz`);
  execFileSync("tar", ["-xzf", tarball, "-C", installed, "--strip-components=1"]);
  for (const name of [...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }), "@types/node"]) {
    const link = join(consumer, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, "node_modules", name), link);
  }
  mkdirSync(join(consumer, "node_modules", ".bin"));
  for (const [command, file] of Object.entries(manifest.bin)) {
    chmodSync(join(installed, file), 0o755);
    symlinkSync(join("..", manifest.name, file), join(consumer, "node_modules", ".bin", command));
  }
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
};

/** Runs Node in the consumer's project; gives what it printed. */
const run = (args: ReadonlyArray<string>): string => {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: consumer,
    encoding: "utf8",
    env: environment,
  });
  if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}\n${stderr}`);
  return stdout;
};

/** Every module that an import resolves, as its URL. */
const loaded = (specifier: string): ReadonlySet<string> => {
  const trace = [
    'import { registerHooks } from "node:module";',
    "const urls = new Set();",
    "registerHooks({ resolve(name, context, next) { const to = next(name, context); urls.add(to.url); return to; } });",
    `await import("${specifier}");`,
    "console.log(JSON.stringify([...urls]));",
  ].join("\n");
  const urls = Schema.decodeSync(Schema.fromJsonString(Schema.Array(Schema.String)))(
    run(["--input-type=module", "-e", trace]),
  );
  return new Set(urls);
};

/** The compiler's errors. Those in effect's own declarations are left out: it names types of the DOM, which ours do without. */
const typeErrors = (resolution: string, text: string): ReadonlyArray<string> => {
  const compilerOptions = {
    target: "es2024",
    lib: ["es2024", "esnext.disposable"],
    module: resolution === "bundler" ? "esnext" : resolution,
    moduleResolution: resolution,
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    noEmit: true,
  };
  writeFileSync(join(consumer, "program.ts"), text);
  writeFileSync(join(consumer, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  const { error, stdout } = spawnSync(
    process.execPath,
    [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.json", "--pretty", "false"],
    { cwd: consumer, encoding: "utf8" },
  );
  if (error !== undefined) throw error;
  return stdout.split("\n").filter((line) => line !== "" && !line.includes("/node_modules/effect/"));
};

/** A Node below 22.19, where the machine has one. */
function oldNode(): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/bin", "/usr/local/bin"];
  return [...new Set(folders.map((folder) => join(folder, "node")))].find((node) => {
    if (!existsSync(node)) return false;
    const version = spawnSync(node, ["--version"], { encoding: "utf8" }).stdout ?? "";
    const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version) ?? [];
    return major !== undefined && (Number(major) < 22 || (Number(major) === 22 && Number(minor) < 19));
  });
}
