/**
 * Serves the gateway's own paths: forwards a request to the page, and the page's response to the client.
 *
 * Before that, the server has checked the token, removed the `/t/TOKEN` prefix, checked Host and Origin, and enforced the limits of body
 * and head. Links in the page must be relative, because the page does not know the prefix.
 */
import type { IncomingMessage } from "node:http";
import { Context, Effect } from "effect";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { logDefect } from "../log/Defect.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { isEventStream, without } from "../upstream/Headers.ts";
import type { ClientResponse } from "./ClientResponse.ts";

/** Serves `/recovery`, `/recovery/…` and `/metrics`. Without this service these paths return 404. */
export class Page extends Context.Service<
  Page,
  {
    /**
     * Serves a request. A live feed does not end by itself: when the client leaves or the gateway stops, the effect is interrupted and the
     * response's body is cancelled.
     *
     * @param request its URL has no token prefix; its body is complete and of limited size
     * @returns undefined if nothing exists at this path
     */
    readonly handle: (request: Request) => Effect.Effect<Response | undefined>;
  }
>()("effect-stream-recovery/gateway/Page") {}

/** Maximum size of a request body for the page, in bytes. An answer to a question is short. */
export const pageBodyBytesMax = 64 * 1024;

/** A request to the page, with its body already read. */
export interface PageRequest {
  readonly target: string;
  readonly headers: RelayHeaders;
  readonly body: Bytes | undefined;
}

/** Services of the gateway that serve the page. */
export interface PageServing {
  readonly page: Page["Service"] | undefined;
  /** Succeeds when a shutdown begins. */
  readonly closing: Effect.Effect<void>;
}

/** Serves a request until its response ends. A live feed ends when the client leaves or the gateway stops. */
export const serve = (
  request: IncomingMessage,
  asked: PageRequest,
  client: ClientResponse,
  { closing, page }: PageServing,
): Effect.Effect<void> =>
  Effect.withFiber<void>((fiber) => {
    client.whenGone(() => fiber.interruptUnsafe(undefined, Context.empty()));
    const respond = Effect.gen(function* () {
      const response = yield* page?.handle(requestOf(request, asked)) ?? Effect.undefined;
      if (response === undefined)
        return client.refuse({ status: 404, reason: "not_found", message: "This path does not exist." }, undefined);
      const { status, statusText } = response;
      const headers = [...response.headers];
      client.head({ status, statusText, headers });
      // A shutdown has to end only feeds, because other responses end soon.
      if (response.body !== null)
        yield* copyBody(response.body, client, isEventStream(headers) ? closing : Effect.never);
      yield* client.end;
    });
    return respond.pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(
          logDefect("the page failed", cause),
          client.hasBegun ? client.break : Effect.sync(() => client.refuse(failed, undefined)),
        ),
      ),
      Effect.onInterrupt(() => client.break),
    );
  });

const copyBody = (
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
    // Cancelling a reader rejects if the source has failed.
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

const failed = { status: 503, reason: "page", message: "The page failed." } as const;
