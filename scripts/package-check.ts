/**
 * Packs the package and checks the tarball as its users get it: `publint` for the manifest, `attw` for the types of each entry point.
 *
 * The package has modules only, so `attw` ignores what TypeScript resolves without `exports` and from CommonJS with `node16`.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { install } from "./packages/Install.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const tools = join(root, "scripts/release");
const folder = mkdtempSync(join(tmpdir(), "packed-"));

const run = (command: string, ...args: ReadonlyArray<string>): boolean => {
  const { error, status } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (error !== undefined) throw error;
  return status === 0;
};

const tool = (name: string): string => join(tools, "node_modules/.bin", name);

try {
  install(tools);
  if (!run("npm", "pack", "--pack-destination", folder)) throw new Error("npm pack failed");
  const [name = ""] = readdirSync(folder);
  const tarball = join(folder, name);
  const isClean = run(tool("publint"), "run", tarball, "--strict");
  const areTyped = run(tool("attw"), tarball, "--profile", "esm-only", "--format", "table-flipped");
  process.exitCode = isClean && areTyped ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
