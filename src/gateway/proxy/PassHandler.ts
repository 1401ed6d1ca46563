/** Forwards a request that is not a run to its provider, without retries, and returns the response with unchanged bytes and headers. */
import { Context, Effect, Schema } from "effect";
import { classify } from "../../failure/FailureClassifier.ts";
import type { UpstreamName } from "../config/Options.ts";
import { passedHeader } from "../config/OwnHeaders.ts";
import {
  askAgain,
  type FailureSeen,
  isOutOfDescriptors,
  outOfDescriptors,
  reportOutOfDescriptors,
} from "../limits/Descriptors.ts";
import { labelsOf } from "../log/Defect.ts";
import type { Refused } from "../routing/Admission.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import type { PassedRequest, PassedResponse, Upstream } from "../upstream/Upstream.ts";
import { isStream, type ReportedPaths } from "../wires/PassedStreams.ts";
import type { PassedReason } from "../wires/Wires.ts";
import type { ClientResponse } from "./ClientResponse.ts";
import { BodyRefused } from "./RequestBody.ts";

/**
 * The provider was unreachable, or its response broke. Only class and code of the error are logged, because the error's message may contain
 * an address.
 */
class PassFailed extends Schema.TaggedError<PassFailed>()("PassFailed", {
  reason: Schema.Literals(["unreachable", "broken", "too_long"]),
  error: Schema.Unknown,
}) {}

/** A POST that is not a run. If its response is a stream, the client and the operator are told that the stream is not recovered. */
export interface Unrecovered {
  readonly reason: PassedReason;
  /** Path and query without the gateway's own prefixes. */
  readonly target: string;
  readonly reported: ReportedPaths;
}

/**
 * Forwards a request and its response until the response ends.
 *
 * @param name provider in whose format gateway errors are written
 * @param unrecovered undefined for methods other than POST
 */
export const pass = (
  request: PassedRequest,
  name: UpstreamName,
  client: ClientResponse,
  upstream: Upstream,
  unrecovered?: Unrecovered,
): Effect.Effect<void> =>
  Effect.withFiber<void>((fiber) => {
    client.whenGone(() => fiber.interruptUnsafe(undefined, Context.empty()));
    return passThrough(request, client, upstream, unrecovered).pipe(
      Effect.catchTag("PassFailed", ({ error, reason }) => {
        const { code, kind: failure } = classify(error);
        client.access.addFacts({ code, failure });
        return Effect.andThen(
          Effect.logWarning(`a request passed through without recovery failed: ${reason}`, {
            ...labelsOf(error),
            ...(code === undefined ? {} : { code }),
          }),
          client.hasBegun ? client.break : refuse({ code, kind: failure }, reason, name, client),
        );
      }),
      Effect.onInterrupt(() => client.break),
      Effect.scoped,
    );
  });

const passThrough = Effect.fnUntraced(function* (
  request: PassedRequest,
  client: ClientResponse,
  upstream: Upstream,
  unrecovered: Unrecovered | undefined,
) {
  const { body, head } = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: (signal) => upstream.pass(request, signal),
      catch: (error) => new PassFailed({ reason: error instanceof BodyRefused ? "too_long" : "unreachable", error }),
    }),
    ({ body }) => Effect.sync(() => void body.on("error", ignoreError).destroy()),
    { interruptible: true },
  );
  const streams = unrecovered !== undefined && isStream(head, request.url);
  client.head(streams ? { ...head, headers: [...head.headers, [passedHeader, unrecovered.reason]] } : head);
  if (streams) yield* report(unrecovered, client);
  yield* copyBody(body, client);
  yield* client.end;
});

const report = ({ reason, reported, target }: Unrecovered, { access }: ClientResponse): Effect.Effect<void> =>
  Effect.suspend(() => {
    access.addFacts({ passed: reason });
    // A body that could not be parsed was logged earlier.
    const path = reason === "unread_body" ? undefined : reported.takeNew(target);
    return path === undefined
      ? Effect.void
      : Effect.logWarning("a stream passes through without recovery", { path, reason });
  });

const copyBody = Effect.fnUntraced(function* (body: PassedResponse["body"], client: ClientResponse) {
  const chunks: AsyncIterator<Bytes> = body[Symbol.asyncIterator]();
  for (;;) {
    const next = yield* Effect.tryPromise({
      try: () => chunks.next(),
      catch: (error) => new PassFailed({ reason: "broken", error }),
    });
    if (next.done === true) return;
    yield* client.write([next.value]);
  }
});

/** The body was abandoned, so its errors are ignored. */
const ignoreError = (): void => undefined;

const refuse = (
  failure: FailureSeen,
  reason: PassFailed["reason"],
  name: UpstreamName,
  client: ClientResponse,
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const isOwn = isOutOfDescriptors(failure);
    client.refuse(isOwn ? { ...outOfDescriptors, headers: askAgain } : refusalOf(reason, failure.code), name);
    return isOwn ? reportOutOfDescriptors : Effect.void;
  });

/** Creates the refusal. Its message contains the error's code, which distinguishes a wrong address from a wrong certificate. */
const refusalOf = (reason: PassFailed["reason"], code: string | undefined): Refused => {
  const refused = words[reason];
  return code === undefined ? refused : { ...refused, message: refused.message.replace(/\.$/, ` (${code}).`) };
};

const words: Readonly<Record<PassFailed["reason"], Refused>> = {
  unreachable: { status: 502, reason: "upstream_failed", message: "The provider could not be reached." },
  broken: { status: 502, reason: "upstream_failed", message: "The provider's response broke." },
  too_long: { status: 413, reason: "body", message: "The request's body is longer than the gateway accepts." },
};
