/**
 * Writes docs/errors.md: provokes every error of test/failure/provoked anew and puts what this machine's clients said between the
 * markers `<!-- errors-table -->` and `<!-- /errors-table -->`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import type { Fault } from "../test/failure/provoked/Faults.ts";
import { between, markdown } from "../test/failure/provoked/Markdown.ts";
import type { Outcome } from "../test/failure/provoked/Outcome.ts";
import { provokedOf } from "../test/failure/provoked/Section.ts";
import { sections } from "../test/failure/provoked/Sections.ts";

const file = new URL("../docs/errors.md", import.meta.url);
const before = readFileSync(file, "utf8");
if (!between.test(before)) {
  console.error("docs/errors.md has no line <!-- errors-table --> with a line <!-- /errors-table --> after it");
  process.exit(1);
}

const rows = new Map<Fault, ReadonlyArray<readonly [string, Outcome]>>();
for (const section of sections) for (const fault of section.faults) rows.set(fault, await provokedOf(section, fault));

const table = markdown(sections, rows);
const after = before.replace(between, () => `<!-- errors-table -->\n${table}\n<!-- /errors-table -->`);
if (after !== before) writeFileSync(file, after);
console.log(after === before ? "docs/errors.md has the tables already" : "docs/errors.md has the new tables");
process.exit(0); // a client that was told to abort may keep a timer
