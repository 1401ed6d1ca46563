/**
 * Tunes V8 for a gateway, whose objects nearly all end with their stream and whose streams arrive in bursts.
 *
 * If nearly all objects from an allocation site have lived long, V8 allocates new ones among the old objects. A gateway's sites allocate
 * both objects kept for a client that returns and objects that end with their stream. One such object of an ended stream keeps the whole
 * stream in memory, because every minor collection treats it as alive. V8 then takes everything else in streams for long-lived, too: with a
 * file store, whole streams were copied twice and kept until the next full collection.
 *
 * V8 shrinks the young generation to a megabyte after a few idle seconds, and doubles it only as fast as objects survive. The next burst
 * was collected repeatedly in a small space, which took a tenth of its CPU. With these flags one step grows the space to the size that a
 * busy gateway has anyway.
 *
 * Flags that V8 reads only at process start belong on Node's command line: docs/gateway-operation.md.
 */
import { setFlagsFromString } from "node:v8";

const flags: ReadonlyArray<readonly [name: string, flag: string]> = [
  ["allocation-site-pretenuring", "--no-allocation-site-pretenuring"],
  ["semi-space-growth-factor", "--semi-space-growth-factor=16"],
];

const isGiven = (name: string): boolean => process.execArgv.some((arg) => arg.replaceAll("_", "-").includes(name));

/** Sets the flags that are not on Node's command line. It may be called at any time, and does nothing under Bun. */
export const setHeap = (): void => {
  if (process.versions.bun !== undefined) return;
  for (const [name, flag] of flags) if (!isGiven(name)) setFlagsFromString(flag);
};
