/**
 * Remembers from which route a response came, by marks that a later request may contain: the response's id, signed or encrypted thinking,
 * containers and files.
 *
 * Only responses of fallback routes are remembered, because a request starts on the first route by default. A mark is kept as a digest under
 * a key of this process. The digest includes the tenant that received the response, so that the mark has no effect on other tenants'
 * requests.
 */
import { createHmac, generateKeySync } from "node:crypto";
import { dropOldest } from "../../domain/Limits.ts";

/** Maximum number of remembered marks (L11). The least recently used mark is evicted first. */
export const rememberedMax = 65_536;

/** Owner of a response: the tenant (the name of a token) and the upstream that its request addressed. */
export interface RememberedFor {
  readonly tenant: string | undefined;
  readonly upstream: string;
}

/** Remembers the routes of responses. A process has one instance. */
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

  /** Remembers that a response with this mark came from a route. */
  keep(of: RememberedFor, text: string, route: string): void {
    const digest = this.#digest(of, text);
    this.#routes.delete(digest);
    this.#routes.set(digest, route);
    dropOldest(this.#routes, this.#max);
  }

  /**
   * Returns the route of the newest response that a request refers to.
   *
   * @param texts marks of the request, newest last
   */
  find(of: RememberedFor, texts: ReadonlyArray<string>): string | undefined {
    if (this.#routes.size === 0) return undefined;
    for (const text of texts.toReversed()) {
      const digest = this.#digest(of, text);
      const route = this.#routes.get(digest);
      if (route === undefined) continue;
      // Moves the mark to the end of the eviction order, so that a mark in use is kept.
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

/** Number of characters of a digest that are kept: 132 bits. */
const digestCharacters = 22;
