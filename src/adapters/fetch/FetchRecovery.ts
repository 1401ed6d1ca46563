/**
 * Recovers broken model streams in a `fetch` function, for clients that accept one: openai, @anthropic-ai/sdk, LangChain, and any other
 * client of one of the protocols.
 *
 * ```ts
 * const fetch = recoveringFetch();
 * const openai = new OpenAI({ fetch, maxRetries: 0 });
 * ```
 *
 * A client that sees only bytes limits what can be recovered (`Relay.ts`). By default, a break is recovered if no content was shown before
 * it. Calls are held until their end is proven, so they are not shown before. A break that cannot be recovered is an error of the body,
 * never a clean end. Requests to other endpoints pass through unchanged.
 *
 * SDKs retry by themselves, twice by default, each time with a whole budget, so set `maxRetries: 0`. If an SDK does retry, the repeat of a
 * request that has just failed gets the remaining budget of that request instead of a fresh one.
 *
 * Node's own `fetch` times out after 300 s without a response head or a byte. A run treats that as a broken connection.
 */

import { Cause, type Context, Effect, Exit, Layer, ManagedRuntime, References, Scope } from "effect";
import type { Path } from "../../paths/Path.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import * as Relay from "../relay/Relay.ts";
import { RelayInterrupted } from "../relay/RelayInterrupted.ts";
import type { DeclaredTools, RelayPlan } from "../relay/RelayPlan.ts";
import { RelayRepeats } from "../relay/RelayRepeats.ts";
import { credentialIn, digestCharacters, type RelayRequest } from "../relay/RelayTransport.ts";
import { type FetchCall, readCall } from "./Call.ts";
import { type RefreshCredentials, renew } from "./Credentials.ts";
import { errorOf, refuse, respond } from "./Response.ts";
import { GatewayOrigins } from "./StreamAttachment.ts";
import { fetchTransport } from "./Transport.ts";

export type { RelayResponse, RelayRun } from "../relay/Relay.ts";
export { RelayInterrupted } from "../relay/RelayInterrupted.ts";
export type { RelayEvent } from "../relay/RelayReader.ts";
export { CredentialsNotRefreshed, type FetchHeaders, type RefreshCredentials } from "./Credentials.ts";

/** Options of a recovering fetch. Each has a default. */
export interface FetchRecoveryOptions
  extends Pick<
    Relay.RelayOptions,
    "reveal" | "head" | "continueText" | "prefills" | "budget" | "clocks" | "policy" | "tolerance" | "onEvent"
  > {
  /**
   * Resumes the response of a gateway whose connection broke, from the very next byte, if the gateway keeps its runs for clients that
   * return (`--linger-ms`). Without a gateway it has one effect: a repeat to a server that has never answered carries `x-recovery-attach:
   * 1`. Default false.
   */
  readonly attach?: boolean;
  /** Sends the requests. Default `globalThis.fetch`, looked up at each call. */
  readonly fetch?: typeof globalThis.fetch;
  /**
   * Returns the headers that a repeat sets, for example a token that is not about to expire. Called with the request's headers before each
   * repeat. With this option, a request that is refused for its credentials is repeated once. If the function fails, or takes longer than
   * 30 s, the run ends with `CredentialsNotRefreshed`. Omitted: a repeat has the credentials of the first request.
   */
  readonly refreshCredentials?: RefreshCredentials;
  /** The effects of the requests' tools, by name. A tool that is not named is `unknown`. */
  readonly tools?: DeclaredTools;
  /** An application's own processor, which outlives this fetch. */
  readonly runtime?: Pick<ManagedRuntime.ManagedRuntime<StreamProcessor, unknown>, "context">;
  /** Creates the processor of this fetch. Default: runs are kept in memory, no person is asked, and nothing is logged. */
  readonly layer?: Layer.Layer<StreamProcessor, unknown>;
}

/** A `fetch` that can be closed. */
export type RecoveringFetch = typeof globalThis.fetch & {
  /** Closes the processor that was created for this fetch, and stops its runs. A given processor stays open. */
  readonly close: () => Promise<void>;
};

/**
 * Creates a recovering fetch. Its processor is created with the first request that is recovered.
 *
 * @param options recovery options; each has a default
 */
export const recoveringFetch = (options: FetchRecoveryOptions = {}): RecoveringFetch => {
  const repeats = new RelayRepeats();
  const origins = new GatewayOrigins();
  let own: ManagedRuntime.ManagedRuntime<StreamProcessor, unknown> | undefined;
  const runtime = () => {
    if (options.runtime !== undefined) return options.runtime;
    own ??= ManagedRuntime.make(options.layer ?? quiet);
    return own;
  };
  const call = async (...[input, init]: Parameters<typeof globalThis.fetch>): Promise<Response> => {
    const fetch = options.fetch ?? globalThis.fetch;
    const asked = await readCall(input, init, options.tools ?? {});
    if (asked.plan === undefined) return fetch(asked.input, asked.init);
    const context = await runtime().context();
    const sleep = (ms: number) => Effect.runPromiseWith(context)(Effect.sleep(ms));
    const refresh = options.refreshCredentials;
    const send: typeof globalThis.fetch = (url, sent) =>
      fetch(url, { ...sent, headers: asked.convertHeaders(new Headers(sent?.headers)) });
    const transport = fetchTransport(send, asked.extras, {
      ...(options.attach === true ? { attaching: { sleep, origins } } : {}),
      ...(refresh === undefined ? {} : { renew: (request) => Effect.runPromiseWith(context)(renew(refresh, request)) }),
    });
    const { signal } = asked;
    const heeding = signal === undefined ? {} : { signal };
    const path = await pathOf(asked.plan.request);
    // The caller may have left while the request was prepared.
    signal?.throwIfAborted();
    return relay(asked.plan, asked, context, { ...relayOptions(options), ...heeding, path, transport, repeats });
  };
  // SDKs read properties of a fetch, for example its Response.
  return Object.assign(call, options.fetch, { close: async () => own?.dispose() });
};

const quiet: Layer.Layer<StreamProcessor> = Layer.merge(
  StreamProcessor.layerDefault,
  Layer.succeed(References.MinimumLogLevel, "None"),
);

const relayOptions = ({
  attach: _a,
  fetch: _f,
  layer: _l,
  refreshCredentials,
  runtime: _r,
  tools: _t,
  ...options
}: FetchRecoveryOptions) => ({
  ...options,
  // The transport refreshes before each repeat. The run only has to know that a repeat after a 401 can succeed.
  ...(refreshCredentials === undefined ? {} : { refreshCredentials: Effect.void }),
});

/** Runs a request. The promise resolves with the response's head, like that of a fetch. */
const relay = (
  plan: RelayPlan,
  { signal }: FetchCall,
  context: Context.Context<StreamProcessor>,
  options: Relay.RelayOptions,
): Promise<Response> =>
  new Promise((resolve, reject) => {
    const run = Effect.runForkWith(context);
    const scope = Scope.makeUnsafe();
    const opening = Relay.open(plan, options).pipe(
      Scope.provide(scope),
      Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Scope.close(scope, exit))),
    );
    const fiber = run(opening);
    const onAbort = () => {
      // Reject before the interrupt, because the interrupt ends the fiber synchronously, and the promise would reject without the reason.
      reject(signal?.reason);
      // The interrupt needs no signature, because the run listens to the signal itself (L10).
      fiber.interruptUnsafe();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    fiber.addObserver((exit) => {
      signal?.removeEventListener("abort", onAbort);
      if (Exit.isSuccess(exit)) resolve(responseOf(exit.value, signal, context, scope));
      else failWith(Cause.squash(exit.cause), plan, resolve, reject);
    });
  });

const responseOf = (
  answer: Relay.RelayResponse,
  signal: AbortSignal | undefined,
  context: Context.Context<StreamProcessor>,
  scope: Scope.Closeable,
): Response => {
  const close = Scope.close(scope, Exit.void);
  const run = Effect.runForkWith(context);
  return respond(answer.head, answer.plan.request.url, {
    read: () => Effect.runPromiseExitWith(context)(answer.read),
    // The run has seen an aborted signal. A reader that leaves without an aborted signal cancels on behalf of the user.
    cancel: () => void run(signal?.aborted === true ? close : Effect.andThen(answer.cancel, close)),
    close: () => void run(close),
    signal,
  });
};

const failWith = (
  error: unknown,
  plan: RelayPlan,
  resolve: (response: Response) => void,
  reject: (error: unknown) => void,
): void => {
  const response = error instanceof RelayInterrupted ? error.response : undefined;
  if (error instanceof RelayInterrupted && response !== undefined)
    resolve(refuse(response, plan.request.url, error.headers));
  else reject(errorOf(error));
};

/**
 * Returns the path of a request: its origin, with a digest of the credential that it carries. It cannot be probed, because `fetch` makes no
 * connection without a request, so a waiting request is sent as the probe.
 */
export const pathOf = async ({ headers, url }: Pick<RelayRequest, "headers" | "url">): Promise<Path> => {
  const id = new URL(url).origin;
  const credential = credentialIn(url, headers);
  return credential === "" ? { id } : { id, credential: await digestOf(credential) };
};

/** A key of this process that cannot be exported, so a leaked digest cannot be tested against guessed credentials. */
let key: ReturnType<typeof newKey> | undefined;

const newKey = () => crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

const digestOf = async (credential: string): Promise<string> => {
  key ??= newKey();
  const signed = await crypto.subtle.sign("HMAC", await key, new TextEncoder().encode(credential));
  const hex = Array.from(new Uint8Array(signed), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.slice(0, digestCharacters);
};
