/**
 * Installs the agents next to this file, from their own lockfile or in their newest versions. They are not dependencies of the package.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** Timeout of an installation, in milliseconds. It downloads about two gigabytes. */
const installMs = 900_000;

/** Timeout for asking npm for the newest version of a package, in milliseconds. */
const viewMs = 20_000;

/** The folder in which the agents are installed. */
export const modules = join(folder, "node_modules");

/** Returns the pinned version of a package. Builds for one platform are optional dependencies, so that other platforms skip them. */
export const pinnedVersion = (name: string): string | undefined => {
  const { dependencies, optionalDependencies } = manifest(join(folder, "package.json"));
  return dependencies?.[name] ?? optionalDependencies?.[name];
};

/**
 * Installs the agents in their pinned versions, if any is missing or has another version. Install scripts do not run, because the programs
 * inside the packages are sufficient.
 *
 * @param packages names of the packages to run
 */
export const install = (packages: ReadonlyArray<string>): void => {
  if (packages.every((name) => installedVersion(name) === pinnedVersion(name))) return;
  npmInstall([]);
};

/** Installs the newest version of each package. The manifest and the lockfile stay unchanged. */
export const installNewest = (packages: ReadonlyArray<string>): void =>
  npmInstall(packages.map((name) => `${name}@latest`));

const npmInstall = (wanted: ReadonlyArray<string>): void => {
  console.error("agents: installing into scripts/agents/node_modules …");
  // `npm ci` requires the builds for all other platforms in the lockfile (opencode, copilot and others), and not every registry has them.
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", ...wanted];
  const { error, status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", 2, 2], timeout: installMs });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`npm ${args.join(" ")} ended with code ${status}`);
};

/** Asks npm for the newest version of a package; undefined if npm fails. */
export const fetchNewestVersion = (name: string): string | undefined => {
  const args = ["view", `${name}@latest`, "version", "--fetch-retries=0"];
  const { status, stdout } = spawnSync("npm", args, { cwd: folder, encoding: "utf8", timeout: viewMs });
  const version = stdout?.trim() ?? "";
  return status === 0 && version !== "" ? version : undefined;
};

/** This platform's name in packages with builds for several platforms. */
export const platformOf = (): string => `${process.platform}-${process.arch}`;

/** Returns the installed version of a package. */
export const installedVersion = (name: string): string | undefined => {
  const file = join(modules, name, "package.json");
  return existsSync(file) ? manifest(file).version : undefined;
};

const manifest = (file: string) =>
  // Every package has its version in its manifest; this folder's own manifest has the dependencies.
  JSON.parse(readFileSync(file, "utf8")) as {
    readonly version: string;
    readonly dependencies?: Readonly<Record<string, string>>;
    readonly optionalDependencies?: Readonly<Record<string, string>>;
  };
