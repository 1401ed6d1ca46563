/**
 * Sends the response of a sibling's run to a client of this process.
 *
 * The client does not notice the hop: head, bytes, backpressure and ending are those that the sibling's own clients get. If the sibling
 * dies, the client's connection breaks, as it does if a single gateway dies. A sibling that does not decide in time is skipped.
 */
import type { ClientRequest, IncomingMessage } from "node:http";
import { Effect } from "effect";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import { type HopTarget, hopHeader, requestTo } from "../workers/SignedWire.ts";
import { encode, type HopAsked, HopEnd, HopFacts, HopHead, read } from "./HopMessage.ts";

/** Timeout for the owner's decision, in milliseconds. The owner may first have to check whether its reader's socket is silent. */
export const decideMs = 2_000;

const documentBytesMax = 1024 * 1024;

/** Result of a hop. `none`: the sibling has no run to which the client may attach, and nothing was written to the client. */
export type HopResult = "none" | "served" | "refused";

/** Requests a run from a sibling and copies the response. */
export const hop = (asked: HopAsked, { headersOf, to }: HopTarget, client: ClientResponse): Effect.Effect<HopResult> =>
  Effect.acquireUseRelease(
    Effect.sync(() => requestTo(to, headersOf(encode(asked)))),
    (request) =>
      Effect.gen(function* () {
        request.on("error", () => undefined);
        client.whenGone(() => void request.destroy());
        const next = receiveMessages(request);
        request.end();
        const first = yield* Effect.timeoutOrElse(next, {
          duration: decideMs,
          orElse: () => Effect.succeed("gone" as const),
        });
        const isTaken = typeof first === "object" && "taken" in first;
        if (isTaken) recordFacts(client, first.taken);
        const last = isTaken ? yield* next : first;
        const head = typeof last === "object" && "response" in last ? headOf(last.response) : undefined;
        if (head !== undefined) return yield* forwardResponse(head, client);
        // Once the client has become the reader, no other sibling can be asked: the run has replaced its earlier reader for this client.
        if (isTaken) yield* client.break;
        return isTaken ? "served" : "none";
      }),
    (request) =>
      Effect.sync(() => {
        request.destroy();
      }),
  );

type Said = { readonly taken: HopFacts | undefined } | { readonly response: IncomingMessage } | "gone";

/** Receives messages from a sibling. The interim response and the final one may arrive in the same packet, so messages are queued. */
const receiveMessages = (request: ClientRequest): Effect.Effect<Said> => {
  const received: Array<Said> = [];
  let wake = (): void => undefined;
  const enqueue = (word: Said) => {
    received.push(word);
    wake();
  };
  request.once("information", ({ headers }) => enqueue({ taken: read(HopFacts, headers[hopHeader]) }));
  request.once("response", (response) => enqueue({ response }));
  request.once("close", () => enqueue("gone"));
  return Effect.callback((resume) => {
    wake = () => {
      const word = received.shift();
      if (word === undefined) return;
      wake = () => undefined;
      resume(Effect.succeed(word));
    };
    wake();
    return Effect.sync(() => {
      wake = () => undefined;
    });
  });
};

interface Head {
  readonly response: IncomingMessage;
  readonly head: HopHead;
}

const headOf = (response: IncomingMessage): Head | undefined => {
  response.on("error", () => undefined);
  const head = read(HopHead, response.headers[hopHeader]);
  return head === undefined ? undefined : { response, head };
};

const forwardResponse = Effect.fnUntraced(function* (
  { head, response }: Head,
  client: ClientResponse,
): Effect.fn.Return<HopResult> {
  if (head._tag === "None") return "none";
  recordFacts(client, head.facts);
  if (head._tag === "Broken") yield* client.break;
  else if (head._tag === "Answer") yield* forwardDocument(response, head, client);
  else {
    client.head(head, head.streaming);
    yield* forwardBody(response, client);
  }
  return head._tag === "Answer" ? "refused" : "served";
});

type Answer = Extract<HopHead, { readonly _tag: "Answer" }>;

/** Forwards a document (for example an error) that the other process wrote. Documents are short, so this one is read completely first. */
const forwardDocument = Effect.fnUntraced(function* (
  response: IncomingMessage,
  { headers, status }: Answer,
  client: ClientResponse,
) {
  const document = yield* Effect.promise(async () => {
    const chunks: Array<Buffer> = [];
    let bytes = 0;
    try {
      for await (const chunk of response) {
        bytes += chunk.byteLength;
        if (bytes > documentBytesMax) return undefined;
        chunks.push(chunk);
      }
      const document: unknown = JSON.parse(Buffer.concat(chunks).toString());
      return typeof document === "object" && document !== null ? document : undefined;
    } catch {
      return undefined;
    }
  });
  if (document === undefined) return yield* client.break;
  client.answer(status, document, headers);
});

/** Copies the body at the client's pace and ends it in the same way as the sibling. */
const forwardBody = Effect.fnUntraced(function* (response: IncomingMessage, client: ClientResponse) {
  while ((yield* forwardUntilFull(response, client)) === "full") yield* client.drained;
  const end = response.complete ? read(HopEnd, response.trailers[hopHeader]) : undefined;
  recordFacts(client, end?.facts);
  yield* end?.how === "whole" ? client.end : client.break;
});

/** Writes each chunk to the client synchronously, until the client's socket is full or the response has ended. */
const forwardUntilFull = (response: IncomingMessage, client: ClientResponse): Effect.Effect<"full" | "over"> =>
  Effect.callback((resume) => {
    if (response.closed) return resume(Effect.succeed("over"));
    const leave = () => {
      response.off("data", data).off("close", close).pause();
    };
    const data = (chunk: Buffer<ArrayBuffer>) => {
      client.writeNow([chunk]);
      if (client.isReady()) return;
      leave();
      resume(Effect.succeed("full"));
    };
    const close = () => {
      leave();
      resume(Effect.succeed("over"));
    };
    response.on("data", data).on("close", close).resume();
    return Effect.sync(leave);
  });

/** Adds the facts that only the run's owner knows to the access record. */
const recordFacts = ({ access }: ClientResponse, facts: HopFacts | undefined): void => {
  if (facts === undefined) return;
  const known = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== null));
  access.addFacts(known);
  access.takeOverCounts(known);
};
