/** Opens attempts at resumable streams: sends the request again or resumes after a cursor, and verifies the parts that arrive. */
import { Effect, type Pull, Stream } from "effect";
import type { ProtocolId } from "../provider/Protocols.ts";
import * as Resume from "../provider/stream/Resume.ts";
import type { AttemptContext } from "../runtime/contract/RunOptions.ts";
import type { ProviderClient } from "./ProviderClient.ts";
import { type ProviderError, providerError } from "./ProviderError.ts";
import type { ProviderRequest, RequestHeaders } from "./ProviderRequest.ts";

/** The fields of an attempt that determine whether it resumes. */
type Attempt = Pick<AttemptContext, "request" | "cursor">;

/**
 * Opens an attempt at a background response of OpenAI (`background: true`, `stream: true`). A resumed attempt sends `GET
 * {url}/{id}?stream=true&starting_after=N` with the request's headers. Pass `Resume.cursor` to the run.
 *
 * @param client the client that sends the request
 * @param request the request for a new response, `POST …/v1/responses`
 * @param attempt the attempt's context
 * @returns the parts of the attempt, each once; it fails with `ProviderError`, with reason `rejected` if the server refused the cursor
 */
export const responses = <S, Id extends string = ProtocolId>(
  client: ProviderClient["Service"],
  request: ProviderRequest<S, Id>,
  attempt: Attempt,
): Stream.Stream<Resume.CursorPart<Id>, ProviderError> => {
  if (attempt.request !== "resume") return verify(client.stream(request), Resume.responses());
  const cursor = Resume.parseResponses(attempt.cursor ?? "");
  if (cursor === undefined) return Stream.fail(unreadable);
  const { body: _body, idempotencyKey: _key, ...rest } = request;
  const url = Resume.responsesUrl(request.url, cursor);
  return verify(client.stream({ ...rest, url, method: "GET" }), Resume.responses(cursor));
};

/** Options to resume a stream with event ids. */
export interface EventResume extends Pick<Resume.EventOptions, "sequence"> {
  /**
   * Default: the same method and body again, for a server that reads only the header. `GET` omits the body, as required by MCP's streamable
   * HTTP.
   */
  readonly method?: "GET";
}

/**
 * Opens an attempt at a stream whose events have ids. A resumed attempt carries `Last-Event-ID`. Pass `Resume.cursor` to the
 * run.
 *
 * @param client the client that sends the request
 * @param request the request for a new response
 * @param attempt the attempt's context
 * @param how the method of a resumed request, and the meaning of the ids
 */
export const events = <S, Id extends string>(
  client: ProviderClient["Service"],
  request: ProviderRequest<S, Id>,
  attempt: Attempt,
  { method, sequence }: EventResume = {},
): Stream.Stream<Resume.CursorPart<Id>, ProviderError> => {
  const counted = sequence === undefined ? {} : { sequence };
  if (attempt.request !== "resume") return verify(client.stream(request), Resume.events(counted));
  const resumed = Resume.parseEvent(attempt.cursor ?? "");
  if (resumed === undefined) return Stream.fail(unreadable);
  const headers = withHeaders(request.headers, Resume.eventHeaders(resumed));
  const { body: _body, ...bare } = request;
  const again = method === undefined ? { ...request, headers } : { ...bare, headers, method };
  return verify(client.stream(again), Resume.events({ ...counted, resumed }));
};

const unreadable = providerError(Resume.unreadable, "not_sent");

const withHeaders = (
  headers: ProviderRequest<unknown>["headers"] = {},
  more: RequestHeaders,
): NonNullable<ProviderRequest<unknown>["headers"]> =>
  Effect.isEffect(headers) ? Effect.map(headers, (own) => ({ ...own, ...more })) : { ...headers, ...more };

type Parts<Id extends string> = readonly [Resume.CursorPart<Id>, ...Array<Resume.CursorPart<Id>>];

/**
 * Passes a stream through a verifier. If a part fails the check, the parts before it in the same chunk are still delivered.
 *
 * @param stream the parts of one attempt
 * @param verifier a verifier for that attempt alone
 */
export const verify = <Id extends string, E, R>(
  stream: Stream.Stream<Resume.CursorPart<Id>, E, R>,
  verifier: Resume.Verifier<Id>,
): Stream.Stream<Resume.CursorPart<Id>, E | ProviderError, R> =>
  Stream.transformPull(stream, (pull) => {
    let error: ProviderError | undefined;
    const next: Pull.Pull<Parts<Id>, E | ProviderError, void> = Effect.suspend(() => {
      if (error !== undefined) return Effect.fail(error);
      return Effect.flatMap(pull, (parts): typeof next => {
        const kept: Array<Resume.CursorPart<Id>> = [];
        for (const part of parts) {
          const verdict = verifier.take(part);
          if (verdict.type === "pass") kept.push(verdict.part);
          if (verdict.type !== "failed") continue;
          error = providerError(verdict.failure, "accepted");
          break;
        }
        const [first, ...rest] = kept;
        return first === undefined ? next : Effect.succeed([first, ...rest]);
      });
    });
    return Effect.succeed(next);
  });
