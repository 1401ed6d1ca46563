/**
 * Installs the agents beside this file, by their own lockfile: they are no dependencies of the package.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** How long an installation may take, in milliseconds: about two gigabytes come over the network. */
const installMs = 900_000;

/** Where the agents are installed. */
export const modules = join(folder, "node_modules");

/**
 * Installs the agents where they are not, or not in these versions. Install scripts do not run: the programs inside the
 * packages are all that is needed.
 *
 * @param packages names of the packages that are run
 */
export const install = (packages: ReadonlyArray<string>): void => {
  if (packages.every((name) => installed(name) === wanted(name))) return;
  console.error("agents: installing into scripts/agents/node_modules …");
  // `npm ci` refuses a lockfile without the builds of opencode, copilot and others for every other platform, and not every registry has them all.
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
  const { error, status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", 2, 2], timeout: installMs });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`npm ${args.join(" ")} ended with code ${status}`);
};

/** How packages with builds for several platforms name this one's. */
export const platformOf = (): string => `${process.platform}-${process.arch}`;

/** The version of a package that is installed here. */
export const installed = (name: string): string | undefined => {
  const file = join(modules, name, "package.json");
  return existsSync(file) ? manifest(file).version : undefined;
};

const wanted = (name: string): string | undefined => manifest(join(folder, "package.json")).dependencies?.[name];

const manifest = (file: string) =>
  // Every package has its version in its manifest; this folder's own has its dependencies.
  JSON.parse(readFileSync(file, "utf8")) as {
    readonly version: string;
    readonly dependencies?: Readonly<Record<string, string>>;
  };
