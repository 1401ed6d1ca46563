/**
 * Logs when a path goes down, works again or cools down, and counts cooldowns.
 *
 * While all paths are up, nothing is checked. A run that breaks or waits requests a check, and further checks follow every second until all
 * paths are up again. A change between two checks is missed if it affects no run.
 */
import { type Context, Effect, Metric, Option, Queue, type Scope } from "effect";
import { dropOldest } from "../../domain/Limits.ts";
import { type PathStatus, Paths } from "../../paths/Paths.ts";
import { measure } from "../../runtime/run/Measures.ts";
import { describeDown } from "../../story/PathWords.ts";
import { isDisturbed } from "../api/PathList.ts";

/** Number of cooldowns that have begun, by `kind`: `rate_limited` or `overloaded`. */
export const cooldowns = Metric.counter("stream_recovery.gateway.cooldowns", {
  description: "Waits that providers announced to runs",
  incremental: true,
});

/** Interval between checks while a path is down or cools down, in milliseconds. */
export const watchMs = 1_000;

/** Maximum number of each: runs counted per outage, paths whose outage is not logged yet, and cooldowns that are remembered as logged. */
export const watchedMax = 10_000;

/** Watches the paths of a gateway. `look` requests a check. */
export interface PathWatch {
  readonly look: () => void;
  /** Called when a request that is not a run has received a response over a path. */
  readonly onResponse: (path: string) => void;
  /** Called when a run starts to wait for a path. */
  readonly onWait: (path: string, runId: string) => void;
}

interface Outage {
  /** Start of the outage: wall clock, in milliseconds since the epoch. */
  readonly since: number;
  readonly runs: Set<string>;
}

const blind: PathWatch = { look: () => undefined, onResponse: () => undefined, onWait: () => undefined };

/** Starts the watch. Without the `Paths` service, the watch does nothing. */
export const make: Effect.Effect<PathWatch, never, Scope.Scope> = Effect.gen(function* () {
  const paths = Option.getOrUndefined(yield* Effect.serviceOption(Paths));
  if (paths === undefined) return blind;
  const context = yield* Effect.context<never>();
  const asked = yield* Queue.sliding<void>(1);
  const watcher = new Watcher(context);
  const look = () => void Queue.offerUnsafe(asked, undefined);
  const turn: Effect.Effect<void> = Effect.suspend(() => {
    const list = paths.list();
    const told = Effect.forEach(watcher.diff(list), ([message, fields]) => Effect.logInfo(message, fields), {
      discard: true,
    });
    const next = Queue.take(asked);
    const waited = list.some(isDisturbed) ? Effect.timeoutOption(next, watchMs) : next;
    return Effect.andThen(told, Effect.asVoid(waited));
  });
  yield* Effect.forkScoped(Effect.forever(turn));
  const watch: PathWatch = {
    look,
    // Reachability does not depend on the credential or the model.
    onResponse: (path) => paths.recordResponse({ path, credential: "", model: undefined }),
    onWait: (path, runId) => {
      watcher.onWait(path, runId);
      look();
    },
  };
  return watch;
});

type Line = readonly [message: string, fields: Readonly<Record<string, string | number | undefined>>];

/** Logs the differences between the current paths and those logged before. */
class Watcher {
  readonly #context: Context.Context<never>;
  readonly #outages = new Map<string, Outage>();
  /** Runs that wait for a path whose outage is not logged yet. */
  readonly #early = new Map<string, Set<string>>();
  /** Cooldowns that were already logged, by scope. */
  #cooling = new Set<string>();

  constructor(context: Context.Context<never>) {
    this.#context = context;
  }

  onWait(path: string, runId: string): void {
    const known = this.#outages.get(path)?.runs ?? this.#early.get(path) ?? new Set();
    if (!this.#outages.has(path)) this.#early.set(path, known);
    if (known.size < watchedMax) known.add(runId);
    dropOldest(this.#early, watchedMax);
  }

  diff(list: ReadonlyArray<PathStatus>): ReadonlyArray<Line> {
    const lines = [...this.#outagesIn(list), ...this.#cooldownsIn(list)];
    this.#early.clear();
    return lines;
  }

  *#outagesIn(list: ReadonlyArray<PathStatus>): Generator<Line> {
    const known = new Map(list.map((status) => [status.path, status]));
    for (const { code, path, since, state } of list) {
      if (state !== "down" || this.#outages.has(path)) continue;
      this.#outages.set(path, { since, runs: this.#early.get(path) ?? new Set() });
      const why = code === undefined ? "" : `: ${describeDown(code)}`;
      yield [`a provider cannot be reached, and runs wait for it${why}`, { path, code }];
    }
    for (const [path, { runs, since }] of this.#outages) {
      const status = known.get(path);
      if (status?.state === "down") continue;
      this.#outages.delete(path);
      // The path is no longer in the list, so the gateway does not know if it works again.
      if (status === undefined) continue;
      yield ["a provider can be reached again", { path, down_ms: Math.max(0, status.since - since), runs: runs.size }];
    }
  }

  *#cooldownsIn(list: ReadonlyArray<PathStatus>): Generator<Line> {
    const now = new Set<string>();
    for (const { cooldowns: cooling, path } of list) {
      for (const { credential, kind, model, until } of cooling) {
        const scope = JSON.stringify([path, credential, model, kind]);
        if (now.size < watchedMax) now.add(scope);
        if (this.#cooling.has(scope)) continue;
        measure(cooldowns, 1, { kind }, this.#context);
        yield [
          "a provider announced a cooldown, and runs wait for its end",
          { path, model, credential, kind, until: new Date(until).toISOString() },
        ];
      }
    }
    this.#cooling = now;
  }
}
