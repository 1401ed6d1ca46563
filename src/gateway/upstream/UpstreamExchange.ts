/**
 * Carries one relayed request to a provider over undici, and reports its head, its bytes, its progress, and its end at once.
 */
import type {
  Arrivals,
  Coming,
  PolledHead,
  RelayExchange,
  RelayHead,
  RelayReporters,
  RelayRequest,
} from "../../adapters/relay/RelayTransport.ts";
import { fieldOf, readAddress, relayError } from "../../adapters/relay/RelayTransport.ts";
import { Exchange, type ExchangeBreak } from "../../client/connection/Exchange.ts";
import { failureOf } from "../../client/connection/ExchangeFailure.ts";
import type { Origin } from "../../client/connection/Origin.ts";
import { type ProviderError, providerError } from "../../client/ProviderError.ts";
import type { HttpConnections } from "../../client/ProviderRequest.ts";
import type { Failure } from "../../domain/Failure.ts";
import type { Polled } from "../../runtime/attempt/AsyncSource.ts";
import { type Bytes, decodeStream, isEncoded } from "./ContentDecoding.ts";
import { clientHeadersOf, flatOf, flatUpstreamHeadersOf, pairsOf, without } from "./Headers.ts";
import { sliceBody } from "./SlicedBody.ts";

/** The parts of the gateway that an exchange depends on. */
export interface ExchangeContext {
  readonly wire: HttpConnections;
  readonly origin: Origin;
  /** Monotonic time, in milliseconds. */
  readonly monotonicMs: () => number;
  /** Wall clock, in milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** Called once, when the exchange ends. */
  readonly onOver: () => void;
}

/** An exchange that keeps the raw head, because an object of headers loses spelling, order and duplicates. */
class RawExchange extends Exchange {
  rawHead: RelayHead | undefined = undefined;

  override onResponseStart(controller: Given[0], status: number, headers: Given[2], statusText?: string): void {
    const { rawHeaders } = controller;
    const flat: ReadonlyArray<string | Buffer> = Array.isArray(rawHeaders) ? rawHeaders : [];
    if (status >= 200) this.rawHead = { status, statusText: statusText ?? "", headers: clientHeadersOf(pairsOf(flat)) };
    // The raw headers are views of the first bytes read, up to 64 KiB, which a stream must not retain for its whole duration (L11).
    controller.rawHeaders = null;
    super.onResponseStart(controller, status, headers);
  }
}

type Given = Parameters<Required<Parameters<HttpConnections["agent"]["dispatch"]>[1]>["onResponseStart"]>;

/** A relayed request in flight. If the provider encoded the response, its body is decoded. */
export class UpstreamExchange implements RelayExchange {
  readonly #exchange: RawExchange;
  readonly #context: ExchangeContext;
  #decoded: AsyncIterator<Bytes> | undefined;

  constructor(request: RelayRequest, reporters: RelayReporters, context: ExchangeContext) {
    this.#context = context;
    this.#exchange = new RawExchange(reporters, context.monotonicMs);
    this.#exchange.onOver = context.onOver;
    dispatch(context.wire, request, this.#exchange);
  }

  get coming(): Coming {
    return this;
  }

  pollHead(): PolledHead {
    const { broken, rawHead } = this.#exchange;
    if (rawHead !== undefined) return { _tag: "head", head: this.#headOf(rawHead) };
    return broken === undefined ? undefined : { _tag: "error", error: this.#toError(broken) };
  }

  wait(wake: () => void): void {
    this.#exchange.wait(wake);
  }

  async head(): Promise<RelayHead> {
    return (await this.#awaitPoll(() => this.pollHead())).head;
  }

  /** Returns the head to report. @throws ProviderError if its body cannot be decoded */
  #headOf(head: RelayHead): RelayHead {
    this.#context.origin.reached = true;
    const encoding = fieldOf(head.headers, "content-encoding");
    if (encoding === undefined || !isEncoded(encoding)) return head;
    // The response came encoded although a plain one was requested. It is decoded here.
    const source = decodeStream(encoding, () => this.#readRaw());
    if (source === undefined) {
      // The status of a refusal says enough, so the body stays encoded.
      if (head.status < 200 || head.status > 299) return head;
      // Not retryable, because the next response would come in the same encoding.
      throw relayError({ kind: "protocol", reason: "not_a_stream", retryable: false, code: "unknown_encoding" });
    }
    this.#decoded = source[Symbol.asyncIterator]();
    return { ...head, headers: without(without(head.headers, "content-encoding"), "content-length") };
  }

  async read(): Promise<ReadonlyArray<Bytes> | undefined> {
    if (this.#decoded === undefined) return this.#readRaw();
    const next = await this.#decoded.next();
    return next.done === true ? undefined : [next.value];
  }

  arrivals(): Arrivals | undefined {
    return this.#decoded === undefined ? this : undefined;
  }

  poll(): Polled<Bytes> {
    const polled = this.#exchange.poll();
    if (polled === undefined) return undefined;
    if (polled === "ended") return { _tag: "end" };
    if ("operation" in polled) return { _tag: "error", error: this.#toError(polled) };
    return { _tag: "chunk", chunk: plainBytes(polled) };
  }

  abort(): void {
    this.#exchange.abort();
    // An abandoned decoder may still fail, which no longer matters.
    this.#decoded?.return?.().catch(() => undefined);
  }

  async #readRaw(): Promise<ReadonlyArray<Bytes> | undefined> {
    const polled = await this.#awaitPoll(() => this.poll());
    return polled._tag === "end" ? undefined : polled.chunk;
  }

  /** Waits for the result of a poll; rejects if the exchange has broken. */
  async #awaitPoll<A extends { readonly _tag: string }>(look: () => A | Failed | undefined): Promise<A> {
    for (;;) {
      const found = look();
      if (isFailed(found)) throw found.error;
      if (found !== undefined) return found;
      await new Promise<void>((wake) => this.wait(wake));
    }
  }

  readonly #toError = (broken: ExchangeBreak): ProviderError =>
    providerError(this.#failureOf(broken), this.#exchange.delivery, broken.error);

  #failureOf(broken: ExchangeBreak): Failure {
    const { monotonicMs, nowMs, origin } = this.#context;
    return failureOf(broken, { origin, exchange: this.#exchange, now: monotonicMs(), nowMs: nowMs() });
  }
}

const noBody = { body: null, headers: [] };

/** Writes a request with its own headers, in their spelling and order. */
const dispatch = ({ agent, connector }: HttpConnections, request: RelayRequest, exchange: Exchange): void => {
  try {
    const { origin, pathname, search } = readAddress(request.url) ?? new URL(request.url);
    const whole = typeof request.body === "string" ? Buffer.from(request.body) : request.body;
    exchange.requestBytes = whole?.byteLength ?? 0;
    const { body, headers } = whole === undefined ? noBody : sliceBody(whole);
    const options = {
      origin,
      path: `${pathname}${search}`,
      method: request.method,
      headers: [...flatUpstreamHeadersOf(request.headers), ...flatOf(headers)],
      body,
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    connector.withWaiting(exchange, () => agent.dispatch(options, exchange));
  } catch (error) {
    exchange.refuse(error);
  }
};

interface Failed {
  readonly _tag: "error";
  readonly error: unknown;
}

const isFailed = (found: { readonly _tag: string } | undefined): found is Failed => found?._tag === "error";

/** Narrows the type: a poll returns at least one chunk, and undici's buffers never use shared memory, although their type allows it. */
const plainBytes = (chunks: ReadonlyArray<Uint8Array>) => chunks as unknown as readonly [Bytes, ...Array<Bytes>];
