/**
 * Remembers the route of each response that a later request may carry, by the response's id, signed or encrypted thinking, containers and
 * files.
 *
 * Only responses of further routes are remembered, because a request starts on its first route anyway. Each mark is kept as a digest, keyed
 * per process and bound to the tenant that received the response, so it never moves another tenant's request.
 */
import { createHmac, generateKeySync } from "node:crypto";
import { dropOldest } from "../../domain/Limits.ts";

/** Maximum marks remembered (L11). The least recently seen one is evicted first. */
export const rememberedMax = 65_536;

/** The owner of a response: the tenant (a token's name), and the upstream that the request was meant for. */
export interface RememberedFor {
  readonly tenant: string | undefined;
  readonly upstream: string;
}

/** Remembers routes for all requests of the process. */
export class RouteMemory {
  readonly #key = generateKeySync("hmac", { length: 256 });
  readonly #routes = new Map<string, string>();
  readonly #max: number;

  constructor(max = rememberedMax) {
    this.#max = max;
  }

  get size(): number {
    return this.#routes.size;
  }

  /** Remembers that a response with this mark came by a route. */
  keep(of: RememberedFor, text: string, route: string): void {
    const digest = this.#digest(of, text);
    this.#routes.delete(digest);
    this.#routes.set(digest, route);
    dropOldest(this.#routes, this.#max);
  }

  /**
   * The route of the newest response that a request carries.
   *
   * @param texts marks of the request, the newest last
   */
  find(of: RememberedFor, texts: ReadonlyArray<string>): string | undefined {
    if (this.#routes.size === 0) return undefined;
    for (const text of texts.toReversed()) {
      const digest = this.#digest(of, text);
      const route = this.#routes.get(digest);
      if (route === undefined) continue;
      // Moves the mark to the end of the eviction order, so that a mark in use stays.
      this.#routes.delete(digest);
      this.#routes.set(digest, route);
      return route;
    }
    return undefined;
  }

  #digest({ tenant, upstream }: RememberedFor, text: string): string {
    const hmac = createHmac("sha256", this.#key);
    return hmac
      .update(JSON.stringify([tenant ?? null, upstream, text]))
      .digest("base64")
      .slice(0, digestCharacters);
  }
}

/** Characters kept of a digest: 132 bits. */
const digestCharacters = 22;
