/**
 * Provides a disk that really fills up: a small file system, if this user may mount one.
 */
import { spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { Effect } from "effect";
import * as Folder from "./recorder/sql/SqlFolder.ts";

const [mount, unmount] = ["mount", "umount"];

/** A file system of 2 MiB; undefined if this user may not mount one. */
export const smallDisk = Effect.acquireRelease(
  Effect.map(Folder.folder, (path) => {
    const mounted = spawnSync(mount, ["-t", "tmpfs", "-o", "size=2m", "tmpfs", path]);
    return mounted.status === 0 ? path : undefined;
  }),
  (path) => Effect.sync(() => path !== undefined && spawnSync(unmount, ["-l", path])),
);

/** Fills the disk with one file and returns a function that empties the file again. */
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
