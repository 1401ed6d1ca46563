/**
 * Chooses the request of an attempt: the client's own, one that resumes the same response, or one that asks for the rest of it.
 */
import type { Verifier } from "../../provider/stream/Resume.ts";
import type { AttemptContext } from "../../runtime/contract/RunOptions.ts";
import type { RelayPlan } from "./RelayPlan.ts";
import type { RelayHeaders, RelayRequest } from "./RelayTransport.ts";
import type { RelaySeam } from "./seam/RelaySeam.ts";

/** The request of an attempt. */
export interface AttemptOpening {
  readonly request: RelayRequest;
  /** Verifies the events, if the response can be resumed. */
  readonly verifier?: Verifier<string>;
}

/**
 * Returns the request of an attempt.
 *
 * @param seam builds the requests of continuations
 * @returns undefined if the cursor cannot be resumed from, or no request can ask for the rest; then nothing may be sent
 */
export const openingOf = (
  plan: RelayPlan,
  attempt: Pick<AttemptContext, "request" | "cursor" | "seam">,
  seam?: Pick<RelaySeam, "requestOf">,
): AttemptOpening | undefined => {
  const { protocol, request, resumes } = plan;
  if (attempt.request === "continue") {
    const next = attempt.seam === undefined ? undefined : seam?.requestOf(attempt.seam, plan);
    return next === undefined ? undefined : { request: next };
  }
  if (attempt.request !== "resume") {
    const form = resumes === true ? protocol.resume : undefined;
    return form === undefined ? { request } : { request, verifier: form.first() };
  }
  const behind = attempt.cursor === undefined ? undefined : protocol.resume?.behind(request.url, attempt.cursor);
  if (behind === undefined) return undefined;
  const headers = bodiless(request.headers);
  return {
    request: { ...request, method: "GET", url: behind.url, headers, body: undefined },
    verifier: behind.verifier,
  };
};

/** Removes headers that describe a body, and the idempotency key, because a GET has neither. */
const bodiless = (headers: RelayHeaders): RelayHeaders => headers.filter(([name]) => !ofBody.has(name.toLowerCase()));

const ofBody: ReadonlySet<string> = new Set([
  "content-type",
  "content-length",
  "content-encoding",
  "content-digest",
  "transfer-encoding",
  "expect",
  "digest",
  "idempotency-key",
]);
