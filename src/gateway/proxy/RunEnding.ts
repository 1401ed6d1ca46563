/**
 * Ends the response of a run that broke for good: by an error status if no head was sent, and otherwise by an error in the stream
 * that the client understands, or by a broken connection.
 *
 * A provider's refusal that no run retried passes unchanged. A failure that the gateway reports itself is reported once, with the
 * provider's last error. A repeat of the request is answered from memory.
 */
import { Effect } from "effect";
import type { RelayResponse } from "../../adapters/relay/Relay.ts";
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import type { RelayRepeats } from "../../adapters/relay/RelayRepeats.ts";
import type { RelayRefusal } from "../../adapters/relay/RelayTransport.ts";
import { unknownName } from "../clients/ClientRows.ts";
import {
  finalFailureOf,
  type GivenUp,
  isGivenUp,
  isLeftToClient,
  recallFailure,
  refusalOf,
  sentenceOf,
} from "../clients/GivenUp.ts";
import type { Manner } from "../clients/Manner.ts";
import type { UpstreamName } from "../config/Options.ts";
import { askAgain, isOutOfDescriptors, outOfDescriptors, reportOutOfDescriptors } from "../limits/Descriptors.ts";
import type { Refused } from "../routing/Admission.ts";
import type { ClientResponse } from "./ClientResponse.ts";

/** A request whose run has ended, and its client or a substitute for it. */
export interface EndedRequest<Client = ClientResponse> {
  readonly plan: RelayPlan;
  readonly manner: Manner;
  /** Provider in whose format gateway errors are written. */
  readonly upstream: UpstreamName;
  readonly client: Client;
  /** Memory of failures that clients were told. */
  readonly repeats: RelayRepeats | undefined;
}

/**
 * Answers a repeat of a recently failed request from memory, without contacting a provider.
 *
 * @returns true if the request was answered
 */
export const fromMemory = (request: EndedRequest): Effect.Effect<boolean> =>
  request.repeats === undefined || request.repeats.isNew(request.plan.request)
    ? Effect.succeed(false)
    : remembering(request, request.repeats);

const remembering = Effect.fnUntraced(function* (request: EndedRequest, repeats: RelayRepeats) {
  const found = yield* repeats.recall(request.plan.request);
  if (found === undefined) return false;
  request.client.access.addFacts({ memory_ms: Math.round(found.ageMs) });
  refuse(request, recallFailure(found));
  return true;
});

/** Ends a response whose head was not sent. */
export const beforeHead = Effect.fnUntraced(function* (error: RelayInterrupted, request: EndedRequest) {
  const { client, upstream } = request;
  if (isOutOfDescriptors(error.failure)) return yield* outOfRoom(error, request);
  if (error.again_ms !== undefined) return reportStillWaiting(error, error.again_ms, request);
  if (isGivenUp(error, error.retry_of !== undefined)) return refuse(request, yield* rememberFailure(error, request));
  // A client that is still connected did not cancel, and would retry an error that looks transient.
  if (isCancelled(error)) return refuse(request, finalFailureOf(error));
  if (error.response !== undefined) return yield* forwardRefusal(error.response, error.headers, client);
  client.refuse({ status: 503, reason: "unavailable", message: error.message }, upstream, [
    ...(error.reason === "record_failed" ? askAgain : []),
    ...error.headers,
  ]);
});

/** Reports that the gateway had no descriptor for a connection. The request can be retried, so the failure is not remembered. */
const outOfRoom = (error: RelayInterrupted, { client, upstream }: EndedRequest): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { code, kind } = error.failure;
    client.access.addFacts({ failure: kind, code });
    const named = code === undefined ? [] : [["x-recovery-code", code] as const];
    client.refuse(outOfDescriptors, upstream, [...askAgain, ...error.headers, ...named]);
    return reportOutOfDescriptors;
  });

/**
 * Ends a response whose head was sent. If the gateway closes or cannot record, the connection is broken so that the client
 * retries. A first break of shown text is also left to a client that repairs it.
 *
 * @param response the error follows its last event. After the provider's own error event the failure is stated once more, for
 *   clients that do not read that event. The provider's error is authoritative, so nothing is remembered
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
  const message = sentenceOf(
    isTold ? yield* rememberFailure(error, request) : finalFailureOf(error, plan.request),
    inStream,
  );
  const { model } = plan.provider;
  const run = { id: response.run_id, ...(model === undefined ? {} : { model }) };
  for (const { pauseMs, text } of plan.protocol.givenUp.ending(message, response.last(), run)) {
    yield* client.write([new TextEncoder().encode(text)]);
    yield* Effect.sleep(pauseMs);
  }
  yield* manner.ending === "clean" ? client.end : client.break;
});

/** An error in the stream has no status that stops a client, so every client gets a message without the words that make clients retry. */
const inStream = { asksByWords: true };

/**
 * True if only the shown text prevented a second attempt. If the client repairs nothing, the program above it may retry at once. The retry
 * is not answered from memory, because the provider may be healthy.
 */
const isOpen = ({ attempts, retry_of, rule }: RelayInterrupted, { mends }: Manner): boolean =>
  rule === "text_shown" && attempts === 1 && retry_of === undefined && mends === "nothing";

/**
 * Reports that a request is still waiting for its path, so that its client retries. It is not remembered, because the repeat
 * continues to wait.
 */
const reportStillWaiting = (error: RelayInterrupted, againMs: number, { client, upstream }: EndedRequest): void => {
  const { code, kind } = error.failure;
  client.access.addFacts({ failure: kind, code });
  client.refuse({ status: 503, reason: "unavailable", message: error.message }, upstream, [
    ["retry-after", String(Math.ceil(againMs / 1000))],
    ["x-should-retry", "true"],
    ...error.headers,
  ]);
};

/**
 * True if a person cancelled the run: on the page, by the command line, or by a DELETE of its stream. A cancel is not remembered for
 * repeats.
 */
const isCancelled = ({ rule }: RelayInterrupted): boolean => rule === "user_cancelled";

/** True if this gateway ended the run for reasons that have nothing to do with the request. */
const isOfGateway = ({ failure, reason, rule }: RelayInterrupted): boolean =>
  isOutOfDescriptors(failure) || rule === "lifecycle_closed" || reason === "refused" || reason === "record_failed";

/** Remembers the failure of a run that ended before its head and without a client. */
export const unheard = (error: RelayInterrupted, request: EndedRequest<unknown>): Effect.Effect<void> =>
  error.again_ms === undefined && isGivenUp(error, error.retry_of !== undefined)
    ? Effect.asVoid(rememberFailure(error, request))
    : Effect.void;

const rememberFailure = (
  error: RelayInterrupted,
  { plan, repeats }: Pick<EndedRequest<unknown>, "plan" | "repeats">,
): Effect.Effect<GivenUp> => {
  const told = finalFailureOf(error, plan.request);
  return repeats === undefined ? Effect.succeed(told) : Effect.as(repeats.tell(plan.request, told), told);
};

/**
 * Reports a failed run to its client: in the form of its row for a known client, and by the provider's own refusal for an unknown one.
 */
const refuse = ({ client, manner, plan }: EndedRequest, told: GivenUp): void => {
  const refusal = manner.client === unknownName ? told.said?.response : undefined;
  if (refusal !== undefined) {
    client.access.addFacts({ refused: reason });
    client.reply(refusal.status, Buffer.from(refusal.body), [...refusal.headers, refusedBy, ...told.headers]);
    return;
  }
  const { document, headers, status } = refusalOf(told, plan.protocol, manner);
  client.access.addFacts({ refused: reason });
  client.answer(status, document, [refusedBy, ...headers]);
};

const reason = "upstream_failed" satisfies Refused["reason"];

const refusedBy = ["x-recovery-refused", reason] as const;

const forwardRefusal = (
  { body, head, whole }: RelayRefusal,
  extra: RelayRefusal["head"]["headers"],
  client: ClientResponse,
) =>
  Effect.suspend(() => {
    client.head({ ...head, headers: [...head.headers, ...extra] });
    return Effect.andThen(client.write(body), whole ? client.end : client.break);
  });
