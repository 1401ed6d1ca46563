// Builds before a script that needs the build. `npm ci` always rebuilds; `npm start`, `npm test` and npx build only if there is no build,
// because npx links a checkout into its cache and runs `prepare` for it while others may be using the existing build.
// All output goes to stderr, because stdout belongs to the script that npm runs next.
import { spawnSync } from "node:child_process";
import { accessSync, constants, readdirSync, rmSync } from "node:fs";

const { npm_command, npm_lifecycle_event } = process.env;
const anew = npm_lifecycle_event === "prepare" && npm_command !== "exec";
const missing = !isBuilt(new URL("../dist/cli/bin.js", import.meta.url));
// A package needs declarations. npm also runs this script for a git dependency, before it packs it.
const packs = anew && (["pack", "publish"].includes(npm_command) || process.env._PACOTE_NO_PREPARE_ !== undefined);

if (anew) forgetHeaders();

if (packs) {
  const options = {
    cwd: new URL("..", import.meta.url),
    stdio: ["ignore", process.stderr, process.stderr],
    shell: true,
  };
  const { error, status } = spawnSync("npm run --silent build", options);
  if (error !== undefined) console.error(`the build could not be started: ${error.message}`);
  process.exit(status ?? 1);
}

if (anew || missing) {
  if (!anew) console.error("dist/cli/bin.js is missing or its build failed: building");
  await import("./clean.mjs");
  await import("./strip.mjs");
  await import("./executable.mjs");
}

// The last step of a build makes the command executable, so a file that is not executable comes from a failed build.
function isBuilt(command) {
  try {
    accessSync(command, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

// The pinned Node contains 67 MB of C++ headers, which nothing here uses.
function forgetHeaders() {
  const builds = new URL("../node_modules/node/node_modules/", import.meta.url);
  let names = [];
  try {
    names = readdirSync(builds);
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  for (const name of names) rmSync(new URL(`${name}/include`, builds), { recursive: true, force: true });
}
