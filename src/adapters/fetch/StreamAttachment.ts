/**
 * Resumes a gateway's response after its connection has broken. The gateway keeps the run for a while (`x-recovery-linger`), and serves the
 * response from the next missing byte (`GET /recovery/streams/RUN`).
 *
 * Only a response that names a kept run is resumed, so a `fetch` without a gateway behaves as before.
 */
import { dropOldest } from "../../domain/Limits.ts";
import type { RelayHead, RelayHeaders, RelayRequest } from "../relay/RelayTransport.ts";
import { headerOf } from "../relay/RelayTransport.ts";
import { headersOf } from "./Credentials.ts";

/** All options of a call except method, headers, body and signal (`dispatcher`, `redirect`, …). */
export type FetchExtras = Omit<RequestInit, "method" | "headers" | "body" | "signal">;

/** Maximum number of consecutive requests for the rest of a broken response that yield no bytes. */
export const attachTriesMax = 5;

/** Wait before the first request for the rest of a response, in milliseconds. Each further wait is twice as long. */
export const attachWaitMs = 250;

/** Services that a resumed response needs. */
export interface Attaching {
  readonly sleep: (ms: number) => Promise<void>;
  readonly origins: GatewayOrigins;
}

/** Maximum number of remembered origins. A program usually has one or two gateways. */
const originsMax = 64;

/** Remembers which origins are gateways that keep runs, as their responses have shown. */
export class GatewayOrigins {
  readonly #known = new Map<string, boolean>();

  /**
   * True if the origin may be a gateway. An origin that has not responded yet may be a gateway: if it is, a retry after an early break can
   * resume the response instead of paying for a second one.
   */
  mayBe(origin: string): boolean {
    return this.#known.get(origin) !== false;
  }

  /** Records what a response shows about its origin. An error shows nothing, because a proxy in front of the gateway may have sent it. */
  recordResponse(origin: string, keeps: boolean, status: number): void {
    if (!keeps && (status >= 400 || this.#known.get(origin) === true)) return;
    this.#known.delete(origin);
    this.#known.set(origin, keeps);
    dropOldest(this.#known, originsMax);
  }
}

type Fetch = typeof globalThis.fetch;

/** A gateway's response that can be resumed. */
export class StreamAttachment {
  readonly #fetch: Fetch;
  readonly #extras: FetchExtras;
  readonly #url: string;
  readonly #headers: ReadonlyArray<[string, string]>;
  readonly #attaching: Attaching;
  /** Offset of the last request for the rest, and the number of requests from this offset. */
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
   * Creates the attachment of a response. Returns undefined if the response does not name a run that the gateway keeps.
   *
   * @param request the request of this response
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
   * @param from number of bytes received so far
   * @returns undefined if the rest is not available
   */
  async requestRest(from: number, signal: AbortSignal): Promise<Response | undefined> {
    // A response that breaks again without a byte counts as a failed request. Otherwise requests for a broken run would never stop.
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

  /** Tells the gateway that the client no longer needs the response, so that the run ends at once. */
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
 * Returns the address of a run's response at a gateway. It keeps the token in the path, which the gateway requires, and the query, which
 * may contain the client's key.
 */
const streamOf = (url: string, run: string): string => {
  const { origin, pathname, search } = new URL(url);
  const token = /^\/t\/[^/]+(?=\/)/.exec(pathname)?.[0] ?? "";
  return `${origin}${token}/recovery/streams/${run}${search}`;
};

/**
 * Returns the headers of a request for the rest of a response, including credentials. Headers that describe the body or mark a repeat are
 * omitted.
 */
const headersForAttach = (headers: RelayHeaders): ReadonlyArray<[string, string]> =>
  headers
    .filter(
      ([name]) => !/^(?:content-.*|transfer-encoding|x-recovery-attach|x-recovery-linger|last-event-id)$/i.test(name),
    )
    .map(([name, value]) => [name, value]);
