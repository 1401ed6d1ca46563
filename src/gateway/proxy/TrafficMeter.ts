/**
 * Counts what the gateway does and tells of changes, for its page and its metrics.
 */
import { Clock, Context, Effect, Layer, PubSub, Stream } from "effect";
import { changesMax, type RunChange, Traffic } from "../api/Traffic.ts";

/** The writing side of `Traffic`. */
export class TrafficMeter extends Context.Service<
  TrafficMeter,
  {
    /** A relayed run begins. */
    readonly opened: (runId: string) => void;
    readonly closed: (runId: string) => void;
    readonly changed: (change: RunChange) => void;
    /** A request was admitted by the token of this name; none where the gateway has no tokens. */
    readonly admitted: (token: string | undefined) => void;
    /** A request came out so. */
    readonly count: (what: "relayed" | "passed_through" | "refused") => void;
    readonly listening: (connections: () => number) => void;
    readonly draining: () => void;
  }
>()("effect-stream-recovery/gateway/TrafficMeter") {
  /** Both sides. */
  static readonly layer: Layer.Layer<Traffic | TrafficMeter> = Layer.effectContext(Effect.suspend(() => make));
}

/** Names of tokens that are counted: a configuration that is read again and again may bring ever new ones. */
const tokensMax = 128;

const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const changes = yield* PubSub.sliding<RunChange>(changesMax);
  const live = new Set<string>();
  const requests = { relayed: 0, passed_through: 0, refused: 0 };
  const tokens = new Map<string, number>();
  let since = clock.currentTimeMillisUnsafe();
  let draining = false;
  let connections = (): number => 0;
  const changed = (change: RunChange) => void PubSub.publishUnsafe(changes, change);
  const meter = TrafficMeter.of({
    opened: (run_id) => {
      live.add(run_id);
      changed({ run_id, what: "opened" });
    },
    closed: (run_id) => {
      live.delete(run_id);
      changed({ run_id, what: "closed" });
    },
    changed,
    admitted: (token) => {
      if (token === undefined) return;
      const name = tokens.has(token) || tokens.size < tokensMax ? token : "other";
      tokens.set(name, (tokens.get(name) ?? 0) + 1);
    },
    count: (what) => {
      requests[what] += 1;
    },
    listening: (open) => {
      connections = open;
      since = clock.currentTimeMillisUnsafe();
    },
    draining: () => {
      draining = true;
    },
  });
  const traffic = Traffic.of({
    status: Effect.sync(() => ({
      live: [...live],
      connections: connections(),
      draining,
      since,
      requests: { ...requests },
      tokens: Object.fromEntries(tokens),
    })),
    changes: Stream.fromPubSub(changes),
  });
  return Context.make(Traffic, traffic).pipe(Context.add(TrafficMeter, meter));
});
