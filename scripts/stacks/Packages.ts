/**
 * Installs the Debian packages that a stack or a proxy needs.
 */
import { spawnSync } from "node:child_process";

/** The requirements of a stack or proxy. */
export interface Need {
  readonly commands: ReadonlyArray<string>;
  /** The Debian packages that contain the commands. */
  readonly packages: ReadonlyArray<string>;
  /** A Python module that must be importable. */
  readonly python?: string;
}

/** True if all commands and the Python module are installed. */
export const hasCommand = ({ commands, python }: Need): boolean =>
  commands.every((command) => succeeds("sh", ["-c", 'command -v "$1"', "sh", command])) &&
  (python === undefined || succeeds("python3", ["-c", `import ${python}`]));

/**
 * Installs missing packages, if this is root on a Debian.
 *
 * @returns the packages that could not be installed
 */
export const install = (needs: ReadonlyArray<Need>): ReadonlyArray<string> => {
  const missing = needs.filter((need) => !hasCommand(need));
  const packages = [...new Set(missing.flatMap((need) => need.packages))];
  if (packages.length > 0 && process.getuid?.() === 0 && succeeds("sh", ["-c", "command -v apt-get"])) {
    console.error(`stacks: installing ${packages.join(", ")} …`);
    succeeds("apt-get", ["update", "-qq"]);
    for (const name of packages) succeeds("apt-get", ["install", "-qqy", "--no-install-recommends", name]);
  }
  return missing.filter((need) => !hasCommand(need)).flatMap((need) => need.packages);
};

const succeeds = (command: string, args: ReadonlyArray<string>): boolean =>
  spawnSync(command, args, { stdio: "ignore", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } }).status ===
  0;
