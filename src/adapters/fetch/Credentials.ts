/**
 * Renews the credentials of a request before it is retried. A client builds its headers once per call, but a retry may follow minutes
 * later.
 */
import { Effect, Schema } from "effect";
import { Failure } from "../../domain/Failure.ts";
import { refreshMsMax } from "../../runtime/recovery/Recovery.ts";
import type { RelayRequest } from "../relay/RelayTransport.ts";

/** Headers in any form that `fetch` accepts. */
export type FetchHeaders = NonNullable<RequestInit["headers"]>;

/**
 * Returns the headers that a retry sends instead of those of the first request.
 *
 * @param headers a copy of the first request's headers
 */
export type RefreshCredentials = (headers: Headers) => FetchHeaders | Promise<FetchHeaders>;

/** `refreshCredentials` failed, so the request was not retried and the run has ended. `cause` is the error of `refreshCredentials`. */
export class CredentialsNotRefreshed extends Schema.TaggedError<CredentialsNotRefreshed>()("CredentialsNotRefreshed", {
  reason: Failure,
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Unknown),
}) {}

/** Returns a copy of a request with renewed credentials. */
export const renew = (
  refresh: RefreshCredentials,
  request: RelayRequest,
): Effect.Effect<RelayRequest, CredentialsNotRefreshed> =>
  Effect.tryPromise({
    try: async () => {
      const given: unknown = await refresh(headersOf(request));
      if (typeof given !== "object" || given === null)
        throw new TypeError(`expected headers, got ${given === null ? "null" : typeof given}`);
      const headers = headersOf(request);
      for (const [name, value] of toHeaders(given)) headers.set(name, value);
      return { ...request, headers: [...headers] };
    },
    catch: (cause) => notRefreshedError(cause instanceof Error ? cause.message : String(cause), cause),
  }).pipe(
    Effect.timeoutOrElse({
      duration: refreshMsMax,
      orElse: () => Effect.fail(notRefreshedError(`no answer within ${refreshMsMax} ms`)),
    }),
  );

/** Creates the headers. The error of `Headers` is replaced, because it quotes the value, which is a credential here. */
const toHeaders = (given: object): Headers => {
  try {
    // The parameter's type promises headers, and `Headers` throws for any other object, so the cast is safe.
    return new Headers(given as FetchHeaders);
  } catch {
    throw new TypeError("expected headers that can be sent, got a name or a value with forbidden characters");
  }
};

/** Returns the headers of a request in a new object. */
export const headersOf = ({ headers }: Pick<RelayRequest, "headers">): Headers =>
  new Headers(headers.map(([name, value]): [string, string] => [name, value]));

const notRefreshedError = (why: string, cause?: unknown): CredentialsNotRefreshed =>
  new CredentialsNotRefreshed({
    reason: { kind: "caller_failed" },
    message: `refreshCredentials failed: ${why}`,
    ...(cause === undefined ? {} : { cause }),
  });
