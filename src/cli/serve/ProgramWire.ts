/**
 * Carries the options of a gateway from the supervisor to its workers. Only the pipe between them sees it: secrets are in it.
 *
 * The supervisor reads the configuration once for all workers, so that a file which is changed or broken meanwhile makes no worker
 * differ from its siblings, and a replacement is given what they have.
 */
import { Redacted } from "effect";
import type { ProgramOptions } from "../../gateway/config/ProgramOptions.ts";

/** The key of a secret in its encoded form; no option has such a name. */
const secretKey = "~secret";

/** What a structured clone can carry. */
export const encode = (program: ProgramOptions): unknown => mapped(program, hidden);

/** The options that were encoded. */
export const decode = (encoded: unknown): ProgramOptions =>
  // The same build has encoded it, in the process that started this one; no other can write into the pipe.
  mapped(encoded, shown) as ProgramOptions;

const hidden = (value: object): unknown =>
  Redacted.isRedacted(value) ? { [secretKey]: Redacted.value(value) } : undefined;

const shown = (value: object): unknown => (secretKey in value ? Redacted.make(value[secretKey]) : undefined);

/** The same value, with each object that `change` has a word on in its place changed. */
const mapped = (value: unknown, change: (value: object) => unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((it) => mapped(it, change));
  return (
    change(value) ?? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mapped(inner, change)]))
  );
};
