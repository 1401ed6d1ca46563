/** Creates idempotency keys. A replay of a request keeps its key, and a continuation gets a new one. */
import { createHash } from "node:crypto";
import type { AttemptContext } from "../runtime/contract/RunOptions.ts";

/** The fields of an attempt on which its key depends. */
export type KeyedAttempt = Pick<AttemptContext, "run_id" | "attempt" | "mode" | "request">;

/**
 * Creates the keys of one run, for `ProviderRequest.idempotencyKey`. The same run id gives the same first key, even after a crash, and the
 * id cannot be derived from the key. A key has 43 characters of base64url; Stripe allows 255.
 *
 * @returns the key of an attempt's request, equal for all replays and resumptions of that request
 */
export const ofRun = (): ((attempt: KeyedAttempt) => string) => {
  // Number of the attempt that first sent the current request. A replay repeats the request of the previous attempt (L3). If another
  // process sent that attempt, its number is known only for the first request of a run, which attempt 1 sent. Any other replay then gets a
  // new key.
  let origin: number | undefined;
  return ({ attempt, mode, request, run_id }) => {
    if (request === "first") origin = 1;
    else if (mode === "continue" || origin === undefined) origin = attempt;
    return createHash("sha256").update(`${run_id}\n${origin}`).digest("base64url");
  };
};
