/**
 * Reads a configuration file and gives access to the variables and files that it names.
 */
import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** The text of a configuration, and access to the variables and files that it names. */
export interface ConfigSources {
  readonly text: string;
  /** True if users other than the file's owner can read the configuration. */
  readonly shared: boolean;
  /** Returns a variable's value; undefined if it is not set. */
  readonly env: (name: string) => string | undefined;
  /** Returns a file's text; undefined if the file cannot be read. A relative path starts at the configuration's folder. */
  readonly file: (path: string) => string | undefined;
  /** True if users other than the file's owner can read or write the file. Omitted if that cannot be determined. */
  readonly isShared?: (path: string) => boolean;
}

/** Maximum size of a configuration file, in bytes. */
export const configBytesMax = 1024 * 1024;

/** Opens a configuration file, or returns the reason why it cannot be read. */
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
      file: (name) => readText(resolve(folder, name)),
    };
  } catch (error) {
    return { unreadable: `the file cannot be read (${codeOf(error)})` };
  }
};

/** Windows has no mode bits. There the folder's access rights protect the file. */
const hasModes = process.platform !== "win32";

/** Mode bits by which the group and other users may read a file. */
const othersRead = 0o044;

const othersWrite = 0o022;

/** In a folder with this bit, only the owner of a file can replace it. */
const sticky = 0o1000;

const everyoneWrites = 0o002;

/**
 * Refuses a configuration that other users can write. They could otherwise redirect the operator's keys to an address of theirs.
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

const readText = (path: string): string | undefined => {
  try {
    return statSync(path).size > configBytesMax ? undefined : readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown";
