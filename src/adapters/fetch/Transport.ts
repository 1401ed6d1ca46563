/**
 * Sends requests through a `fetch` function: the transport of `recoveringFetch`.
 *
 * `fetch` does not report how much of a request was sent before the response head, so the delivery is `ambiguous` as soon as `fetch` is
 * called.
 */
import {
  headerOf,
  type RelayExchange,
  type RelayHead,
  type RelayReporters,
  type RelayRequest,
  type RelayTransport,
} from "../relay/RelayTransport.ts";

import { headersOf } from "./Credentials.ts";
import { type Attaching, type FetchExtras, StreamAttachment } from "./StreamAttachment.ts";

/** Options for retries: resuming a gateway's response, and fresh credentials. */
export interface FetchRepeats {
  /** Resumes a gateway's response after its connection has broken. Without it, the break ends the attempt. */
  readonly attaching?: Attaching;
  readonly renew?: Renew;
}

type Renew = (request: RelayRequest) => Promise<RelayRequest>;

/**
 * Creates the transport of one call.
 *
 * @param fetch sends a request
 * @param extras options that are passed on with every attempt
 */
export const fetchTransport = (
  fetch: typeof globalThis.fetch,
  extras: FetchExtras,
  { attaching, renew }: FetchRepeats = {},
): RelayTransport => {
  let attempts = 0;
  return {
    open: (request, reporters) => {
      attempts += 1;
      const isRepeat = attempts > 1;
      const sent = isRepeat && attaching !== undefined ? markRepeat(request, attaching) : request;
      const sending = { request: sent, attaching, renew: isRepeat ? renew : undefined };
      return new FetchExchange(fetch, extras, sending, reporters);
    },
  };
};

/**
 * Marks a retry with `x-recovery-attach`, so that a gateway returns the response that it has kept instead of requesting a second one. The
 * mark is not sent to a server that is known not to be a gateway, and does not replace a mark of the caller.
 */
const markRepeat = (request: RelayRequest, { origins }: Attaching): RelayRequest =>
  headerOf(request.headers, attach) !== undefined || !origins.mayBe(new URL(request.url).origin)
    ? request
    : { ...request, headers: [...request.headers, [attach, "1"]] };

const attach = "x-recovery-attach";

/** A request, with the means to renew its credentials and to resume its response. */
interface Sending {
  readonly request: RelayRequest;
  readonly attaching: Attaching | undefined;
  readonly renew: Renew | undefined;
}

class FetchExchange implements RelayExchange {
  readonly #abort = new AbortController();
  readonly #reporters: RelayReporters;
  readonly #response: Promise<Response>;
  readonly #attaching: Attaching | undefined;
  readonly #way: readonly [typeof globalThis.fetch, FetchExtras];
  #attachment: StreamAttachment | undefined;
  /** The request that was sent, with renewed credentials. */
  #request: RelayRequest;
  #received = 0;
  #over = false;
  #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;

  constructor(
    fetch: typeof globalThis.fetch,
    extras: FetchExtras,
    { attaching, renew, request }: Sending,
    reporters: RelayReporters,
  ) {
    this.#reporters = reporters;
    this.#attaching = attaching;
    this.#request = request;
    this.#way = [fetch, extras];
    this.#response = this.#send(renew);
    // Prevents an unhandled rejection if the attempt is abandoned before `head` is called. Otherwise `head` reports the rejection.
    this.#response.catch(() => undefined);
  }

  async head(): Promise<RelayHead> {
    const response = await this.#response;
    this.#reader = response.body?.getReader();
    const head = { status: response.status, statusText: response.statusText, headers: [...response.headers] };
    const attaching = this.#attaching;
    if (attaching !== undefined) this.#attachment = StreamAttachment.of(head, this.#request, [...this.#way, attaching]);
    // The attempt was abandoned while the head was arriving.
    if (this.#abort.signal.aborted) this.#attachment?.stop();
    return head;
  }

  async read(): Promise<ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined> {
    const next = await this.#next();
    if (next === undefined || next.done) {
      this.#over = true;
      return undefined;
    }
    this.#received += next.value.byteLength;
    this.#reporters.bytes(next.value.byteLength);
    return [next.value];
  }

  /** Reads the next bytes. If the connection breaks and a gateway keeps the response, the read continues on another connection. */
  async #next(): Promise<
    Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>["read"]>> | undefined
  > {
    for (;;) {
      try {
        return await this.#reader?.read();
      } catch (error) {
        const rest = await this.#attachment?.requestRest(this.#received, this.#abort.signal);
        if (rest?.body == null || this.#abort.signal.aborted) {
          this.#over = rest === undefined;
          throw error;
        }
        this.#reader = rest.body.getReader();
      }
    }
  }

  abort(): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort();
    // Stops the run at the gateway, so that an abandoned response costs no more. A closed connection alone could come from a client that
    // will return.
    if (!this.#over) this.#attachment?.stop();
    // Cancels the reader too, in case the fetch ignores its signal. The attempt has ended, so errors of the cancel are ignored.
    this.#reader?.cancel().catch(() => undefined);
    this.#reader?.releaseLock();
  }

  /** Async, so that a `fetch` that throws synchronously becomes a rejection. */
  async #send(renew: Renew | undefined): Promise<Response> {
    if (renew !== undefined) {
      this.#reporters.delivery("not_sent");
      this.#request = await renew(this.#request);
      // The attempt may have been abandoned while credentials were renewed. A fetch that ignores its signal would still send the request.
      this.#abort.signal.throwIfAborted();
    }
    this.#reporters.delivery("ambiguous");
    const [fetch, extras] = this.#way;
    return await fetch(this.#request.url, {
      ...extras,
      method: this.#request.method,
      headers: headersOf(this.#request),
      body: this.#request.body ?? null,
      signal: this.#abort.signal,
    });
  }
}
