/**
 * Finds the quick tests that load a source file. They are the likeliest to notice a mutation of it.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { long, postgres } from "../../../test/Suites.ts";

/** A test file and the files that it loads, each with the number of imports on the shortest path to it. */
interface TestFile {
  readonly path: string;
  readonly bytes: number;
  readonly loads: ReadonlyMap<string, number>;
}

/** Additional distance of a test outside the mirrored folder. */
const otherFolder = 2;

/**
 * Tests that compare recorded behaviour of whole rooms, with the rooms. They notice most mutations there, although many imports are between
 * them and the source.
 */
const recorded: ReadonlyArray<readonly [test: RegExp, room: RegExp]> = [
  [/^test\/simulation\/Simulation\.test\.ts$/, /^src\/(?:runtime|stages)\//],
  [/^test\/failure\/Corpus\.test\.ts$/, /^src\/failure\//],
  [/^test\/seam\/Corpus\.test\.ts$/, /^src\/seam\//],
  [/^test\/facts\/Corpus\.test\.ts$/, /^src\/facts\//],
];

const staticImport = /^(?:import|export)\s+(?!type\b)(?:[\w*{},\s]+?from\s+)?"(\.[^"]+)"/gm;
const dynamicImport = /\bimport\("(\.[^"]+)"\)/g;

/** The quick tests of a repository and the files they load. */
export class NearTests {
  readonly #files: ReadonlyArray<TestFile>;

  constructor(root: string) {
    const imports = new Map<string, ReadonlyArray<string>>();
    const text = (path: string) => readFileSync(join(root, path), "utf8");
    const importsOf = (path: string): ReadonlyArray<string> => {
      const known = imports.get(path);
      if (known !== undefined) return known;
      const found = path.endsWith(".ts") && existsSync(join(root, path)) ? importedBy(path, text(path)) : [];
      imports.set(path, found);
      return found;
    };
    // Tests of the mutants read the sources as text, so they would notice every change.
    const excluded = [...long, ...postgres, "test/mutants/*"];
    this.#files = globSync("test/**/*.test.ts", { cwd: root, exclude: excluded })
      .sort()
      .map((path) => ({ path, bytes: text(path).length, loads: distances(path, importsOf) }));
  }

  /** The test files that load a source file, nearest first: the file with the same name, recorded behaviour, its folder, then few imports between. */
  of(source: string): ReadonlyArray<string> {
    return this.ofAny([source]);
  }

  /** The test files that load any of these source files, those nearest to one of them first. */
  ofAny(sources: ReadonlyArray<string>): ReadonlyArray<string> {
    return this.#files
      .map((test) => ({ ...test, rank: Math.min(...sources.map((source) => rankOf(test, source))) }))
      .filter(({ rank }) => rank < Number.POSITIVE_INFINITY)
      .toSorted((a, b) => a.rank - b.rank || a.bytes - b.bytes)
      .map(({ path }) => path);
  }
}

const rankOf = ({ loads, path }: TestFile, source: string): number => {
  const distance = loads.get(source);
  if (distance === undefined) return Number.POSITIVE_INFINITY;
  if (basename(path, ".test.ts") === basename(source, ".ts")) return 0;
  if (recorded.some(([test, room]) => test.test(path) && room.test(source))) return 0.5;
  return distance + (dirname(path) === dirname(source).replace(/^src/, "test") ? 0 : otherFolder);
};

const importedBy = (path: string, text: string): ReadonlyArray<string> =>
  [...text.matchAll(staticImport), ...text.matchAll(dynamicImport)].map(([, specifier = ""]) =>
    posix.join(posix.dirname(path), specifier),
  );

const distances = (start: string, importsOf: (path: string) => ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const found = new Map([[start, 0]]);
  // Iterating over a map includes entries added meanwhile, which makes this a breadth-first search.
  for (const [path, distance] of found)
    for (const next of importsOf(path)) if (!found.has(next)) found.set(next, distance + 1);
  return found;
};
