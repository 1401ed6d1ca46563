/**
 * Serves `/recovery/streams/RUN`: the response of a run, from a byte on, to who shows the credential of the run's request; and the
 * word that its user has stopped it.
 *
 * A run's name is no secret: it stands in a response's head, in logs and on the page. So the credential is demanded, and anybody else
 * is told that there is nothing.
 */
import { Effect } from "effect";
import type { RelayRequest } from "../../adapters/relay/RelayTransport.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import type { TrafficMeter } from "../proxy/TrafficMeter.ts";
import type { Address } from "../routing/Address.ts";
import { browsed, type Refused } from "../routing/Admission.ts";
import type { Holder } from "./AttachKey.ts";
import type { Attachments } from "./Attachments.ts";
import { offsetIn } from "./AttachWish.ts";

/** What serving a stream needs of the gateway. */
export interface StreamServing {
  readonly attachments: Attachments;
  readonly meter: TrafficMeter["Service"];
}

/** A request for a run's response, and who asks. */
export type StreamRequest = Holder & Pick<RelayRequest, "method">;

const prefix = "/recovery/streams/";

/** The run that a path of the gateway's own names; undefined for any other path. */
export const streamOf = ({ own, target }: Pick<Address, "own" | "target">): string | undefined => {
  if (!own || !target.startsWith(prefix)) return undefined;
  const [name = ""] = target.slice(prefix.length).split("?");
  return name;
};

/** Serves it. */
export const serveStream = (
  runId: string,
  asked: StreamRequest,
  client: ClientResponse,
  serving: StreamServing,
): Effect.Effect<void> =>
  Effect.flatMap(answered(runId, asked, client, serving), (refused) =>
    Effect.suspend(() => {
      if (refused === undefined) return Effect.void;
      serving.meter.count("refused");
      client.refuse(refused, undefined, [noStore]);
      return client.end;
    }),
  );

const noStore = ["cache-control", "no-store"] as const;

/** Serves it, or says why not. */
const answered = Effect.fnUntraced(function* (
  runId: string,
  asked: StreamRequest,
  client: ClientResponse,
  { attachments }: StreamServing,
): Effect.fn.Return<Refused | undefined> {
  const { headers, method, target } = asked;
  if (method !== "GET" && method !== "HEAD" && method !== "DELETE") return noMethod;
  const page = browsed({ headers }, target);
  if (page !== undefined) return page;
  const from = offsetIn(headers);
  const run = attachments.found(runId, asked);
  if (run === undefined) return unknown;
  if (run === "evicted") return evicted;
  client.access.learned({ run_id: runId });
  if (method === "DELETE") {
    attachments.cancel(run);
    client.head({ status: 204, statusText: "", headers: [noStore] });
    yield* client.end;
    return undefined;
  }
  if (from === undefined || from > run.entry.log.length) return noSuchByte;
  if (run.isBrokenAt(from)) return broken;
  if (method === "HEAD") {
    client.head(run.headFrom(from));
    yield* client.end;
    return undefined;
  }
  yield* attachments.serve(run, client, from, "stream");
  return undefined;
});

const unknown: Refused = {
  status: 404,
  reason: "stream",
  message:
    "There is no such stream for the credentials of this request: there never was, its time is over, or the gateway has been started anew since.",
};

const evicted: Refused = {
  status: 410,
  reason: "evicted",
  message: "This response has become too long to be kept, or too many others are: it cannot be attached to any more.",
};

const broken: Refused = {
  status: 410,
  reason: "broken",
  message: "This response broke behind the byte that the client has: there is no more of it.",
};

const noSuchByte: Refused = {
  status: 400,
  reason: "offset",
  message:
    "Last-Event-ID says how many bytes of the decoded body the client has: a whole number, at most those that were sent.",
};

const noMethod: Refused = {
  status: 405,
  reason: "method",
  message: "A stream is read by GET and ended by DELETE.",
  headers: [["allow", "GET, HEAD, DELETE"]],
};
