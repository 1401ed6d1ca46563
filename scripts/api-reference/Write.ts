/**
 * Writes the pages of the API reference.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Writes the pages into a folder, and removes those of an earlier reference. */
export const write = (pages: ReadonlyMap<string, string>, target: string): void => {
  rmSync(join(target, "docs/api"), { recursive: true, force: true });
  for (const [path, text] of pages) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    writeFileSync(join(target, path), text);
  }
};
