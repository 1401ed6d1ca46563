// Builds before a script that needs the build. `npm ci` builds anew; `npm start`, `npm test` and npx only where nothing was built:
// npx links a checkout into its cache and runs our `prepare` for that, while others may be running what is there.
// Everything it prints goes to stderr: stdout belongs to the script that npm runs next.
import { spawnSync } from "node:child_process";
import { accessSync, constants, readdirSync, rmSync } from "node:fs";

const { npm_command, npm_lifecycle_event } = process.env;
const anew = npm_lifecycle_event === "prepare" && npm_command !== "exec";
const missing = !isBuilt(new URL("../dist/cli/bin.js", import.meta.url));

if (anew) forgetHeaders();

if (anew || missing) {
  if (!anew) console.error("dist/cli/bin.js is missing or of a build that failed: building it");
  const options = {
    cwd: new URL("..", import.meta.url),
    stdio: ["ignore", process.stderr, process.stderr],
    shell: true,
  };
  const { error, status } = spawnSync("npm run --silent build", options);
  if (error !== undefined) console.error(`the build could not be started: ${error.message}`);
  process.exit(status ?? 1);
}

// The last step of a build makes the command executable: a file that is not is of a build that failed.
function isBuilt(command) {
  try {
    accessSync(command, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

// The pinned Node has 67 MB of C++ headers, and nothing here is compiled against them.
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
