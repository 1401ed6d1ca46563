/**
 * Says to V8 how a gateway uses its heap: nearly all that it makes is gone with its stream, and streams come in bursts.
 *
 * V8 allocates among the old objects what a place in the code makes where nearly all of it has lived long. In a gateway the same places make
 * what is kept for a client that comes back and what goes with its stream. One such object of a stream that is over holds all of the stream,
 * is taken for alive by every minor collection, and so lets everything else of streams seem to live long, too: with a file store whole
 * streams were copied twice and kept until the next full collection.
 *
 * V8 gives memory back once a process has done little for some seconds: the room of young objects is a megabyte then, and is doubled only as
 * fast as objects outlive it. The next burst was collected again and again in a small room, and what was alive in that moment became old: a
 * tenth of its CPU. One step takes the room to the size that a busy gateway has anyway.
 *
 * V8 also marks and compacts all of the heap, on threads of its own, once it takes a process for idle. Streams that wait for their provider
 * look idle: with fifty paced ones that was a quarter of the CPU of a gateway. V8 reads this flag as it makes its heap, so that a process has
 * to be started with it.
 */
import { accessSync, constants } from "node:fs";
import { isAbsolute } from "node:path";
import { setFlagsFromString } from "node:v8";

const flags: ReadonlyArray<readonly [name: string, said: string]> = [
  ["allocation-site-pretenuring", "--no-allocation-site-pretenuring"],
  ["semi-space-growth-factor", "--semi-space-growth-factor=16"],
];

/** Whether the command line of Node says something of a flag. */
const isSaid = (name: string): boolean => process.execArgv.some((arg) => arg.replaceAll("_", "-").includes(name));

/** Says so to V8, where this is V8 and the command line of Node does not say otherwise. It may be called at any time. */
export const setHeap = (): void => {
  if (process.versions.bun !== undefined) return;
  for (const [name, said] of flags) if (!isSaid(name)) setFlagsFromString(said);
};

/** What Node is started with to serve: all that it has been started with here, and what V8 reads at its start alone. */
export const startFlags = (): ReadonlyArray<string> =>
  process.versions.bun !== undefined || isSaid("memory-reducer")
    ? process.execArgv
    : [...process.execArgv, "--no-memory-reducer"];

/** Whether the program that runs this can be found again by its path: Node aborts where `execve` fails. */
const isThere = (): boolean => {
  try {
    accessSync(process.execPath, constants.X_OK);
    return isAbsolute(process.execPath);
  } catch {
    return false;
  }
};

/**
 * Starts this program again in its own place with `startFlags`: its pid, arguments, environment and standard streams stay. Returns where it has
 * them, or where that cannot be done: on Windows, under Bun, and with a channel to the process that has started this one, which would be lost.
 * `STREAM_RECOVERY_START_AGAIN=off` keeps it from that, where a machine's rules let no process start another program.
 */
export const startAgain = (): void => {
  const node = startFlags();
  if (node === process.execArgv || process.execve === undefined || process.channel !== undefined) return;
  if (process.env.STREAM_RECOVERY_START_AGAIN === "off" || !isThere()) return;
  try {
    process.execve(process.execPath, [process.argv0, ...node, ...process.argv.slice(1)]);
  } catch {
    // Node's own permissions forbid it: then the gateway takes more CPU.
  }
};
