/**
 * Prints the tables of README and docs into their places, each from its source, and the schema of the configuration.
 *
 * With `--measure` it also runs the SDKs through the conformance kit and prints the results, which takes minutes. The tables of the bench,
 * the matrix and the agents are written by their own commands (`--write`).
 */
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { schemaText } from "./tables/ConfigKeys.ts";
import { printers } from "./tables/Printers.ts";
import { printTables } from "./tables/Sections.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const all = new Map(printers(root));
if (process.argv.includes("--measure")) {
  const { conformance } = await import("./tables/Conformance.ts");
  all.set("conformance", conformance);
}

for (const path of ["README.md", "llms.txt", ...globSync("docs/*.md", { cwd: root }).sort()]) {
  const before = readFileSync(join(root, path), "utf8");
  const after = await printTables(before, all);
  if (after === before) continue;
  writeFileSync(join(root, path), after);
  console.log(`updated the tables of ${path}`);
}
const schema = join(root, "docs/gateway.schema.json");
if (!existsSync(schema) || readFileSync(schema, "utf8") !== schemaText()) {
  writeFileSync(schema, schemaText());
  console.log("updated docs/gateway.schema.json");
}
process.exit(0); // An aborted client may keep a timer.
