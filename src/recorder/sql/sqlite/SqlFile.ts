/**
 * Finds, makes and watches the file of the SQLite store: only its owner reads it, and one that was moved away is noticed.
 */
import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** Mode of a new database file: only its owner may read facts about their work. */
const fileMode = 0o600;

/** Mode of a new folder for it. */
const folderMode = 0o700;

/** A store that lives as long as its connection, for tests. */
const inMemory = ":memory:";

/** The file was deleted, moved or replaced while it was open: what would be written now would be lost. */
export class FileGone extends Error {
  override readonly name = "FileGone";
}

/**
 * The file of the store when none is named: `$STREAM_RECOVERY_DB`; else `stream-recovery/runs.db` below `%LOCALAPPDATA%` on
 * Windows and below `$XDG_STATE_HOME` elsewhere (XDG Base Directory Specification; `~/.local/state` when it is not set).
 */
export const defaultFile = (
  env: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): string => {
  const named = env.STREAM_RECOVERY_DB ?? "";
  return named === "" ? ownFile(env, platform) : named;
};

/** The file in the user's state folder, also where the environment names another store. */
export const ownFile = (
  env: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): string => {
  const [own, fallback] =
    platform === "win32"
      ? [env.LOCALAPPDATA, join(homedir(), "AppData", "Local")]
      : [env.XDG_STATE_HOME, join(homedir(), ".local", "state")];
  return join(own === undefined || own === "" ? fallback : own, "stream-recovery", "runs.db");
};

/** Whether the name is that of a file; `:memory:` and `file:` URIs are SQLite's own. */
export const isFile = (name: string): boolean => name !== inMemory && !name.startsWith("file:");

/**
 * Says why a name is no file's, where it is an address: SQLite would make a file of that name. An address may hold a
 * password, so only its scheme is told.
 *
 * @param expected what is taken in its place
 * @returns undefined for a path, and for SQLite's own `:memory:` and `file:`
 */
export const problem = (name: string, expected: string): string | undefined => {
  if (/^\s+[a-z][a-z\d+.-]+:/i.test(name)) return "expected a name of a store without blanks in front of it";
  // One letter is a drive of Windows.
  const scheme = (/^([a-z][a-z\d+.-]+):\/\//i.exec(name) ??
    /^(jdbc|sqlite|mysql|mariadb|libsql|postgres|postgresql):/i.exec(name))?.[1];
  return scheme === undefined || scheme.toLowerCase() === "file"
    ? undefined
    : `expected ${expected}, got an address that begins with ${scheme}:`;
};

/**
 * Makes the file and its folder where they are not there yet.
 *
 * @throws NodeJS.ErrnoException why that was not possible
 */
export const prepare = (file: string): void => {
  if (existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true, mode: folderMode });
  // SQLite gives its journal files the mode of the database.
  closeSync(openSync(file, "a", fileMode));
};

/** Which file stands at a path now; undefined when none does. */
export const identity = (file: string): string | undefined => {
  const found = statSync(file, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? undefined : `${found.dev}:${found.ino}`;
};
