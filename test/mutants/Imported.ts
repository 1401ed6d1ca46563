/**
 * Reads a test file together with the files of test/ that it imports: titles may stand in either.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const tests = join(import.meta.dirname, "..");

/** The text of a test file and of all files of test/ behind its imports. */
export const withImports = (file: string, read = new Set<string>()): string => {
  if (read.has(file)) return "";
  read.add(file);
  const text = readFileSync(file, "utf8");
  const imported = [...text.matchAll(/from "(\.[^"]+)"/g)]
    .map(([, specifier]) => join(dirname(file), specifier ?? ""))
    .filter((path) => path.startsWith(`${tests}/`));
  return [text, ...imported.map((path) => withImports(path, read))].join("\n");
};
