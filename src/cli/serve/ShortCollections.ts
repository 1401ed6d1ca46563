/**
 * Makes the garbage collections of a gateway short: what a collection of the young generation takes, every stream of the process waits for.
 *
 * V8 lets its young generation grow to 64 MB and collects it when that is nearly full. What lives then is copied: ten megabytes of streams
 * that are open or have just ended, in one pause. Collected whenever it has taken a sixteenth of its room, between two turns of the event loop,
 * it is the same work within a few per cent, in pauses of a tenth.
 */
import { setFlagsFromString } from "node:v8";

/** How full the young generation is when it is collected between two turns, in per cent of its room. V8's own number is 80. */
const collectedAt = 6;

const flag = "minor-gc-task-trigger";

/** Says so to V8, where this is V8 and nobody has said otherwise on the command line of Node. It may be called at any time. */
export const shorten = (): void => {
  const isV8 = process.versions.bun === undefined;
  if (isV8 && !process.execArgv.some((arg) => arg.replaceAll("_", "-").includes(flag)))
    setFlagsFromString(`--${flag}=${collectedAt}`);
};
