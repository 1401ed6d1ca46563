/**
 * Ends the response of a run that cannot be recovered. If no head was sent, the client gets an error status. Otherwise it gets an error
 * event of its protocol, or a broken connection.
 *
 * A provider's refusal that was not retried is forwarded unchanged. For any other failure the gateway writes its own error, which quotes
 * the provider's last one. A repeat of the request gets the same error from memory.
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

/** A request whose run has ended, with its client or a substitute for the client. */
export interface EndedRequest<Client = ClientResponse> {
  readonly plan: RelayPlan;
  readonly manner: Manner;
  /** Provider in whose format gateway errors are written. */
  readonly upstream: UpstreamName;
  readonly client: Client;
  /** Memory of the failures that were reported to clients. */
  readonly repeats: RelayRepeats | undefined;
}

/**
 * Answers from memory if the request repeats one that failed recently. Nothing is sent to a provider.
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

/** Ends a response whose head was not sent yet. */
export const beforeHead = Effect.fnUntraced(function* (error: RelayInterrupted, request: EndedRequest) {
  const { client, upstream } = request;
  if (isOutOfDescriptors(error.failure)) return yield* outOfRoom(error, request);
  if (error.again_ms !== undefined) return reportStillWaiting(error, error.again_ms, request);
  if (isGivenUp(error, error.retry_of !== undefined)) return refuse(request, yield* rememberFailure(error, request));
  // The client is still connected, so another person cancelled the run. The client would retry an error that looks transient.
  if (isCancelled(error)) return refuse(request, finalFailureOf(error));
  if (error.response !== undefined) return yield* forwardRefusal(error.response, error.headers, client);
  client.refuse({ status: 503, reason: "unavailable", message: error.message }, upstream, [
    ...(error.reason === "record_failed" ? askAgain : []),
    ...error.headers,
  ]);
});

/** Reports that no file descriptor was left for a connection. The request can be retried, so the failure is not remembered. */
const outOfRoom = (error: RelayInterrupted, { client, upstream }: EndedRequest): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { code, kind } = error.failure;
    client.access.addFacts({ failure: kind, code });
    const named = code === undefined ? [] : [["x-recovery-code", code] as const];
    client.refuse(outOfDescriptors, upstream, [...askAgain, ...error.headers, ...named]);
    return reportOutOfDescriptors;
  });

/**
 * Ends a response whose head was sent. If the gateway shuts down or cannot record, the connection is broken, so that the client retries.
 * The first break of shown text also breaks the connection, if the client can recover from that.
 *
 * @param response the stream to which the error is appended, even after an error event of the provider, because some clients do not read
 *   that event. In that case nothing is remembered, because the provider itself has reported the failure
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
  for (const { bytes, pauseMs, text } of plan.protocol.givenUp.ending(message, response.last(), run)) {
    yield* client.write([bytes ?? new TextEncoder().encode(text)]);
    yield* Effect.sleep(pauseMs);
  }
  yield* manner.ending === "clean" ? client.end : client.break;
});

/**
 * The head was sent, so no status can stop the client from retrying. Every client therefore gets a message without the words that make
 * clients retry.
 */
const inStream = { asksByWords: true };

/**
 * True if only the shown text prevented a second attempt. If the client does not retry, the program above it may do so at once. That retry
 * is not answered from memory, because the provider may work again.
 */
const isOpen = ({ attempts, retry_of, rule }: RelayInterrupted, { mends }: Manner): boolean =>
  rule === "text_shown" && attempts === 1 && retry_of === undefined && mends === "nothing";

/**
 * Reports that a request still waits for its path, so that its client retries. The refusal is not remembered, because the retry resumes the
 * wait.
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
 * True if a person cancelled the run: on the page, on the command line, or by a DELETE of its stream. A cancel is not remembered for
 * repeats.
 */
const isCancelled = ({ rule }: RelayInterrupted): boolean => rule === "user_cancelled";

/** True if this gateway ended the run for a reason that does not depend on the request. */
const isOfGateway = ({ failure, reason, rule }: RelayInterrupted): boolean =>
  isOutOfDescriptors(failure) || rule === "lifecycle_closed" || reason === "refused" || reason === "record_failed";

/** Remembers the failure of a run that failed before its head while no client was connected. */
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
 * Reports a failed run to its client. A known client gets the error in the form that its row of the client table defines. An unknown client
 * gets the provider's own refusal, if there is one.
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
