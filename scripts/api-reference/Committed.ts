/**
 * The API reference as it lies in the repository.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The files that are missing, that differ, or that no entry point has any more.
 *
 * @param root the root of the repository
 * @param files what the reference should be, by path
 */
export const stale = (root: string, files: ReadonlyMap<string, string>): ReadonlyArray<string> => {
  const left = globSync("docs/api/*.md", { cwd: root }).filter((path) => !files.has(path));
  const differing = [...files].filter(([path, text]) => committed(join(root, path)) !== text).map(([path]) => path);
  return [...differing, ...left].sort();
};

const committed = (file: string): string | undefined => (existsSync(file) ? readFileSync(file, "utf8") : undefined);
