/**
 * Serves `/recovery/streams/RUN`: returns a run's response from an offset, or cancels the run, for a client with the credentials of the
 * run's request.
 *
 * A run's id is not secret: it appears in response heads, in logs and on the page. For a client without the run's credentials, the run
 * therefore does not exist.
 */
import { Effect } from "effect";
import type { RelayRequest } from "../../adapters/relay/RelayTransport.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import type { TrafficMeter } from "../proxy/TrafficMeter.ts";
import type { Address } from "../routing/Address.ts";
import { type Refused, refuseBrowser } from "../routing/Admission.ts";
import type { Holder } from "./AttachKey.ts";
import type { Attachments } from "./Attachments.ts";
import { offsetIn } from "./AttachWish.ts";
import type { CancelsElsewhere } from "./CancelsElsewhere.ts";
import type { StreamWish } from "./HopMessage.ts";
import type { LingeringRun } from "./LingeringRun.ts";

/** Services that `streamOf` uses. */
export interface StreamServing {
  readonly attachments: Attachments;
  /** Cancels runs of other processes; undefined if there can be none. */
  readonly cancels?: CancelsElsewhere | undefined;
  readonly meter: TrafficMeter["Service"];
}

/** A request for a run's response, with the client's identity. */
export type StreamRequest = Holder & Pick<RelayRequest, "method">;

const prefix = "/recovery/streams/";

/** Extracts the run's id from the address of a stream; undefined for any other path. */
export const streamOf = ({ own, target }: Pick<Address, "own" | "target">): string | undefined => {
  if (!own || !target.startsWith(prefix)) return undefined;
  const [name = ""] = target.slice(prefix.length).split("?");
  return name;
};

/** Serves a stream, whichever process owns the run. */
export const serveStream = (
  runId: string,
  asked: StreamRequest,
  client: ClientResponse,
  serving: StreamServing,
): Effect.Effect<void> =>
  Effect.flatMap(tryServe(runId, asked, client, serving), (result) =>
    Effect.suspend(() => {
      if (result === "served") return Effect.void;
      serving.meter.count("refused");
      return result === "refused" ? Effect.void : refuse(result, client);
    }),
  );

/**
 * Serves a run of this process to a client of another process. The other process sends the key of the client.
 *
 * @returns true if there is such a run
 */
export const serveHeld = (
  { from, holder, method, run_id }: StreamWish,
  client: ClientResponse,
  attachments: Attachments,
): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const run = attachments.find(run_id, holder);
    if (run === undefined) return Effect.succeed(false);
    const served = serveRun(run, { method, from: from ?? undefined }, client, attachments);
    return Effect.as(
      Effect.flatMap(served, (refused) => (refused === "served" ? Effect.void : refuse(refused, client))),
      true,
    );
  });

const refuse = (refused: Refused, client: ClientResponse): Effect.Effect<void> =>
  Effect.suspend(() => {
    client.refuse(refused, undefined, [noStore]);
    return client.end;
  });

const noStore = ["cache-control", "no-store"] as const;

/** Serves a stream, or returns the reason why not. */
const tryServe = Effect.fnUntraced(function* (
  run_id: string,
  asked: StreamRequest,
  client: ClientResponse,
  { attachments, cancels }: StreamServing,
): Effect.fn.Return<Refused | "refused" | "served"> {
  const { headers, method, target } = asked;
  if (method !== "GET" && method !== "HEAD" && method !== "DELETE") return noMethod;
  const page = refuseBrowser({ headers }, target);
  if (page !== undefined) return page;
  const from = offsetIn(headers);
  const holder = attachments.holderOf(asked);
  const run = attachments.find(run_id, holder);
  if (run !== undefined) return yield* serveRun(run, { method, from }, client, attachments);
  const elsewhere = yield* attachments.serveStreamElsewhere(
    { _tag: "Stream", run_id, holder, method, from: from ?? null },
    client,
  );
  if (elsewhere !== "none" && elsewhere !== "unreachable") return elsewhere;
  // If a worker did not reply, the run may be live in that worker. The response is then `unreachable`, because a client that gets `unknown`
  // does not ask again.
  const nowhere = elsewhere === "unreachable" ? unreachable : unknown;
  // A worker that does not reply now reads the cancel from the store later.
  if (method !== "DELETE" || elsewhere === "unreachable" || cancels === undefined || !(yield* cancels(run_id, holder)))
    return nowhere;
  client.head({ status: 204, statusText: "", headers: [noStore] });
  yield* client.end;
  return "served";
});

const serveRun = Effect.fnUntraced(function* (
  run: LingeringRun | "evicted",
  { from, method }: { readonly method: StreamWish["method"]; readonly from: number | undefined },
  client: ClientResponse,
  attachments: Attachments,
): Effect.fn.Return<Refused | "served"> {
  if (run === "evicted") return evicted;
  client.access.addFacts({ run_id: run.entry.runId });
  if (method === "DELETE") {
    attachments.cancel(run);
    client.head({ status: 204, statusText: "", headers: [noStore] });
    yield* client.end;
    return "served";
  }
  if (from === undefined || from > run.entry.log.length) return noSuchByte;
  if (run.isBrokenAt(from)) return broken;
  if (method === "HEAD") {
    client.head(run.headFrom(from));
    yield* client.end;
    return "served";
  }
  yield* attachments.serve(run, client, from, "stream");
  return "served";
});

/** Refusal if the run does not exist for these credentials. */
export const unknown: Refused = {
  status: 404,
  reason: "stream",
  message:
    "No such stream exists for the credentials of this request: it never existed, it has expired, or the gateway has restarted.",
};

/** Refusal if the response is no longer kept. */
export const evicted: Refused = {
  status: 410,
  reason: "evicted",
  message:
    "The gateway no longer keeps this response, because it or all kept responses together exceeded the limit. You cannot attach to it.",
};

/** The response broke at the client's offset, so there are no more bytes. */
export const broken: Refused = {
  status: 410,
  reason: "broken",
  message: "This response broke after the last byte that the client has, so nothing follows.",
};

/** Refusal of an offset that is invalid or beyond the response. */
export const noSuchByte: Refused = {
  status: 400,
  reason: "offset",
  message:
    "Last-Event-ID: expected the number of bytes of the decoded body that the client has, at most as many as were sent.",
};

/** Refusal of a method that streams do not support. */
export const noMethod: Refused = {
  status: 405,
  reason: "method",
  message: "A stream is read with GET and ended with DELETE.",
  headers: [["allow", "GET, HEAD, DELETE"]],
};

/** Refusal if a live worker did not reply, so that the run may exist. */
export const unreachable: Refused = {
  status: 503,
  reason: "unreachable",
  message: "A process of this gateway that may have this stream did not reply; try again.",
  headers: [["retry-after", "1"]],
};
