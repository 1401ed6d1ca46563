/**
 * Serves the gateway's own paths: hands the request to its page, and the answer to the client.
 */
import type { IncomingMessage } from "node:http";
import { Context, Effect } from "effect";
import type { RelayHeaders } from "../adapters/RelayTransport.ts";
import type { ClientResponse } from "./ClientResponse.ts";
import type { Bytes } from "./ContentDecoding.ts";
import { without } from "./Passing.ts";
import type { Page } from "./Seam.ts";

/** Most bytes of a request to the page: answers are short. */
export const pageBodyBytesMax = 64 * 1024;

/** Whether a path is the gateway's own. */
export const isOwn = (target: string): boolean => /^\/(?:recovery|metrics)(?:[/?]|$)/.test(target);

/** The request as the page sees it. */
export interface PageRequest {
  readonly target: string;
  readonly headers: RelayHeaders;
  readonly body: Bytes | undefined;
}

/** Serves a request to the end of its answer, which a live feed reaches when the client goes away. */
export const serve = (
  request: IncomingMessage,
  asked: PageRequest,
  client: ClientResponse,
  page: Page["Service"] | undefined,
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
      client.head({ status, statusText, headers: [...response.headers] });
      if (response.body !== null) yield* copied(response.body, client);
      yield* client.end;
    });
    return served.pipe(
      Effect.catchDefect((defect) =>
        Effect.andThen(
          Effect.logError("the page has failed", { class: defect instanceof Error ? defect.name : typeof defect }),
          client.begun ? client.break : Effect.sync(() => client.refuse(failed, undefined)),
        ),
      ),
      Effect.onInterrupt(() => client.break),
    );
  });

const copied = (body: ReadableStream<Uint8Array<ArrayBuffer>>, client: ClientResponse): Effect.Effect<void> =>
  Effect.acquireUseRelease(
    Effect.sync(() => body.getReader()),
    (reader) =>
      Effect.gen(function* () {
        for (;;) {
          const next = yield* Effect.promise(() => reader.read());
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
