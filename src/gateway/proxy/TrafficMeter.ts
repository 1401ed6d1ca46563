/**
 * Counts the gateway's activity and publishes changes, for the page and the metrics.
 */
import { Clock, Context, Effect, Layer, PubSub, Stream } from "effect";
import { type AttachableRun, changesMax, type RunChange, Traffic, type TrafficStatus } from "../api/Traffic.ts";

/** Receives the gateway's activity. `Traffic` reports it. */
export class TrafficMeter extends Context.Service<
  TrafficMeter,
  {
    readonly opened: (runId: string) => void;
    readonly closed: (runId: string) => void;
    readonly changed: (change: RunChange) => void;
    /** Called when a request is admitted, with the name of its token. The name is undefined if the gateway has no tokens. */
    readonly admitted: (token: string | undefined) => void;
    readonly count: (what: "relayed" | "passed_through" | "refused") => void;
    readonly listening: (connections: () => number) => void;
    /** Sets the function that lists the runs to whose responses a client can attach. */
    readonly lingering: (runs: () => ReadonlyArray<AttachableRun>) => void;
    readonly draining: () => void;
  }
>()("effect-stream-recovery/gateway/TrafficMeter") {
  static readonly layer: Layer.Layer<Traffic | TrafficMeter> = Layer.effectContext(Effect.suspend(() => make));
}

const attachableStatus = (attachable: ReadonlyArray<AttachableRun>): Pick<TrafficStatus, "absent" | "attachable"> => ({
  attachable,
  absent: attachable.flatMap(({ expires_at, left_at, run_id, state }) =>
    state !== "left" || left_at === undefined || expires_at === undefined
      ? []
      : [{ run_id, since: left_at, until: expires_at }],
  ),
});

/** Maximum number of token names that are counted. Each reload of the configuration may add new names. */
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
  let attachable = (): ReadonlyArray<AttachableRun> => [];
  const publish = (change: RunChange) => void PubSub.publishUnsafe(changes, change);
  const meter = TrafficMeter.of({
    opened: (run_id) => {
      live.add(run_id);
      publish({ run_id, what: "opened" });
    },
    closed: (run_id) => {
      live.delete(run_id);
      publish({ run_id, what: "closed" });
    },
    changed: publish,
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
    lingering: (runs) => {
      attachable = runs;
    },
    draining: () => {
      draining = true;
    },
  });
  const traffic = Traffic.of({
    status: Effect.sync(() => ({
      live: [...live],
      ...attachableStatus(attachable()),
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
