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
}

/** Longest configuration file, in bytes. */
export const configBytesMax = 1024 * 1024;

/** Opens a configuration file; the reason where that cannot be done. */
export const openConfig = (path: string): ConfigSources | { readonly unreadable: string } => {
  try {
    const { mode, size } = statSync(path);
    if (size > configBytesMax) return { unreadable: `expected at most ${configBytesMax} bytes` };
    const folder = dirname(resolve(path));
    return {
      text: readFileSync(path, "utf8"),
      // Windows keeps no such bits: there the folder's own rights decide.
      shared: process.platform !== "win32" && (mode & othersRead) !== 0,
      env: (name) => process.env[name],
      file: (name) => textOf(resolve(folder, name)),
    };
  } catch (error) {
    return { unreadable: `the file cannot be read (${codeOf(error)})` };
  }
};

/** Read rights of a group and of all others. */
const othersRead = 0o044;

const textOf = (path: string): string | undefined => {
  try {
    return statSync(path).size > configBytesMax ? undefined : readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown";
