/**
 * Says which words an upstream may be called: a name stands in a path, beside words that mean something else there.
 */

/** Words that begin a path of the gateway or of a provider. */
export const reservedNames = [
  "t",
  "u",
  "live",
  "on_complete",
  "recovery",
  "livez",
  "readyz",
  "metrics",
  "v1",
  "v1beta",
] as const;

/** What a name is made of. It is short, because it stands in logs and metrics. */
export const namePattern = /^[a-z0-9-]{1,32}$/;

/** The rule, as a sentence has it. */
export const upstreamNameWords = `1 to 32 of a-z, 0-9 and -, and none of ${reservedNames.join(", ")}`;

const reserved: ReadonlySet<string> = new Set(reservedNames);

/** Whether an upstream may be called so. */
export const isUpstreamName = (name: string): boolean => namePattern.test(name) && !reserved.has(name);
