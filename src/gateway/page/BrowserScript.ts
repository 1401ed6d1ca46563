/**
 * Gives the page its script: `Browser`, as it stands beside this module. In the package that is JavaScript; from the sources its
 * types are taken away, as Node does with every module that it runs.
 */
import { readFileSync } from "node:fs";
// By its namespace: Bun has no such export, and a named import of one would end every command there.
import * as modules from "node:module";

const isSource = import.meta.url.endsWith(".ts");

/** The script of the page. */
export const text = (): string => {
  const source = readFileSync(new URL(isSource ? "./Browser.ts" : "./Browser.js", import.meta.url), "utf8");
  return isSource ? modules.stripTypeScriptTypes(source) : source;
};
