/**
 * Runs a tool of `npm run check`, and installs the tools first if their versions are not those of the lockfile beside this file.
 *
 *   node scripts/check/tool.mjs NAME [ARGUMENT...]
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname;

const read = (file) => {
  try {
    return JSON.parse(readFileSync(join(folder, file), "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
};

const run = (command, args, options) => {
  const { error, status } = spawnSync(command, args, options);
  if (error) throw error;
  return status ?? 1;
};

const wanted = Object.entries(read("package.json").dependencies);
if (wanted.some(([name, version]) => read(`node_modules/${name}/package.json`)?.version !== version)) {
  console.error(`installing ${wanted.map((it) => it.join("@")).join(" and ")} into scripts/check/node_modules`);
  const status = run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder, stdio: ["ignore", 2, 2] });
  if (status !== 0) process.exit(status);
}

const [name, ...args] = process.argv.slice(2);
process.exit(run(join(folder, "node_modules/.bin", name), args, { stdio: "inherit" }));
