/**
 * Ends the response of a run that broke for good: by a status where no head has left, and behind a head in words that its
 * client takes for an error, or by a broken connection.
 *
 * What a provider refuses and no run retried passes unchanged. What the gateway gave up is told once, with the provider's last
 * words: a repeat of the request is answered from memory.
 */
import { Effect } from "effect";
import type { RelayResponse } from "../../adapters/relay/Relay.ts";
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import type { RelayRepeats } from "../../adapters/relay/RelayRepeats.ts";
import type { RelayRefusal } from "../../adapters/relay/RelayTransport.ts";
import { unknownName } from "../clients/ClientRows.ts";
import {
  type GivenUp,
  givenUp,
  isGivenUp,
  isLeftToClient,
  recalled,
  refusalOf,
  sentenceOf,
} from "../clients/GivenUp.ts";
import type { Manner } from "../clients/Manner.ts";
import type { UpstreamName } from "../config/Options.ts";
import { askAgain, isOutOfDescriptors, outOfDescriptors, reportOutOfDescriptors } from "../limits/Descriptors.ts";
import type { Refused } from "../routing/Admission.ts";
import type { ClientResponse } from "./ClientResponse.ts";

/** The request whose run has ended, and its client, or what stands for one. */
export interface EndedRequest<Client = ClientResponse> {
  readonly plan: RelayPlan;
  readonly manner: Manner;
  /** Whose words an error of ours is in. */
  readonly upstream: UpstreamName;
  readonly client: Client;
  /** Remembers what the client was told. */
  readonly repeats: RelayRepeats | undefined;
}

/**
 * Answers a request that repeats one whose run was given up a moment ago. Nothing is sent for it.
 *
 * @returns whether it was answered
 */
export const fromMemory = (request: EndedRequest): Effect.Effect<boolean> =>
  request.repeats === undefined || request.repeats.isNew(request.plan.request)
    ? Effect.succeed(false)
    : remembering(request, request.repeats);

const remembering = Effect.fnUntraced(function* (request: EndedRequest, repeats: RelayRepeats) {
  const found = yield* repeats.recall(request.plan.request);
  if (found === undefined) return false;
  request.client.access.learned({ memory_ms: Math.round(found.ageMs) });
  refuse(request, recalled(found));
  return true;
});

/** Ends a response of which nothing has left. */
export const beforeHead = Effect.fnUntraced(function* (error: RelayInterrupted, request: EndedRequest) {
  const { client, upstream } = request;
  if (isOutOfDescriptors(error.failure)) return yield* outOfRoom(error, request);
  if (error.again_ms !== undefined) return waitsStill(error, error.again_ms, request);
  if (isGivenUp(error, error.retry_of !== undefined)) return refuse(request, yield* remembered(error, request));
  // A client that is there has not cancelled by itself, and asks again where it is told of a fault that passes.
  if (isCancelled(error)) return refuse(request, givenUp(error));
  if (error.response !== undefined) return yield* handedOn(error.response, error.headers, client);
  client.refuse({ status: 503, reason: "unavailable", message: error.message }, upstream, [
    ...(error.reason === "record_failed" ? askAgain : []),
    ...error.headers,
  ]);
});

/** The gateway itself had no descriptor for a connection: the request is as good as before, and its repeat is not answered from memory. */
const outOfRoom = (error: RelayInterrupted, { client, upstream }: EndedRequest): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { code, kind } = error.failure;
    client.access.learned({ failure: kind, code });
    const named = code === undefined ? [] : [["x-recovery-code", code] as const];
    client.refuse(outOfDescriptors, upstream, [...askAgain, ...error.headers, ...named]);
    return reportOutOfDescriptors;
  });

/**
 * Ends a response whose head has left. A gateway that closes, or cannot record, breaks the connection: its client is to ask again.
 * So does a first break of what was shown where the client mends that by itself.
 *
 * @param response the words go on from its last event. Behind an error event of the provider's own they say once more that it
 *   failed, for clients that do not read that event; it is the provider's word that stands, and nothing is remembered
 */
export const behindHead = Effect.fnUntraced(function* (
  error: RelayInterrupted,
  request: EndedRequest<Pick<ClientResponse, "break" | "end" | "write">>,
  response: Pick<RelayResponse, "begun" | "handedOn" | "last" | "run_id">,
) {
  const { client, manner, plan } = request;
  const repeated = error.retry_of !== undefined;
  const said = error.failure.in_band === true || error.response !== undefined;
  const isLeft =
    !isCancelled(error) && response.begun() && !response.handedOn() && isLeftToClient(manner, { repeated, said });
  if (manner.onBreak !== "tell" || !plan.streaming || isLeft || isOfGateway(error)) return yield* client.break;
  const isTold = isGivenUp(error, repeated) && !response.handedOn() && !isOpen(error, manner);
  const message = sentenceOf(isTold ? yield* remembered(error, request) : givenUp(error, plan.request), inStream);
  const { model } = plan.provider;
  const run = { id: response.run_id, ...(model === undefined ? {} : { model }) };
  for (const { pauseMs, text } of plan.protocol.givenUp.ending(message, response.last(), run)) {
    yield* client.write([new TextEncoder().encode(text)]);
    yield* Effect.sleep(pauseMs);
  }
  yield* manner.ending === "clean" ? client.end : client.break;
});

/** No status says there that the turn is over, so no client gets words by which any asks again. */
const inStream = { asksByWords: true };

/**
 * Whether nothing but the shown text stood against another attempt, of which none was made. A program above a client that mends
 * nothing may ask again at once, and is not told that of memory: the provider may be well.
 */
const isOpen = ({ attempts, retry_of, rule }: RelayInterrupted, { mends }: Manner): boolean =>
  rule === "text_shown" && attempts === 1 && retry_of === undefined && mends === "nothing";

/**
 * Says that a request still waits for its path, in words by which its client asks again. It is not remembered: the repeat waits on, and is not
 * answered from memory.
 */
const waitsStill = (error: RelayInterrupted, againMs: number, { client, upstream }: EndedRequest): void => {
  const { code, kind } = error.failure;
  client.access.learned({ failure: kind, code });
  client.refuse({ status: 503, reason: "unavailable", message: error.message }, upstream, [
    ["retry-after", String(Math.ceil(againMs / 1000))],
    ["x-should-retry", "true"],
    ...error.headers,
  ]);
};

/** A person has ended the run: on the page, by the command line, or as its client at another place. It is not remembered for a repeat. */
const isCancelled = ({ rule }: RelayInterrupted): boolean => rule === "user_cancelled";

/** The run ended by this gateway's own doing, which says nothing of the request. */
const isOfGateway = ({ failure, reason, rule }: RelayInterrupted): boolean =>
  isOutOfDescriptors(failure) || rule === "lifecycle_closed" || reason === "refused" || reason === "record_failed";

/** Remembers what the client of a run that ended before its head would have been told, where it has none. */
export const unheard = (error: RelayInterrupted, request: EndedRequest<unknown>): Effect.Effect<void> =>
  error.again_ms === undefined && isGivenUp(error, error.retry_of !== undefined)
    ? Effect.asVoid(remembered(error, request))
    : Effect.void;

const remembered = (
  error: RelayInterrupted,
  { plan, repeats }: Pick<EndedRequest<unknown>, "plan" | "repeats">,
): Effect.Effect<GivenUp> => {
  const told = givenUp(error, plan.request);
  return repeats === undefined ? Effect.succeed(told) : Effect.as(repeats.tell(plan.request, told), told);
};

/** Tells a client that its run was given up: a known one by its row, any other by the provider's own refusal. */
const refuse = ({ client, manner, plan }: EndedRequest, told: GivenUp): void => {
  const refusal = manner.client === unknownName ? told.said?.response : undefined;
  if (refusal !== undefined) {
    client.access.learned({ refused: reason });
    client.reply(refusal.status, Buffer.from(refusal.body), [...refusal.headers, refusedBy, ...told.headers]);
    return;
  }
  const { document, headers, status } = refusalOf(told, plan.protocol, manner);
  client.access.learned({ refused: reason });
  client.answer(status, document, [refusedBy, ...headers]);
};

const reason = "upstream_failed" satisfies Refused["reason"];

const refusedBy = ["x-recovery-refused", reason] as const;

const handedOn = (
  { body, head, whole }: RelayRefusal,
  extra: RelayRefusal["head"]["headers"],
  client: ClientResponse,
) =>
  Effect.suspend(() => {
    client.head({ ...head, headers: [...head.headers, ...extra] });
    return Effect.andThen(client.write(body), whole ? client.end : client.break);
  });
