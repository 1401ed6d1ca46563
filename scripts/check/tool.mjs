/**
 * Runs a tool of `npm run check`. First installs the tools if their versions differ from the lockfile next to this file.
 *
 *   node scripts/check/tool.mjs NAME [ARGUMENT...]
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { install } from "../packages/Install.ts";

const folder = import.meta.dirname;

install(folder);

const [name, ...args] = process.argv.slice(2);
const { error, status } = spawnSync(join(folder, "node_modules/.bin", name), args, { stdio: "inherit" });
if (error) throw error;
process.exit(status ?? 1);
