/**
 * Names the options of earlier versions, so that their refusal says what to use instead.
 */

const advice = "give each gateway the address at which the others reach it by";

/** Advice by key of the file, flag and variable. */
const removed: ReadonlyMap<string, string> = new Map([
  ["delivery_log", `${advice} \`advertise\` instead`],
  ["--delivery-log", `${advice} --advertise instead`],
  ["STREAM_RECOVERY_DELIVERY_LOG", `${advice} STREAM_RECOVERY_ADVERTISE instead`],
]);

/** Environment variables of removed options. */
export const removedVariables: ReadonlyArray<string> = [...removed.keys()].filter((name) => /^[A-Z]/.test(name));

/** Returns what to use instead of a removed option, by the name that was given; undefined for any other name. */
export const insteadOf = (given: string): string | undefined => removed.get(given.split("=", 1)[0] ?? "");
