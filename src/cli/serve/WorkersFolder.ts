/**
 * Creates the folder for the sockets of one supervisor's workers. No other user can enter it.
 *
 * A killed supervisor leaves its folder behind, and the next supervisor of the same user removes it. It recognises the folder by the id of
 * the killed process, which is part of the name. Containers may share a temporary folder but do not see each other's processes, so folders
 * of another process namespace are kept.
 */
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, type Scope } from "effect";

const prefix = "stream-recovery-workers-";

/** Maximum number of folders that are checked, so that another user's folders cannot delay a start. */
const lookedMax = 1_024;

/**
 * Creates the folder and removes it with the scope. Undefined if it cannot be created; then a client that returns to another worker starts
 * a new run.
 */
export const make: Effect.Effect<string | undefined, never, Scope.Scope> = Effect.acquireRelease(
  Effect.suspend(() => {
    try {
      removeStale();
      const folder = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-${namespace()}-`));
      chmodSync(folder, 0o700);
      return Effect.succeed(folder);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
      const said =
        "cannot create a folder in the temporary folder; make it writable, or name another one in $TMPDIR. Until then the page and the metrics cover only one worker, and a client that returns to another worker starts a new run";
      return Effect.as(Effect.logWarning(said, { code, folder: tmpdir() }), undefined);
    }
  }),
  (folder) => Effect.sync(() => folder !== undefined && remove(folder)),
);

/**
 * Returns an id of the process namespace in a few characters, because the length of a socket's path is limited. The id is constant on
 * systems other than Linux.
 */
const namespace = (): string => {
  try {
    return Number(/\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? 0)
      .toString(36)
      .slice(-4);
  } catch {
    return "0";
  }
};

const removeStale = (): void => {
  const own = namespace();
  const named = readdirSync(tmpdir()).flatMap((name) => {
    const [, pid = "0", among] =
      (name.startsWith(prefix) && /^(\d+)-([\da-z]+)-/.exec(name.slice(prefix.length))) || [];
    return among === own ? [{ path: join(tmpdir(), name), pid: Number(pid) }] : [];
  });
  for (const { path, pid } of named.slice(0, lookedMax)) if (pid > 0 && !isAlive(pid) && isOwn(path)) remove(path);
};

/** True for a folder of this user. A symbolic link does not count, because it may point to another user's folder. */
const isOwn = (path: string): boolean => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && (process.getuid === undefined || found.uid === process.getuid());
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM means that the process exists but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
};

/** Removes a folder. If it cannot be removed now, the next start removes it. */
const remove = (path: string): void => {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Another start has removed the folder already, or its disk accepts no writes.
  }
};
