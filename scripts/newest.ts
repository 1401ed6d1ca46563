/**
 * `npm run newest`: type-checks and tests a copy of this checkout with the newest releases of its peers and of the SDKs under test. The
 * checkout itself keeps its pinned versions.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const help = `Usage: npm run newest -- [options]

Installs the newest effect, @effect/*, ai, @ai-sdk/*, openai, @anthropic-ai/sdk and @google/genai in a temporary copy of this checkout,
prints what differs from the pinned versions, then type-checks and runs the quick tests there.

  --types     only type-checks
  --keep      keeps the copy, and prints its path
  --help      prints this text

Exit code: 0 all is well with the newest releases, 1 it is not.`;

const { values } = parseArgs({
  options: { types: { type: "boolean" }, keep: { type: "boolean" }, help: { type: "boolean", short: "h" } },
});

const root = fileURLToPath(new URL("..", import.meta.url));

/** The packages whose users install their own version. */
const moving = /^(?:effect|@effect\/.*|ai|@ai-sdk\/.*|openai|@anthropic-ai\/sdk|@google\/genai)$/;

const copy = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "newest-"));
  const files = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  for (const file of files.split("\0").filter(Boolean)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file));
  }
  return folder;
};

const run = (folder: string, command: string, ...args: ReadonlyArray<string>): boolean => {
  console.error(`newest: ${command} ${args.join(" ")}`);
  // The output goes to stderr: stdout has the versions and the verdict.
  return spawnSync(command, args, { cwd: folder, stdio: ["ignore", 2, 2] }).status === 0;
};

const main = (): number => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const names = Object.keys(devDependencies).filter((name) => moving.test(name));
  const folder = copy();
  try {
    if (!run(folder, "npm", "install", "--save-exact", "--no-audit", "--no-fund", ...names.map((it) => `${it}@latest`)))
      throw new Error("npm could not install the newest releases together");
    for (const name of names) {
      const { version } = JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"));
      const pinned = devDependencies[name];
      console.log(version === pinned ? `${name} ${version}` : `${name} ${version}, pinned ${pinned}`);
    }
    const isTyped = run(folder, "npm", "run", "types");
    const isGreen = values.types === true || run(folder, "npm", "test");
    console.log(isTyped && isGreen ? "newest: all is well" : `newest: ${isTyped ? "tests" : "types"} failed`);
    return isTyped && isGreen ? 0 : 1;
  } finally {
    if (values.keep === true) console.error(`newest: ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
};

if (values.help === true) console.log(help);
else process.exitCode = main();
