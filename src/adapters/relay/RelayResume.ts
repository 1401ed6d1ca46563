/**
 * Says which request an attempt sends: the client's own, or the one that reads the very same response on.
 */
import type { Verifier } from "../../provider/stream/Resume.ts";
import type { AttemptContext } from "../../runtime/contract/RunOptions.ts";
import type { RelayPlan } from "./RelayPlan.ts";
import type { RelayHeaders, RelayRequest } from "./RelayTransport.ts";

/** The request of an attempt. */
export interface AttemptOpening {
  readonly request: RelayRequest;
  /** Follows its events, where the response can be read on. */
  readonly verifier?: Verifier<string>;
}

/**
 * The request of an attempt.
 *
 * @returns undefined where the attempt shall read on and its cursor names nothing: then nothing may be sent
 */
export const openingOf = (
  { protocol, request, resumes }: RelayPlan,
  attempt: Pick<AttemptContext, "request" | "cursor">,
): AttemptOpening | undefined => {
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

/** Headers without those that describe the body, or make the request the repeat of a post. */
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
