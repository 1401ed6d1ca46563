/**
 * Writes the API reference: docs/api.md, and docs/api/ with a file for each entry point of package.json.
 *
 * `--check` writes nothing and fails where the files are not what the sources say.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stale } from "./api-reference/Committed.ts";
import { files } from "./api-reference/Markdown.ts";
import { read } from "./api-reference/Reference.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const reference = files(read(root));
const changed = stale(root, reference);
const check = process.argv.includes("--check");

for (const path of check ? [] : changed) {
  const file = join(root, path);
  const text = reference.get(path);
  mkdirSync(dirname(file), { recursive: true });
  if (text === undefined) rmSync(file);
  else writeFileSync(file, text);
}

if (changed.length === 0) console.log(`the API reference is up to date: ${reference.size} files`);
else if (check) console.error(`\`npm run api-reference\` writes anew: ${changed.join(", ")}`);
else console.log(`written: ${changed.join(", ")}`);
process.exitCode = check && changed.length > 0 ? 1 : 0;
