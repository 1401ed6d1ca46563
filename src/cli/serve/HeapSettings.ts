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
 *
 * V8 marks a heap on four threads of its own, however many cores there are. On a core that they share with the gateway's loop each of them
 * takes as much of it as the loop does, and a head came a tenth of a second late. So there are no more of them than cores beside the loop's.
 */
import { accessSync, constants } from "node:fs";
import { availableParallelism } from "node:os";
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

/** Threads that Node gives to V8 by itself, whatever the machine is. */
const threadsUsual = 4;

/**
 * Threads for V8 in each of several processes, besides that of its loop.
 *
 * @param cores that they have together
 */
export const threadsOf = (cores: number, processes: number): number =>
  Math.max(1, Math.min(threadsUsual, Math.floor(cores / processes) - 1));

const poolName = "--v8-pool-size";

/** What Node is started with. */
interface Started {
  readonly execArgv: ReadonlyArray<string>;
  /** `NODE_OPTIONS`. */
  readonly options: string;
  readonly cores: number;
}

/**
 * What is said of these threads where no person has said it. A process that starts workers may have been started again with what is right for
 * one alone, of which each worker has its share.
 *
 * @param processes that serve together
 */
export const poolFlags = ({ cores, execArgv, options }: Started, processes: number): ReadonlyArray<string> => {
  const said = execArgv.map((arg) => arg.replaceAll("_", "-"));
  const own = `${poolName}=${threadsOf(cores, 1)}`;
  const isPersons = said.some((arg) => arg.startsWith(poolName) && arg !== own);
  if (isPersons || options.replaceAll("_", "-").includes(poolName)) return [];
  const threads = threadsOf(cores, processes);
  return threads === (said.includes(own) ? threadsOf(cores, 1) : threadsUsual) ? [] : [`${poolName}=${threads}`];
};

/**
 * What Node is started with to serve: all that it has been started with here, and what V8 reads at its start alone.
 *
 * @param processes that serve together
 */
export const startFlags = (processes = 1): ReadonlyArray<string> => {
  if (process.versions.bun !== undefined) return process.execArgv;
  const started = {
    execArgv: process.execArgv,
    options: process.env.NODE_OPTIONS ?? "",
    cores: availableParallelism(),
  };
  const own = [...(isSaid("memory-reducer") ? [] : ["--no-memory-reducer"]), ...poolFlags(started, processes)];
  return own.length === 0 ? process.execArgv : [...process.execArgv, ...own];
};

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
