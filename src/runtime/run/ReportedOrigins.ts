/**
 * Remembers the origins of a provider's recent requests, as its clients report them. A run that names no path uses these origins as its
 * paths.
 *
 * A caller may rotate hosts in its own code, so the path of its next request is unknown until it is sent. A request waits only if all of
 * its provider's recent origins are down and the last request still went to one of them.
 */
import type { Provider } from "../../domain/RunFacts.ts";
import type { Path } from "../../paths/Path.ts";
import type { PathsService, Scope } from "../../paths/Paths.ts";
import { scopeOf } from "../attempt/Departure.ts";
import { providersMax } from "../pacing/Throttle.ts";

/**
 * Maximum requests of one provider that are remembered. A caller that sends this many requests to a dead host does not rotate away from it.
 */
const recentMax = 3;

/** The recent requests of one provider. */
interface Seen {
  /** The origins of its last requests, newest first. An origin can occur several times. */
  readonly recent: ReadonlyArray<string>;
  /** True if the last request went to an origin that was down, so its caller does not rotate away from it. */
  readonly isStuck: boolean;
}

/** The origins of all providers of a processor. */
export class ReportedOrigins {
  readonly #paths: Pick<PathsService, "standing">;
  /** Origins by provider; the newest entry is last. */
  readonly #seen = new Map<string, Seen>();

  constructor(paths: Pick<PathsService, "standing">) {
    this.#paths = paths;
  }

  /** Notes the origin of a request whose run has no path of its own. */
  saw({ id, model }: Provider, origin: string): void {
    const isStuck = this.#isDown({ path: origin, credential: "", model });
    const before = this.#seen.get(id)?.recent ?? [];
    this.#seen.delete(id);
    this.#seen.set(id, { recent: [origin, ...before].slice(0, recentMax), isStuck });
    for (const oldest of this.#seen.keys()) {
      if (this.#seen.size > providersMax) this.#seen.delete(oldest);
      break;
    }
  }

  /**
   * Returns the scope of the next request.
   *
   * @param path the run's own path, which takes precedence
   */
  next(provider: Provider, path: string | Path | undefined): Scope {
    const unknown = scopeOf(provider, path);
    const seen = path === undefined ? this.#seen.get(provider.id) : undefined;
    if (seen === undefined) return unknown;
    const scopes = seen.recent.map((origin) => ({ ...unknown, path: origin }));
    const isUp = scopes.find((scope) => !this.#isDown(scope));
    if (isUp !== undefined) return isUp;
    // The last request did not go to a dead origin, so the caller may use a host that was not seen yet. One request tries this host and
    // reports it.
    return seen.isStuck ? (scopes[0] ?? unknown) : unknown;
  }

  #isDown(scope: Scope): boolean {
    return this.#paths.standing(scope, 0).path === "down";
  }
}
