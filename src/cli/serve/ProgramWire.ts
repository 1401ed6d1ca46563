/**
 * Encodes the gateway's options for the pipe from the supervisor to its workers. The options contain secrets and are sent nowhere else.
 *
 * The supervisor reads the configuration once for all workers. So a file that changes or breaks later cannot make workers differ, and a
 * replacement gets the same options as its siblings.
 */
import { Redacted } from "effect";
import type { ProgramOptions } from "../../gateway/config/ProgramOptions.ts";

/** Key of an encoded secret; no option has this name. */
const secretKey = "~secret";

/** Encodes options as a value that a structured clone can carry. */
export const encode = (program: ProgramOptions): unknown => mapObjects(program, encodeSecret);

/** Decodes encoded options. */
export const decode = (encoded: unknown): ProgramOptions =>
  // Only the parent process, running the same build, can write into the pipe.
  mapObjects(encoded, restoreSecret) as ProgramOptions;

const encodeSecret = (value: object): unknown =>
  Redacted.isRedacted(value) ? { [secretKey]: Redacted.value(value) } : undefined;

const restoreSecret = (value: object): unknown => (secretKey in value ? Redacted.make(value[secretKey]) : undefined);

/** Copies a value. Replaces each object for which `change` returns a value. */
const mapObjects = (value: unknown, change: (value: object) => unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((it) => mapObjects(it, change));
  return (
    change(value) ?? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mapObjects(inner, change)]))
  );
};
