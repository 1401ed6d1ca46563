/**
 * Makes idempotency keys that last as long as a request does: a replay keeps its key, a continuation gets a key of its own.
 */
import { createHash } from "node:crypto";
import type { AttemptContext } from "../runtime/contract/RunOptions.ts";

/** What a key is made of. */
export type KeyedAttempt = Pick<AttemptContext, "run_id" | "attempt" | "mode" | "request">;

/**
 * Makes the keys of one run, for `ProviderRequest.idempotencyKey`. The same run id gives the same first key, also after a
 * crash; the id itself cannot be read from it. A key has 43 characters of base64url; Stripe allows 255.
 *
 * @returns the key of an attempt's request: of all replays and resumptions of one request the same
 */
export const ofRun = (): ((attempt: KeyedAttempt) => string) => {
  // The attempt that sent this request first. A replay repeats the request of the attempt before it (L3); where another process
  // made that attempt, only a first request is known to be the same.
  let origin: number | undefined;
  return ({ attempt, mode, request, run_id }) => {
    if (request === "first") origin = 1;
    else if (mode === "continue" || origin === undefined) origin = attempt;
    return createHash("sha256").update(`${run_id}\n${origin}`).digest("base64url");
  };
};
