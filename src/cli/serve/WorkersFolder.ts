/**
 * Makes the folder in which the workers of one supervisor find each other's sockets. No other user may enter it.
 *
 * A supervisor that is killed leaves its folder behind, and the next one of the same user that starts takes it away: its name says whose it
 * was, and that process lives no more. Containers may share a temporary folder, and a process of one is not seen by another: of a process of
 * another namespace nothing is known, and its folder stays.
 */
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, type Scope } from "effect";

const prefix = "stream-recovery-workers-";

/** Most folders that are looked at: what another user has put there must not keep a start. */
const lookedMax = 1_024;

/** Makes it, and takes it away with the scope; undefined where none can be made: then no worker serves the runs of another. */
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
        "a client that comes back at another worker begins a run of its own: the temporary folder cannot be used";
      return Effect.as(Effect.logWarning(said, { code }), undefined);
    }
  }),
  (folder) => Effect.sync(() => folder !== undefined && remove(folder)),
);

/** The processes among which this one has its number, in a few characters: a socket's path may not be long. Off Linux they are one. */
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

/** A link is none: what it points to is somebody's else. */
const isOwn = (path: string): boolean => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && (process.getuid === undefined || found.uid === process.getuid());
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user is one.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
};

/** What cannot be removed now is removed by the next start. */
const remove = (path: string): void => {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Another start has removed it, or its disk takes no writes.
  }
};
