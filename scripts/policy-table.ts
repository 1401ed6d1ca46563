/**
 * Writes the decision table into README: what `stream-recovery policy` prints, between the markers `<!-- policy-table -->` and
 * `<!-- /policy-table -->`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { markdown } from "../src/policy/PolicyTable.ts";

const file = new URL("../README.md", import.meta.url);
const readme = readFileSync(file, "utf8");
const between = /(<!-- policy-table -->\n)[\s\S]*?(<!-- \/policy-table -->)/;

if (!between.test(readme)) {
  console.error("README.md has no line <!-- policy-table --> with a line <!-- /policy-table --> after it");
  process.exit(1);
}
const written = readme.replace(between, (_, from: string, to: string) => `${from}${markdown()}\n${to}`);
if (written === readme) {
  console.log("README.md has the table already");
} else {
  writeFileSync(file, written);
  console.log("README.md has the new table");
}
