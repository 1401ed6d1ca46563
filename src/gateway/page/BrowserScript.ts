/**
 * Provides the page's script, the `Browser` module next to this one. The package contains it as JavaScript; in a checkout its types are
 * stripped, as Node does with every module.
 */
import { readFileSync } from "node:fs";
// Namespace import: Bun lacks this export, and a named import would end every command there.
import * as modules from "node:module";

const isSource = import.meta.url.endsWith(".ts");

/** Returns the page's script. */
export const text = (): string => {
  const source = readFileSync(new URL(isSource ? "./Browser.ts" : "./Browser.js", import.meta.url), "utf8");
  return isSource ? modules.stripTypeScriptTypes(source) : source;
};
