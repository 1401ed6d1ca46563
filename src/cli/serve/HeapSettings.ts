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
 */
import { setFlagsFromString } from "node:v8";

const flags: ReadonlyArray<readonly [name: string, said: string]> = [
  ["allocation-site-pretenuring", "--no-allocation-site-pretenuring"],
  ["semi-space-growth-factor", "--semi-space-growth-factor=16"],
];

/** Says so to V8, where this is V8 and the command line of Node does not say otherwise. It may be called at any time. */
export const setHeap = (): void => {
  if (process.versions.bun !== undefined) return;
  const given = process.execArgv.map((arg) => arg.replaceAll("_", "-"));
  for (const [name, said] of flags) if (!given.some((arg) => arg.includes(name))) setFlagsFromString(said);
};
