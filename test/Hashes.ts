/** Hashes values for records of behaviour that are too long to keep whole. */
import { createHash } from "node:crypto";

/** Returns a hash of any value. Ids of processors and fibers are left out, because they differ from process to process. */
export const hashOf = (value: unknown): string => {
  const text = JSON.stringify(value ?? null, (key, it: unknown) => (key === "fiberId" ? undefined : it));
  return createHash("sha256")
    .update(text.replaceAll(/[0-9a-f]{32}\.\d+/g, "processor"))
    .digest("hex")
    .slice(0, 8);
};
