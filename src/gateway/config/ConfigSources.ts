/**
 * Reads what a configuration names: the file itself, variables of the environment, and other files.
 */
import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Where a configuration comes from, and what it may name. */
export interface ConfigSources {
  readonly text: string;
  /** Others than the file's owner can read it. */
  readonly shared: boolean;
  /** A variable's value; undefined where it is not set. */
  readonly env: (name: string) => string | undefined;
  /** Text of a file, its name read from the configuration's folder; undefined where it cannot be read. */
  readonly file: (path: string) => string | undefined;
  /** Others than such a file's owner can read or write it; left out, it is not known. */
  readonly isShared?: (path: string) => boolean;
}

/** Longest configuration file, in bytes. */
export const configBytesMax = 1024 * 1024;

/** Opens a configuration file; the reason where that cannot be done. */
export const openConfig = (path: string): ConfigSources | { readonly unreadable: string } => {
  try {
    const { mode, size } = statSync(path);
    if (size > configBytesMax) return { unreadable: `expected at most ${configBytesMax} bytes` };
    const folder = dirname(resolve(path));
    const unsafe = problemOfWriters(mode, statSync(folder).mode);
    if (unsafe !== undefined) return { unreadable: unsafe };
    return {
      text: readFileSync(path, "utf8"),
      shared: hasModes && (mode & othersRead) !== 0,
      isShared: (name) => hasModes && isShared(resolve(folder, name)),
      env: (name) => process.env[name],
      file: (name) => textOf(resolve(folder, name)),
    };
  } catch (error) {
    return { unreadable: `the file cannot be read (${codeOf(error)})` };
  }
};

/** Windows keeps no such bits: there the folder's own rights decide. */
const hasModes = process.platform !== "win32";

/** Read rights of a group and of all others. */
const othersRead = 0o044;

const othersWrite = 0o022;

/** In a folder with this bit, only a file's owner can put another file in its place. */
const sticky = 0o1000;

const everyoneWrites = 0o002;

/**
 * Says why a configuration is not read: whoever writes it sends the operator's keys to an address of their choice.
 *
 * @param file mode of the file
 * @param folder mode of its folder
 */
const problemOfWriters = (file: number, folder: number): string | undefined => {
  if (!hasModes) return undefined;
  if ((file & othersWrite) !== 0) return "expected a file that only its owner can write (chmod go-w keeps others out)";
  return (folder & everyoneWrites) !== 0 && (folder & sticky) === 0
    ? "expected a folder that others cannot write, because they could replace the file (chmod o-w keeps them out)"
    : undefined;
};

const isShared = (path: string): boolean => {
  try {
    return (statSync(path).mode & (othersRead | othersWrite)) !== 0;
  } catch {
    return false;
  }
};

const textOf = (path: string): string | undefined => {
  try {
    return statSync(path).size > configBytesMax ? undefined : readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown";
