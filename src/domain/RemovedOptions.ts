/** Names the options of earlier versions, so that the error for a removed option says what to use instead. */

const set = (option: string): string => `set ${option} to the address at which other gateways reach this one`;

/** Advice for removed options, by file key, flag and environment variable. */
const removed: ReadonlyMap<string, string> = new Map([
  ["delivery_log", set("`advertise`")],
  ["--delivery-log", set("--advertise")],
  ["STREAM_RECOVERY_DELIVERY_LOG", set("STREAM_RECOVERY_ADVERTISE")],
]);

/** Environment variables of removed options. */
export const removedVariables: ReadonlyArray<string> = [...removed.keys()].filter((name) => /^[A-Z]/.test(name));

/** Returns what to use instead of a removed option; undefined for any other name. */
export const findReplacement = (given: string): string | undefined => removed.get(given.split("=", 1)[0] ?? "");
