/**
 * Recovers the calls of one AI SDK model: every stream of the provider is an attempt of a StreamProcessor run.
 *
 * A caller of the SDK cannot discard parts, so this adapter delivers them as `StreamProcessor.parts` does: lifecycle parts are held until
 * content arrives, and everything from the first tool call on is held until the terminal marker (L4).
 */
import { Clock, Context, Effect, Stream } from "effect";
import { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { AttemptContext, RunOptions } from "../../runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { ToolGuard } from "../../runtime/tools/ToolGuard.ts";
import { type CallInterrupted, toCallInterrupted } from "./CallInterrupted.ts";
import type { CallRegistry } from "./CallRegistry.ts";
import type { LiveCall } from "./Discard.ts";
import type { CallOptions, GenerateResult, Model, StreamPart, StreamResult } from "./Parts.ts";
import { ReadPart } from "./Parts.ts";
import type { Repeats } from "./Repeats.ts";
import { revealParts } from "./Reveal.ts";
import { type Envelope, requestStream, requestWhole } from "./Source.ts";
import { readExposed } from "./Tools.ts";
import { type Fork, promiseOf, webStreamOf } from "./WebStream.ts";

/** Options for recovering the calls of a model, in the terms of `StreamProcessor.run`. */
export interface RecoverOptions
  extends Pick<RunOptions<unknown, unknown, never>, "budget" | "clocks" | "emptyIsFailure" | "policy" | "reveal"> {
  /**
   * True if the model reasons before it writes. If omitted, this is unknown, and the wait for the first progress is as long as for a model
   * that reasons.
   */
  readonly reasoning?: boolean;
  /** Renews the credentials of the provider package after the provider has rejected them (`rejected.auth`). Tried once per call. */
  readonly refreshCredentials?: () => PromiseLike<unknown>;
}

/** The state that all calls of a recovery use. */
export interface Host {
  readonly services: Context.Context<StreamProcessor | ToolGuard>;
  readonly calls: CallRegistry;
  readonly repeats: Repeats;
}

/** One call of a model, with its original request. */
interface Call {
  readonly model: Model;
  readonly params: CallOptions;
  readonly options: RecoverOptions;
  /** Set if the call can withdraw parts that were already shown. */
  readonly live?: LiveCall;
}

/**
 * Streams a response.
 *
 * @returns the stream, after its first parts have arrived, with the metadata of request and response. A call that fails earlier returns a
 *   stream that fails with `CallInterrupted`, because the SDK takes a rejected promise for a call that was never sent
 */
export const stream = async (host: Host, call: Call): Promise<StreamResult> => {
  let envelope: Envelope = {};
  const run = runOf(host, call, (attempt, params) =>
    requestStream(call.model, params, attempt, (opened) => {
      envelope = opened;
    }),
  );
  const withWarning = repeatWarning(host, call.params);
  const parts = revealParts(processorOf(host), run, call.live).pipe(
    Stream.map((read) => {
      handOver(host, read);
      return withWarning(read.part);
    }),
    Stream.mapError((error) => endOf(host, call.params, error)),
  );
  const { begun, stream } = webStreamOf(forkOf(host), parts, call.params.abortSignal);
  await begun;
  return { ...envelope, stream };
};

/**
 * Requests a whole response.
 *
 * @throws CallInterrupted, or the reason of the caller's abort signal
 */
export const generate = async (host: Host, call: Call): Promise<GenerateResult> => {
  const run = {
    ...runOf(host, call, (attempt, params) => requestWhole(call.model, params, attempt)),
    streaming: false,
  };
  const message = host.repeats.warning(call.params, nowOf(host));
  const response = Stream.runLast(processorOf(host).parts(run)).pipe(
    Effect.flatMap(Effect.fromOption),
    Effect.mapError((error) => (error instanceof RunInterrupted ? endOf(host, call.params, error) : error)),
  );
  const read = await promiseOf(forkOf(host), response, call.params.abortSignal);
  const calls = read.part.content.filter((part) => part.type === "tool-call" && part.providerExecuted !== true);
  for (const [index, ready] of read.ready.entries()) {
    const part = calls[index];
    if (part?.type === "tool-call") host.calls.register(ready, part);
  }
  if (message === undefined) return read.part;
  return { ...read.part, warnings: [...read.part.warnings, { type: "other", message }] };
};

const runOf = <P>(
  host: Host,
  { model, options, params }: Call,
  open: (attempt: AttemptContext, params: CallOptions) => Stream.Stream<ReadPart<P>, unknown>,
): RunOptions<ReadPart<P>, unknown, never> => {
  const { tools, params: unmarked } = readExposed(params);
  // The caller's signal stops the run, and only the run aborts attempts. The signal is removed from the request because a caller may also
  // use it for its own fetch: that fetch would fail first, with an error that does not show the user's Stop (L10).
  const { abortSignal: signal, ...sent } = unmarked;
  const { reasoning, refreshCredentials, ...rest } = options;
  return {
    ...rest,
    ...(signal === undefined ? {} : { signal }),
    provider: { id: model.provider, model: model.modelId, ...(reasoning === undefined ? {} : { reasoning }) },
    tools: tools(Context.get(host.services, ToolGuard)),
    attempt: (attempt) => open(attempt, sent),
    observe: (read) => read.observation,
    ...(refreshCredentials === undefined ? {} : { refreshCredentials: Effect.tryPromise(refreshCredentials) }),
  };
};

/** Registers the calls in a delivered part. From then on their tools may start. */
const handOver = (host: Host, read: ReadPart): void => {
  const { part } = read;
  if (part.type !== "tool-call") return;
  for (const ready of read.ready) host.calls.register(ready, part);
};

/** Adds the warning about a repeated call to the provider's own warnings. The SDK logs them. */
const repeatWarning = (host: Host, params: CallOptions): ((part: StreamPart) => StreamPart) => {
  const message = host.repeats.warning(params, nowOf(host));
  if (message === undefined) return (part) => part;
  return (part) =>
    part.type === "stream-start" ? { ...part, warnings: [...part.warnings, { type: "other", message }] } : part;
};

/** Creates the error for the caller of a run that ended without a complete response (L12). */
const endOf = (host: Host, params: CallOptions, error: RunInterrupted): CallInterrupted => {
  // After a Stop the user may well send the same request again, so that is not a repeat.
  if (error.failure.kind !== "cancelled" || error.failure.by === "provider")
    host.repeats.recordFailure(params, nowOf(host));
  const { cause } = error;
  if (!(cause instanceof ReadPart)) return toCallInterrupted(error, cause);
  const { part } = cause;
  return toCallInterrupted(error, "type" in part && part.type === "error" ? part.error : undefined);
};

const processorOf = (host: Host): StreamProcessor["Service"] => Context.get(host.services, StreamProcessor);

const nowOf = (host: Host): number => Context.get(host.services, Clock.Clock).currentTimeMillisUnsafe();

const forkOf =
  (host: Host): Fork =>
  (effect) =>
    Effect.runForkWith(host.services)(effect);
