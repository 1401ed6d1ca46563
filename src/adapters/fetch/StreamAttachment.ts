/**
 * Goes on reading a response of a gateway whose connection broke: the gateway keeps its run for a while (`x-recovery-linger`), and gives
 * the response on from the very next byte (`GET /recovery/streams/RUN`).
 *
 * Only a response that names such a run is gone on with, so that nothing changes where no gateway stands behind a `fetch`.
 */
import { dropOldest } from "../../domain/Limits.ts";
import type { RelayHead, RelayHeaders, RelayRequest } from "../relay/RelayTransport.ts";
import { headerOf } from "../relay/RelayTransport.ts";
import { headersOf } from "./Credentials.ts";

/** Everything of a call that is neither method, address, header, body nor signal (`dispatcher`, `redirect`, …). */
export type FetchExtras = Omit<RequestInit, "method" | "headers" | "body" | "signal">;

/** Most times that a broken response is asked for again, in a row without a byte of it. */
export const attachTriesMax = 5;

/** The wait before the first of them, in milliseconds; each further one is twice as long. */
export const attachWaitMs = 250;

/** What attaching needs of its embedder. */
export interface Attaching {
  /** Waits so many milliseconds. */
  readonly sleep: (ms: number) => Promise<void>;
  readonly origins: GatewayOrigins;
}

/** Most origins that are remembered: a program has one or two gateways. */
const originsMax = 64;

/** Knows at which origins gateways stand that keep runs, as their responses have said. */
export class GatewayOrigins {
  readonly #known = new Map<string, boolean>();

  /**
   * Whether a gateway may stand there. One that has not answered yet may be one: a connection that breaks before the first head of all
   * must not cost a second generation.
   */
  mayBe(origin: string): boolean {
    return this.#known.get(origin) !== false;
  }

  /** A server has answered. What stands before a gateway may refuse in its stead, so that an error says nothing of it. */
  answered(origin: string, keeps: boolean, status: number): void {
    if (!keeps && (status >= 400 || this.#known.get(origin) === true)) return;
    this.#known.delete(origin);
    this.#known.set(origin, keeps);
    dropOldest(this.#known, originsMax);
  }
}

type Fetch = typeof globalThis.fetch;

/** A response of a gateway that may be attached to. */
export class StreamAttachment {
  readonly #fetch: Fetch;
  readonly #extras: FetchExtras;
  readonly #url: string;
  readonly #headers: ReadonlyArray<[string, string]>;
  readonly #attaching: Attaching;
  /** The byte that was asked for last, and how often. */
  #from = 0;
  #tried = 0;

  private constructor(fetch: Fetch, extras: FetchExtras, request: RelayRequest, run: string, attaching: Attaching) {
    this.#fetch = fetch;
    this.#extras = extras;
    this.#url = streamOf(request.url, run);
    this.#headers = shownBy(request.headers);
    this.#attaching = attaching;
  }

  /**
   * What a response may be gone on with; undefined where it names no run that is kept.
   *
   * @param request that it is the response to
   */
  static readonly of = (
    { headers, status }: Pick<RelayHead, "headers" | "status">,
    request: RelayRequest,
    [fetch, extras, attaching]: readonly [Fetch, FetchExtras, Attaching],
  ): StreamAttachment | undefined => {
    const run = headerOf(headers, "x-recovery-run");
    const lingers = headerOf(headers, "x-recovery-linger") !== undefined;
    const keeps = run !== undefined && lingers && /^[\w-]{1,128}$/.test(run);
    attaching.origins.answered(new URL(request.url).origin, keeps, status);
    if (!keeps) return undefined;
    return new StreamAttachment(fetch, extras, request, run, attaching);
  };

  /**
   * Asks for the rest of the response.
   *
   * @param from how many bytes of it there are
   * @returns undefined where it cannot be had
   */
  async rest(from: number, signal: AbortSignal): Promise<Response | undefined> {
    // A response that is given and breaks again without a byte counts too: else a run that broke would be asked for without end.
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

  /** Tells the gateway that its client wants no more of the response: the run ends at once. */
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

/** Where a gateway gives the response of a run; a token in the path is the gateway's, and a key in the query the client's. */
const streamOf = (url: string, run: string): string => {
  const { origin, pathname, search } = new URL(url);
  const token = /^\/t\/[^/]+(?=\/)/.exec(pathname)?.[0] ?? "";
  return `${origin}${token}/recovery/streams/${run}${search}`;
};

/** The headers of a request without those of its body and of its repetition: whatever shows a credential is among them. */
const shownBy = (headers: RelayHeaders): ReadonlyArray<[string, string]> =>
  headers
    .filter(
      ([name]) => !/^(?:content-.*|transfer-encoding|x-recovery-attach|x-recovery-linger|last-event-id)$/i.test(name),
    )
    .map(([name, value]) => [name, value]);
