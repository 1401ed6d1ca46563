// Builds what the package needs to run, without declarations: Node strips the types from each source. That takes one second, while the
// compiler takes ten. `npm run build` builds what is packed.
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Matches an import of a source by its relative path. */
const imported = /(\bfrom\s*|\bimport\s*\(?\s*)("\.{1,2}\/[^"]+)\.ts"/g;

// Node warns that this function is experimental.
process.removeAllListeners("warning");

for (const path of globSync("**/*.ts", { cwd: `${root}src` })) {
  const made = `${root}dist/${path.replace(/\.ts$/, ".js")}`;
  mkdirSync(dirname(made), { recursive: true });
  writeFileSync(made, stripTypeScriptTypes(readFileSync(`${root}src/${path}`, "utf8")).replace(imported, '$1$2.js"'));
}
