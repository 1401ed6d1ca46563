/**
 * Counts the sources that a module loads with its static imports.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Number of files, and of their lines. */
export interface Sizes {
  readonly files: number;
  readonly lines: number;
}

interface Module {
  readonly lines: number;
  /** Modules of this package that it loads directly, as paths from the root. */
  readonly loads: ReadonlyArray<string>;
}

const known = new Map<string, Module>();

const moduleOf = (path: string): Module => {
  const found = known.get(path);
  if (found !== undefined) return found;
  const text = readFileSync(join(root, path), "utf8");
  const { module } = parseSync(path, text);
  const imported = module.staticImports
    .filter(({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType))
    .map(({ moduleRequest }) => moduleRequest.value);
  const exported = module.staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ isType, moduleRequest }) => (isType || moduleRequest === null ? [] : [moduleRequest.value])),
  );
  const own = [...imported, ...exported].filter((name) => name.startsWith("."));
  const loads = [...new Set(own.map((name) => relative(root, resolve(root, dirname(path), name))))];
  const it = { lines: text.split("\n").length - 1, loads };
  known.set(path, it);
  return it;
};

/** Returns the modules of this package that a source loads directly, as paths from the root. */
export const importsOf = (path: string): ReadonlyArray<string> => moduleOf(path).loads;

/** Returns the size of a source and everything it loads. */
export const loadedBy = (path: string): Sizes => {
  const loaded = new Set([path]);
  // Iterating over a set includes entries added meanwhile.
  for (const each of loaded) for (const next of moduleOf(each).loads) loaded.add(next);
  return sizesOf([...loaded]);
};

const sizesOf = (paths: ReadonlyArray<string>): Sizes => ({
  files: paths.length,
  lines: paths.reduce((sum, path) => sum + moduleOf(path).lines, 0),
});

/** Returns the entry points of the package and their sources. */
export const entryPoints = (): ReadonlyArray<{ readonly name: string; readonly source: string }> => {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    // Safe: test/package.test.ts checks the shape of the package's own manifest.
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  };
  return Object.entries(exports).flatMap(([name, target]) =>
    typeof target === "string"
      ? []
      : [{ name, source: target.default.replace(/^\.\/dist\//, "src/").replace(/\.js$/, ".ts") }],
  );
};

/** Returns the size of each folder below `src`, and of `src`, `test` and `scripts` as a whole. */
export const rooms = (): ReadonlyArray<readonly [room: string, sizes: Sizes]> => {
  const all = (folder: string) =>
    globSync(`${folder}/**/*.ts`, { cwd: root, exclude: (name) => name.includes("node_modules") }).sort();
  const source = all("src");
  const names = [...new Set(source.map((path) => path.split("/").slice(0, -1).join("/")))].sort();
  return [
    ...names.map((name) => [name, sizesOf(source.filter((path) => dirname(path) === name))] as const),
    ...["src", "test", "scripts"].map((name) => [name, sizesOf(all(name))] as const),
  ];
};
