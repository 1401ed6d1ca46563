/**
 * Installs the packages of a folder with its own lockfile. They are too large for the package's own dependencies.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** True if the packages of a folder are installed in the versions of its manifest. */
export const isInstalled = (folder: string): boolean =>
  Object.entries(manifest(folder)?.dependencies ?? {}).every(
    ([name, version]) => manifest(join(folder, "node_modules", name))?.version === version,
  );

/**
 * Installs the packages of a folder, if they are missing.
 *
 * @throws Error if npm fails
 */
export const install = (folder: string): void => {
  if (isInstalled(folder)) return;
  const names = Object.entries(manifest(folder)?.dependencies ?? {}).map((it) => it.join("@"));
  console.error(`installing ${names.join(" and ")} into ${join(folder, "node_modules")}`);
  const { error, status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], {
    cwd: folder,
    stdio: ["ignore", 2, 2],
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`npm ci in ${folder} ended with ${status}`);
};

const manifest = (folder: string): Manifest | undefined => {
  try {
    // Safe: npm or this repository wrote the file.
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
};
