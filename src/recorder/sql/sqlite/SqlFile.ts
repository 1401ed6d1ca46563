/** Finds, creates and watches the file of the SQLite store. Only the owner of the file can read it, and a moved file is detected. */
import { closeSync, existsSync, mkdirSync, openSync, statSync, watch } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** Mode of a new database file. Only the owner may read the file, because it contains facts about the owner's work. */
const fileMode = 0o600;

/** Mode of a new folder for the database file. */
const folderMode = 0o700;

/** An in-memory store, which lives as long as its connection. For tests. */
const inMemory = ":memory:";

/** The file was deleted, moved or replaced while it was open, so a write would be lost. */
export class FileGone extends Error {
  override readonly name = "FileGone";
}

/** The variables that the default file depends on. */
export const variables = ["STREAM_RECOVERY_DB", "LOCALAPPDATA", "XDG_STATE_HOME"] as const;

/**
 * Returns the default file of the store: `$STREAM_RECOVERY_DB`, or else `stream-recovery/runs.db` in `%LOCALAPPDATA%` on
 * Windows and in `$XDG_STATE_HOME` on other systems (XDG Base Directory Specification; `~/.local/state` if unset).
 */
export const defaultFile = (
  env: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): string => {
  const named = env.STREAM_RECOVERY_DB ?? "";
  return named === "" ? ownFile(env, platform) : named;
};

/** Returns the file in the user's state folder, even if the environment variable names another store. */
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

/** True if the name is that of an ordinary file. `:memory:` and `file:` URIs have a special meaning in SQLite. */
export const isFile = (name: string): boolean => name !== inMemory && !name.startsWith("file:");

/**
 * Returns an error message if the name is an address, because SQLite would create a file with that name. An address may contain a password,
 * so the message contains only its scheme.
 *
 * @param expected accepted kinds of names, for the message
 * @returns undefined for a path, and for `:memory:` and `file:`
 */
export const findProblem = (name: string, expected: string): string | undefined => {
  if (/^\s+[a-z][a-z\d+.-]+:/i.test(name)) return "expected the name of a store without leading blanks";
  // A single letter is the name of a Windows drive and not a scheme.
  const scheme = (/^([a-z][a-z\d+.-]+):\/\//i.exec(name) ??
    /^(jdbc|sqlite|mysql|mariadb|libsql|postgres|postgresql):/i.exec(name))?.[1];
  return scheme === undefined || scheme.toLowerCase() === "file"
    ? undefined
    : `expected ${expected}, got an address that begins with ${scheme}:`;
};

/**
 * Creates the file and its folder if they are missing.
 *
 * @throws NodeJS.ErrnoException if that fails
 */
export const prepare = (file: string): void => {
  if (existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true, mode: folderMode });
  // SQLite gives its journal files the mode of the database.
  closeSync(openSync(file, "a", fileMode));
};

/**
 * Calls a listener when any process writes to the journal of an open file.
 *
 * @returns a function that stops watching; undefined if the system cannot watch
 */
export const watchJournal = (file: string, listener: () => void): (() => void) | undefined => {
  // Windows may report a write only after it is flushed.
  if (!isFile(file) || process.platform === "win32") return undefined;
  try {
    const watcher = watch(`${file}-wal`, { persistent: false }, listener);
    watcher.on("error", listener);
    return () => watcher.close();
  } catch {
    return undefined;
  }
};

/** Returns an id of the file that is at a path now; undefined if there is none. */
export const identity = (file: string): string | undefined => {
  const found = statSync(file, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? undefined : `${found.dev}:${found.ino}`;
};
