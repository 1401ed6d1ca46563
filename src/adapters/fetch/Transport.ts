/**
 * Reaches a provider through a `fetch` function: the transport of `recoveringFetch`.
 *
 * `fetch` does not report how far a request got before its head, so an attempt is `ambiguous` from its start.
 */
import type {
  RelayExchange,
  RelayHead,
  RelayReporters,
  RelayRequest,
  RelayTransport,
} from "../relay/RelayTransport.ts";

/** Everything of a call that is neither method, address, header, body nor signal (`dispatcher`, `redirect`, …). */
export type FetchExtras = Omit<RequestInit, "method" | "headers" | "body" | "signal">;

/**
 * Makes the transport of one call.
 *
 * @param fetch sends a request; it is called once an attempt
 * @param extras handed on with every attempt
 */
export const fetchTransport = (fetch: typeof globalThis.fetch, extras: FetchExtras): RelayTransport => ({
  open: (request, reporters) => new FetchExchange(fetch, extras, request, reporters),
});

class FetchExchange implements RelayExchange {
  readonly #abort = new AbortController();
  readonly #reporters: RelayReporters;
  readonly #response: Promise<Response>;
  #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;

  constructor(fetch: typeof globalThis.fetch, extras: FetchExtras, request: RelayRequest, reporters: RelayReporters) {
    this.#reporters = reporters;
    reporters.delivery("ambiguous");
    this.#response = this.#send(fetch, extras, request);
    // `head` gives the rejection to its caller; an attempt that is given up before never calls it.
    this.#response.catch(() => undefined);
  }

  async head(): Promise<RelayHead> {
    const response = await this.#response;
    this.#reader = response.body?.getReader();
    return { status: response.status, statusText: response.statusText, headers: [...response.headers] };
  }

  async read(): Promise<ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined> {
    const next = await this.#reader?.read();
    if (next === undefined || next.done) return undefined;
    this.#reporters.bytes(next.value.byteLength);
    return [next.value];
  }

  abort(): void {
    this.#abort.abort();
    // A fetch that ignores its signal still loses its reader; the attempt is over, so an error of the cancel is dropped.
    this.#reader?.cancel().catch(() => undefined);
  }

  /** An async function, so that a `fetch` that throws before it returns a promise rejects too. */
  async #send(fetch: typeof globalThis.fetch, extras: FetchExtras, request: RelayRequest): Promise<Response> {
    return await fetch(request.url, {
      ...extras,
      method: request.method,
      headers: request.headers.map(([name, value]): [string, string] => [name, value]),
      body: request.body ?? null,
      signal: this.#abort.signal,
    });
  }
}
