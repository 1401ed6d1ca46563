/**
 * Tells V8 that nearly all objects of a gateway end with their stream, and that streams come in bursts.
 *
 * V8 allocates among the old objects what a place in the code makes if nearly all of it has lived long. In a gateway the same places make what is kept
 * for a client that comes back and what ends with its stream. One such object of an ended stream holds the whole stream, every minor collection takes it
 * for alive, and so everything else of streams seems to live long, too: with a file store whole streams were copied twice and kept until the next full
 * collection.
 *
 * V8 shrinks the room of young objects to a megabyte when a process has done little for some seconds, and doubles it only as fast as objects outlive it.
 * The next burst was collected again and again in a small room, which took a tenth of its CPU. One step takes the room to the size that a busy gateway
 * has anyway.
 *
 * Flags that V8 reads only at the start of a process stand on Node's command line: docs/gateway-operation.md.
 */
import { setFlagsFromString } from "node:v8";

const flags: ReadonlyArray<readonly [name: string, flag: string]> = [
  ["allocation-site-pretenuring", "--no-allocation-site-pretenuring"],
  ["semi-space-growth-factor", "--semi-space-growth-factor=16"],
];

/** Tells if Node's command line has a flag. */
const isGiven = (name: string): boolean => process.execArgv.some((arg) => arg.replaceAll("_", "-").includes(name));

/** Sets the flags that Node's command line leaves open, if this is V8. It may be called at any time. */
export const setHeap = (): void => {
  if (process.versions.bun !== undefined) return;
  for (const [name, flag] of flags) if (!isGiven(name)) setFlagsFromString(flag);
};
