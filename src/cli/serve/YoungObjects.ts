/**
 * Lets every object of a gateway be a young one at first.
 *
 * V8 allocates among the old objects what a place in the code makes where nearly all of it has lived long. In a gateway the same places make
 * what is kept for a client that comes back and what goes with its stream. One such object of a stream that is over holds all of the stream,
 * is taken for alive by every minor collection, and so lets everything else of streams seem to live long, too: with a file store whole
 * streams were copied twice and kept until the next full collection.
 */
import { setFlagsFromString } from "node:v8";

const flag = "allocation-site-pretenuring";

/** Says so to V8, where this is V8 and nobody has said otherwise on the command line of Node. It may be called at any time. */
export const keepYoung = (): void => {
  const isV8 = process.versions.bun === undefined;
  if (isV8 && !process.execArgv.some((arg) => arg.replaceAll("_", "-").includes(flag)))
    setFlagsFromString(`--no-${flag}`);
};
