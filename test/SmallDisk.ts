/**
 * A disk that is really full: a small file system of its own, where this user may make one.
 */
import { spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { Effect } from "effect";
import * as Folder from "./recorder/sql/SqlFolder.ts";

const [mount, unmount] = ["mount", "umount"];

/** A file system of two MiB; undefined where this user may not make one. */
export const smallDisk = Effect.acquireRelease(
  Effect.map(Folder.folder, (path) => {
    const mounted = spawnSync(mount, ["-t", "tmpfs", "-o", "size=2m", "tmpfs", path]);
    return mounted.status === 0 ? path : undefined;
  }),
  (path) => Effect.sync(() => path !== undefined && spawnSync(unmount, ["-l", path])),
);

/** Writes a file until nothing more is taken; gives what makes room again. */
export const filled = (path: string): (() => void) => {
  const fd = openSync(path, "w");
  for (let bytes = 64 * 1024; bytes > 0; ) {
    try {
      writeSync(fd, Buffer.alloc(bytes));
    } catch {
      bytes = Math.floor(bytes / 2);
    }
  }
  return () => {
    ftruncateSync(fd, 0);
    closeSync(fd);
  };
};
