/**
 * Asks paths from which nothing comes whether they are lost, and ends the attempts of one that is.
 *
 * One question stands for all attempts of a path. A path that works proves nothing about a connection: the clocks go on.
 */
import type * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { PathsService } from "../../paths/Paths.ts";
import type { PathListener, Watchdog } from "./Watchdog.ts";

/** The silent paths of one processor. */
export class LostPaths implements PathListener {
  readonly #paths: PathsService;
  readonly #watchdog: Pick<Watchdog, "lose" | "now">;
  readonly #context: Context.Context<never>;

  /** @param context what its own fibers run with: a question must not hold the watchdog, which asks it */
  constructor(paths: PathsService, watchdog: Pick<Watchdog, "lose" | "now">, context: Context.Context<never>) {
    this.#paths = paths;
    this.#watchdog = watchdog;
    this.#context = context;
  }

  silent(path: string): void {
    const since = this.#watchdog.now();
    // What comes while the path is asked proves that its connection lives, whatever the answer.
    const lost = (isLost: boolean) => (isLost ? this.#watchdog.lose(path, since) : undefined);
    Effect.runForkWith(this.#context)(Effect.map(this.#paths.isLost(path), lost));
  }

  woke(paths: ReadonlySet<string>): void {
    this.#paths.woke();
    for (const path of paths) this.silent(path);
  }
}
