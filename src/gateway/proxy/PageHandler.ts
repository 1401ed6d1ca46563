/**
 * Serves the gateway's own paths: hands the request to the page, and the page's response to the client.
 *
 * The server has done its part before: a token was checked and its `/t/TOKEN` prefix cut off, Host and Origin were checked, body and
 * header limits hold. The page's links must therefore be relative.
 */
import type { IncomingMessage } from "node:http";
import { Context, Effect } from "effect";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { logged } from "../log/Defect.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { isEventStream, without } from "../upstream/Headers.ts";
import type { ClientResponse } from "./ClientResponse.ts";

/**
 * Serves `/recovery`, `/recovery/…` and `/metrics`. Left out, these paths are not found.
 */
export class Page extends Context.Service<
  Page,
  {
    /**
     * Serves a request. It may run as long as a live feed does: it is interrupted, and the response's body cancelled, when
     * the client goes away or the gateway stops.
     *
     * @param request its URL has the path without a token's prefix; its body was read already and is bounded
     * @returns undefined where there is nothing at this path
     */
    readonly handle: (request: Request) => Effect.Effect<Response | undefined>;
  }
>()("effect-stream-recovery/gateway/Page") {}

/** Most bytes of a request to the page: an answer to a question is short. */
export const pageBodyBytesMax = 64 * 1024;

/** The request as the page sees it. */
export interface PageRequest {
  readonly target: string;
  readonly headers: RelayHeaders;
  readonly body: Bytes | undefined;
}

/** What serving the page needs of the gateway. */
export interface PageServing {
  readonly page: Page["Service"] | undefined;
  /** Done when a shutdown begins. */
  readonly closing: Effect.Effect<void>;
}

/** Serves a request to the end of its response, which a live feed reaches when the client goes away. */
export const serve = (
  request: IncomingMessage,
  asked: PageRequest,
  client: ClientResponse,
  { closing, page }: PageServing,
): Effect.Effect<void> =>
  Effect.withFiber<void>((fiber) => {
    client.whenGone(() => fiber.interruptUnsafe(undefined, Context.empty()));
    const served = Effect.gen(function* () {
      const response = yield* page?.handle(requestOf(request, asked)) ?? Effect.undefined;
      if (response === undefined)
        return client.refuse(
          { status: 404, reason: "not_found", message: "There is nothing at this path." },
          undefined,
        );
      const { status, statusText } = response;
      const headers = [...response.headers];
      client.head({ status, statusText, headers });
      // A feed ends when its reader leaves or the gateway stops; any other response has an end of its own.
      if (response.body !== null) yield* copied(response.body, client, isEventStream(headers) ? closing : Effect.never);
      yield* client.end;
    });
    return served.pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(
          logged("the page has failed", cause),
          client.begun ? client.break : Effect.sync(() => client.refuse(failed, undefined)),
        ),
      ),
      Effect.onInterrupt(() => client.break),
    );
  });

const copied = (
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  client: ClientResponse,
  closing: Effect.Effect<void>,
): Effect.Effect<void> =>
  Effect.acquireUseRelease(
    Effect.sync(() => body.getReader()),
    (reader) =>
      Effect.gen(function* () {
        const ended = Effect.as(closing, { done: true } as const);
        for (;;) {
          const next = yield* Effect.raceFirst(
            Effect.promise(() => reader.read()),
            ended,
          );
          if (next.done) return;
          yield* client.write([next.value]);
        }
      }),
    // A feed whose source has failed already cannot be cancelled any more.
    (reader) => Effect.sync(() => void reader.cancel().catch(() => undefined)),
  );

const requestOf = (request: IncomingMessage, { body, headers, target }: PageRequest): Request => {
  const method = request.method ?? "GET";
  return new Request(`http://${request.headers.host ?? "localhost"}${target}`, {
    method,
    headers: without(headers, "content-length").map(([name, value]): [string, string] => [name, value]),
    ...(body === undefined || method === "GET" || method === "HEAD" ? {} : { body }),
  });
};

const failed = { status: 503, reason: "page", message: "The page has failed." } as const;
