/**
 * Remembers by which route an answer came that a later request may carry: its id, its signed or encrypted thinking, its containers
 * and files.
 *
 * Only answers of further routes are remembered, because a request goes to its first route anyway. What is kept of a text is a digest
 * with a key of this process, by the tenant whose answer it was: no other tenant's request is moved by it.
 */
import { createHmac, generateKeySync } from "node:crypto";
import { dropOldest } from "../../domain/Limits.ts";

/** Most texts that are remembered; the one that was seen last the longest ago is forgotten (L11). */
export const rememberedMax = 65_536;

/** Whose answer it is: the tenant (a token's name), and the upstream that its request was meant for. */
export interface RememberedFor {
  readonly tenant: string | undefined;
  readonly upstream: string;
}

/** Remembers. One for all requests. */
export class RouteMemory {
  readonly #key = generateKeySync("hmac", { length: 256 });
  readonly #routes = new Map<string, string>();
  readonly #max: number;

  constructor(max = rememberedMax) {
    this.#max = max;
  }

  /** Texts that are remembered. */
  get size(): number {
    return this.#routes.size;
  }

  /** An answer with this text has come by a route. */
  keep(of: RememberedFor, text: string, route: string): void {
    const digest = this.#digest(of, text);
    this.#routes.delete(digest);
    this.#routes.set(digest, route);
    dropOldest(this.#routes, this.#max);
  }

  /**
   * The route of the newest answer that a request carries.
   *
   * @param texts of the request, the newest last
   */
  find(of: RememberedFor, texts: ReadonlyArray<string>): string | undefined {
    if (this.#routes.size === 0) return undefined;
    for (const text of texts.toReversed()) {
      const digest = this.#digest(of, text);
      const route = this.#routes.get(digest);
      if (route === undefined) continue;
      // It was seen now: what is carried on and on stays.
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

/** Characters of a digest that are kept: 132 bits. */
const digestCharacters = 22;
