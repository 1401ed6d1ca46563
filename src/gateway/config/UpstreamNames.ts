/**
 * Defines valid upstream names. A name is a segment of a path, so it must differ from the other first segments.
 */

/** First segments of the gateway's or a provider's paths. */
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

/** Pattern of a name. The length is limited because logs and metrics contain names. */
export const namePattern = /^[a-z0-9-]{1,32}$/;

/** Describes a valid name, as part of an error message. */
export const upstreamNameWords = `1 to 32 of a-z, 0-9 and -, and none of ${reservedNames.join(", ")}`;

const reserved: ReadonlySet<string> = new Set(reservedNames);

/** True if an upstream may have this name. */
export const isUpstreamName = (name: string): boolean => namePattern.test(name) && !reserved.has(name);
