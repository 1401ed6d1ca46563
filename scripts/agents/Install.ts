/**
 * Installs the agents beside this file, by their own lockfile or in their newest versions: they are no dependencies of the package.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** How long an installation may take, in milliseconds: about two gigabytes come over the network. */
const installMs = 900_000;

/** How long npm may take to name the newest version of a package, in milliseconds. */
const viewMs = 20_000;

/** Where the agents are installed. */
export const modules = join(folder, "node_modules");

/** The version of a package that is pinned here. The builds for one platform are optional: others do without them. */
export const pinned = (name: string): string | undefined => {
  const { dependencies, optionalDependencies } = manifest(join(folder, "package.json"));
  return dependencies?.[name] ?? optionalDependencies?.[name];
};

/**
 * Installs the agents in their pinned versions, if they are missing or have other ones. Install scripts do not run: the programs inside
 * the packages are all that is needed.
 *
 * @param packages names of the packages that are run
 */
export const install = (packages: ReadonlyArray<string>): void => {
  if (packages.every((name) => installed(name) === pinned(name))) return;
  npmInstall([]);
};

/** Installs the newest version of each package. The manifest and the lockfile stay as they are. */
export const installNewest = (packages: ReadonlyArray<string>): void =>
  npmInstall(packages.map((name) => `${name}@latest`));

const npmInstall = (wanted: ReadonlyArray<string>): void => {
  console.error("agents: installing into scripts/agents/node_modules …");
  // `npm ci` refuses a lockfile without the builds of opencode, copilot and others for every other platform, and not every registry has them all.
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", ...wanted];
  const { error, status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", 2, 2], timeout: installMs });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`npm ${args.join(" ")} ended with code ${status}`);
};

/** The newest version of a package, as npm names it; undefined if it cannot be asked. */
export const newest = (name: string): string | undefined => {
  const args = ["view", `${name}@latest`, "version", "--fetch-retries=0"];
  const { status, stdout } = spawnSync("npm", args, { cwd: folder, encoding: "utf8", timeout: viewMs });
  const version = stdout?.trim() ?? "";
  return status === 0 && version !== "" ? version : undefined;
};

/** How packages with builds for several platforms name this one's. */
export const platformOf = (): string => `${process.platform}-${process.arch}`;

/** The version of a package that is installed here. */
export const installed = (name: string): string | undefined => {
  const file = join(modules, name, "package.json");
  return existsSync(file) ? manifest(file).version : undefined;
};

const manifest = (file: string) =>
  // Every package has its version in its manifest; this folder's own has its dependencies.
  JSON.parse(readFileSync(file, "utf8")) as {
    readonly version: string;
    readonly dependencies?: Readonly<Record<string, string>>;
    readonly optionalDependencies?: Readonly<Record<string, string>>;
  };
