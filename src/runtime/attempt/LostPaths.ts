/**
 * Probes silent paths, and ends the attempts of a path that is lost.
 *
 * One probe serves all attempts of a path. A path that works proves nothing about an existing connection, so the clocks keep running.
 */
import type * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { PathsService } from "../../paths/Paths.ts";
import type { PathListener, Watchdog } from "./Watchdog.ts";

/** Handles the silent paths of one processor. */
export class LostPaths implements PathListener {
  readonly #paths: PathsService;
  readonly #watchdog: Pick<Watchdog, "lose" | "now">;
  readonly #context: Context.Context<never>;

  /** @param context services for its own fibers, because a probe must not block the watchdog that reports the path */
  constructor(paths: PathsService, watchdog: Pick<Watchdog, "lose" | "now">, context: Context.Context<never>) {
    this.#paths = paths;
    this.#watchdog = watchdog;
    this.#context = context;
  }

  onSilent(path: string): void {
    const since = this.#watchdog.now();
    // Bytes that arrive during the probe prove that their connection is alive, so those attempts are not ended.
    const onResult = (isLost: boolean) => (isLost ? this.#watchdog.lose(path, since) : undefined);
    Effect.runForkWith(this.#context)(Effect.map(this.#paths.isLost(path), onResult));
  }

  onWake(paths: ReadonlySet<string>): void {
    this.#paths.onWake();
    for (const path of paths) this.onSilent(path);
  }
}
