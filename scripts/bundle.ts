/**
 * Reduces a build to what the package ships: `npm run build` calls it after the compiler.
 *
 * Modules that an embedder's own bundler may leave out keep their own file. Modules that only the command line, the gateway and the test kit
 * use are joined in `dist/programs`. Declarations that no entry point names are removed.
 *
 * An argument names another root folder.
 */
import { existsSync, globSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { bundler } from "./programs/Bundler.ts";

const root = resolve(process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url)));

/** Entry points that run in servers and tests, which nobody bundles for a browser or an edge. */
const programEntries = ["./gateway", "./testing"];

/** Modules that are started by their path. */
const started = ["dist/cli/main.js", "dist/cli/serve/WorkerMain.js"];

/** Modules that import nothing until they have checked the Node version, or that a browser loads. They stay as they are compiled. */
const alone = ["dist/cli/bin.js", "dist/gateway/page/Browser.js"];

/** The folder of joined modules. Every module that looks for a file by its own URL stands at another path below `dist`. */
const joinedFolder = "programs";

interface Target {
  readonly types: string;
  readonly default: string;
}

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  // Safe: test/package.test.ts checks the shape of the package's own manifest.
  readonly exports: Readonly<Record<string, string | Target>>;
};

const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === "string" ? [] : [{ name, types: target.types.slice(2), module: target.default.slice(2) }],
);

const imported = /(?:\bfrom\s*|\bimport\s*\(?\s*)["'](\.{1,2}\/[^"']+)\.[jt]s["']/g;

/** Returns the given files, and every file that they import directly or through others. */
const reach = (starts: ReadonlyArray<string>, extension: ".js" | ".d.ts"): ReadonlySet<string> => {
  const found = new Set(starts);
  // Iterating over a set includes entries added meanwhile.
  for (const file of found) {
    for (const [, path = ""] of readFileSync(join(root, file), "utf8").matchAll(imported)) {
      const target = join(dirname(file), path + extension);
      if (existsSync(join(root, target))) found.add(target);
    }
  }
  return found;
};

/** Joins modules into few files. Modules in `kept` stay imports. */
const joinModules = async (inputs: ReadonlyArray<string>, kept: ReadonlySet<string>): Promise<ReadonlySet<string>> => {
  const { rolldown } = await bundler();
  const built = await rolldown({
    cwd: root,
    input: Object.fromEntries(inputs.map((file) => [relative("dist", file).replace(/\.js$/, ""), join(root, file)])),
    platform: "node",
    plugins: [
      {
        name: "package",
        resolveId: (specifier, importer) => {
          if (importer === undefined) return null;
          if (!specifier.startsWith(".")) return { id: specifier, external: true };
          const path = join(dirname(importer), specifier);
          return kept.has(relative(root, path)) ? { id: path, external: true } : null;
        },
        // A joined module must still find the files beside its old path.
        transform: (code, id) =>
          code.replaceAll("import.meta.url", `new URL("../${relative(join(root, "dist"), id)}", import.meta.url).href`),
      },
    ],
    onLog: (level, { message }) => {
      if (level === "warn") throw new Error(message);
    },
  });
  const { output } = await built.write({
    format: "esm",
    dir: join(root, "dist"),
    entryFileNames: "[name].js",
    chunkFileNames: `${joinedFolder}/[name]-[hash].js`,
  });
  await built.close();
  return new Set(output.map(({ fileName }) => `dist/${fileName}`));
};

const kept = reach(
  entries.filter(({ name }) => !programEntries.includes(name)).map(({ module }) => module),
  ".js",
);
const programs = entries.filter(({ name }) => programEntries.includes(name)).map(({ module }) => module);
const written = await joinModules([...programs, ...started], kept);
const declarations = reach(
  entries.map(({ types }) => types),
  ".d.ts",
);

for (const file of globSync("dist/**/*.{js,d.ts}", { cwd: root }))
  if (![kept, written, declarations].some((files) => files.has(file)) && !alone.includes(file))
    rmSync(join(root, file));

for (const folder of globSync("dist/**/", { cwd: root }).sort().toReversed())
  if (readdirSync(join(root, folder)).length === 0) rmdirSync(join(root, folder));

console.error(`dist: ${kept.size + written.size + alone.length} modules, ${declarations.size} declarations`);
