/**
 * Defines valid upstream names. A name is part of a path and must not clash with the path's other words.
 */

/** First words of the paths of the gateway or of a provider. */
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

/** Pattern of a name. It is short because logs and metrics contain it. */
export const namePattern = /^[a-z0-9-]{1,32}$/;

/** Describes a valid name, for error messages. */
export const upstreamNameWords = `1 to 32 of a-z, 0-9 and -, and none of ${reservedNames.join(", ")}`;

const reserved: ReadonlySet<string> = new Set(reservedNames);

/** True if an upstream may have this name. */
export const isUpstreamName = (name: string): boolean => namePattern.test(name) && !reserved.has(name);
