/**
 * Serves `/recovery/streams/RUN`: the response of a run, from a byte on, to who shows the credential of the run's request; and the
 * word that its user has stopped it.
 *
 * A run's name is no secret: it stands in a response's head, in logs and on the page. So the credential is demanded, and anybody else
 * is told that there is nothing.
 */
import { Effect } from "effect";
import type { RelayRequest } from "../../adapters/relay/RelayTransport.ts";
import { broken, evicted, noMethod, noSuchByte, unheard, unknown } from "../delivery/StreamRefusals.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import type { TrafficMeter } from "../proxy/TrafficMeter.ts";
import type { Address } from "../routing/Address.ts";
import { browsed, type Refused } from "../routing/Admission.ts";
import type { Holder } from "./AttachKey.ts";
import type { Attachments } from "./Attachments.ts";
import { offsetIn } from "./AttachWish.ts";
import type { CancelsElsewhere } from "./CancelsElsewhere.ts";
import type { StreamWish } from "./HopMessage.ts";
import type { LingeringRun } from "./LingeringRun.ts";

/** What serving a stream needs of the gateway. */
export interface StreamServing {
  readonly attachments: Attachments;
  /** Ends runs that other machines drive, where there are any. */
  readonly cancels?: CancelsElsewhere | undefined;
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

/** Serves it, wherever the run is. */
export const serveStream = (
  runId: string,
  asked: StreamRequest,
  client: ClientResponse,
  serving: StreamServing,
): Effect.Effect<void> =>
  Effect.flatMap(answered(runId, asked, client, serving), (result) =>
    Effect.suspend(() => {
      if (result === "served") return Effect.void;
      serving.meter.count("refused");
      return result === "refused" ? Effect.void : refuse(result, client);
    }),
  );

/**
 * Serves a run of this process to a client of another one, which has shown the key of who may have it.
 *
 * @returns whether there is such a run
 */
export const serveHeld = (
  { from, holder, method, run_id }: StreamWish,
  client: ClientResponse,
  attachments: Attachments,
): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const run = attachments.found(run_id, holder);
    if (run === undefined) return Effect.succeed(false);
    const served = given(run, { method, from: from ?? undefined }, client, attachments);
    return Effect.as(
      Effect.flatMap(served, (refused) => (refused === "served" ? Effect.void : refuse(refused, client))),
      true,
    );
  });

const none = Effect.succeed("none" as const);

const refuse = (refused: Refused, client: ClientResponse): Effect.Effect<void> =>
  Effect.suspend(() => {
    client.refuse(refused, undefined, [noStore]);
    return client.end;
  });

const noStore = ["cache-control", "no-store"] as const;

/** Serves it, or says why not. */
const answered = Effect.fnUntraced(function* (
  run_id: string,
  asked: StreamRequest,
  client: ClientResponse,
  { attachments, cancels }: StreamServing,
): Effect.fn.Return<Refused | "refused" | "served"> {
  const { headers, method, target } = asked;
  if (method !== "GET" && method !== "HEAD" && method !== "DELETE") return noMethod;
  const page = browsed({ headers }, target);
  if (page !== undefined) return page;
  const from = offsetIn(headers);
  const holder = attachments.holderOf(asked);
  const run = attachments.found(run_id, holder);
  if (run !== undefined) return yield* given(run, { method, from }, client, attachments);
  const elsewhere = yield* attachments.streamedElsewhere(
    { _tag: "Stream", run_id, holder, method, from: from ?? null },
    client,
  );
  if (elsewhere !== "none" && elsewhere !== "unheard") return elsewhere;
  // A client that is told that there is no such stream asks no more, and its run may go on.
  const nowhere = elsewhere === "unheard" ? unheard : unknown;
  const delivered = yield* attachments.deliveries?.streamed(
    { run_id, method, from },
    attachments.returning(asked, client),
  ) ?? none;
  if (delivered !== "none") return delivered;
  if (method !== "DELETE" || cancels === undefined || !(yield* cancels(run_id, holder))) return nowhere;
  client.head({ status: 204, statusText: "", headers: [noStore] });
  yield* client.end;
  return "served";
});

/** Gives a client what it asks of a run. */
const given = Effect.fnUntraced(function* (
  run: LingeringRun | "evicted",
  { from, method }: { readonly method: StreamWish["method"]; readonly from: number | undefined },
  client: ClientResponse,
  attachments: Attachments,
): Effect.fn.Return<Refused | "served"> {
  if (run === "evicted") return evicted;
  client.access.learned({ run_id: run.entry.runId });
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
