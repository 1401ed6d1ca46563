/**
 * Resumes a gateway's response whose connection broke. The gateway keeps its run for a while (`x-recovery-linger`), and serves
 * the response from the very next byte (`GET /recovery/streams/RUN`).
 *
 * Only a response that names such a run is resumed, so nothing changes for a `fetch` without a gateway.
 */
import { dropOldest } from "../../domain/Limits.ts";
import type { RelayHead, RelayHeaders, RelayRequest } from "../relay/RelayTransport.ts";
import { headerOf } from "../relay/RelayTransport.ts";
import { headersOf } from "./Credentials.ts";

/** Every option of a call besides method, address, headers, body and signal (`dispatcher`, `redirect`, …). */
export type FetchExtras = Omit<RequestInit, "method" | "headers" | "body" | "signal">;

/** Maximum consecutive requests for the rest of a broken response that bring no byte of it. */
export const attachTriesMax = 5;

/** Wait before the first of these requests, in milliseconds. Each further wait is twice as long. */
export const attachWaitMs = 250;

/** The services that attaching needs. */
export interface Attaching {
  readonly sleep: (ms: number) => Promise<void>;
  readonly origins: GatewayOrigins;
}

/** Maximum origins that are remembered. A program has one or two gateways. */
const originsMax = 64;

/** Remembers which origins are gateways that keep runs, based on their responses. */
export class GatewayOrigins {
  readonly #known = new Map<string, boolean>();

  /**
   * True if the origin may be a gateway. An origin that has not answered yet may be one, because a connection that breaks before the first
   * head must not cost a second generation.
   */
  mayBe(origin: string): boolean {
    return this.#known.get(origin) !== false;
  }

  /** An error says nothing about the gateway, because a proxy in front of it may have sent the error. */
  recordResponse(origin: string, keeps: boolean, status: number): void {
    if (!keeps && (status >= 400 || this.#known.get(origin) === true)) return;
    this.#known.delete(origin);
    this.#known.set(origin, keeps);
    dropOldest(this.#known, originsMax);
  }
}

type Fetch = typeof globalThis.fetch;

/** A gateway's response that may be attached to. */
export class StreamAttachment {
  readonly #fetch: Fetch;
  readonly #extras: FetchExtras;
  readonly #url: string;
  readonly #headers: ReadonlyArray<[string, string]>;
  readonly #attaching: Attaching;
  /** The last requested byte, and the number of requests for it. */
  #from = 0;
  #tried = 0;

  private constructor(fetch: Fetch, extras: FetchExtras, request: RelayRequest, run: string, attaching: Attaching) {
    this.#fetch = fetch;
    this.#extras = extras;
    this.#url = streamOf(request.url, run);
    this.#headers = headersForAttach(request.headers);
    this.#attaching = attaching;
  }

  /**
   * Returns the attachment of a response; undefined if the response names no run that is kept.
   *
   * @param request the request that it is the response to
   */
  static readonly of = (
    { headers, status }: Pick<RelayHead, "headers" | "status">,
    request: RelayRequest,
    [fetch, extras, attaching]: readonly [Fetch, FetchExtras, Attaching],
  ): StreamAttachment | undefined => {
    const run = headerOf(headers, "x-recovery-run");
    const lingers = headerOf(headers, "x-recovery-linger") !== undefined;
    const keeps = run !== undefined && lingers && /^[\w-]{1,128}$/.test(run);
    attaching.origins.recordResponse(new URL(request.url).origin, keeps, status);
    if (!keeps) return undefined;
    return new StreamAttachment(fetch, extras, request, run, attaching);
  };

  /**
   * Requests the rest of the response.
   *
   * @param from the number of bytes received so far
   * @returns undefined if the rest is not available
   */
  async rest(from: number, signal: AbortSignal): Promise<Response | undefined> {
    // A response that breaks again without a byte counts as a try. Otherwise a broken run would be requested without end.
    if (from > this.#from) this.#tried = 0;
    this.#from = from;
    while (this.#tried < attachTriesMax && !signal.aborted) {
      await this.#attaching.sleep(attachWaitMs * 2 ** this.#tried);
      this.#tried += 1;
      if (signal.aborted) return undefined;
      const response = await this.#ask("GET", [["last-event-id", String(from)]], signal).catch(() => undefined);
      if (response === undefined || response.status >= 500) {
        await response?.body?.cancel().catch(() => undefined);
        continue;
      }
      if (response.status === 200 && response.headers.get("x-recovery-attached") === String(from)) return response;
      await response.body?.cancel().catch(() => undefined);
      return undefined;
    }
    return undefined;
  }

  /** Tells the gateway that its client needs no more of the response, so that the run ends at once. */
  stop(): void {
    this.#ask("DELETE", [], undefined)
      .then((response) => response.body?.cancel())
      .catch(() => undefined);
  }

  async #ask(
    method: string,
    headers: ReadonlyArray<[string, string]>,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    return await this.#fetch(this.#url, {
      ...this.#extras,
      method,
      headers: headersOf({ headers: [...this.#headers, ...headers] }),
      ...(signal === undefined ? {} : { signal }),
    });
  }
}

/**
 * Returns the address of a run's response at a gateway. A token in the path belongs to the gateway, a key in the query to the
 * client.
 */
const streamOf = (url: string, run: string): string => {
  const { origin, pathname, search } = new URL(url);
  const token = /^\/t\/[^/]+(?=\/)/.exec(pathname)?.[0] ?? "";
  return `${origin}${token}/recovery/streams/${run}${search}`;
};

/** Returns the headers of a request, including credentials, without those that describe its body or mark it as a repeat. */
const headersForAttach = (headers: RelayHeaders): ReadonlyArray<[string, string]> =>
  headers
    .filter(
      ([name]) => !/^(?:content-.*|transfer-encoding|x-recovery-attach|x-recovery-linger|last-event-id)$/i.test(name),
    )
    .map(([name, value]) => [name, value]);
