/**
 * Writes the API reference: docs/api.md, and docs/api/ with a file for each entry point of package.json. npm does so before it
 * packs (`prepack`): the reference is part of the package and not of the repository.
 *
 * An argument names another folder than this repository to write into.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { files } from "./api-reference/Markdown.ts";
import { read } from "./api-reference/Reference.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = process.argv[2] ?? root;
const reference = files(read(root));

rmSync(join(target, "docs/api"), { recursive: true, force: true });
for (const [path, text] of reference) {
  mkdirSync(dirname(join(target, path)), { recursive: true });
  writeFileSync(join(target, path), text);
}
// stdout belongs to `npm pack`, which prints the name of its tarball there
console.error(`the API reference: ${reference.size} files`);
