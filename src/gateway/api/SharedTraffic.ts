/**
 * Combines the traffic of all workers, so that the page shows the same in each of them.
 */
import { Context, Effect, Layer, Option, Schema } from "effect";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import { query } from "../workers/SignedWire.ts";
import { WorkerSockets } from "../workers/WorkerSockets.ts";
import { AttachableRun, Traffic, type TrafficStatus } from "./Traffic.ts";

/** Maximum number of runs of each kind that a worker reports. It exceeds the maximum number of connections. */
const runsMax = 65_536;

const runListOf = <A>(schema: Schema.Codec<A>) => Schema.Array(schema).check(Schema.isMaxLength(runsMax));

const Status = Schema.Struct({
  live: runListOf(Label),
  absent: Schema.optionalKey(runListOf(Schema.Struct({ run_id: Label, since: Milliseconds, until: Milliseconds }))),
  attachable: Schema.optionalKey(runListOf(AttachableRun)),
  connections: Schema.Natural,
  draining: Schema.Boolean,
  since: Milliseconds,
  requests: Schema.Struct({ relayed: Schema.Natural, passed_through: Schema.Natural, refused: Schema.Natural }),
  tokens: Schema.Record(Schema.String, Schema.Natural),
});

const askTraffic = query("traffic_told", Schema.Null, Status);

/**
 * Reports the traffic of all workers if there are several, instead of this worker's alone. Changes are reported for this worker only,
 * because the feed finds the changes of other workers in the store.
 *
 * @param own provides the traffic of this process
 */
export const layer = <Out, E, R>(own: Layer.Layer<Traffic | Out, E, R>): Layer.Layer<Traffic | Out, E, R> =>
  // Passes on the layer's services only. The context of a layer also contains its scope, which would replace the scope of the layer's user.
  Layer.flatMap(own, (context) =>
    Layer.effectContext(
      Effect.gen(function* () {
        const sockets = Option.getOrUndefined(yield* Effect.serviceOption(WorkerSockets));
        if (sockets === undefined) return context;
        const { changes, status } = Context.get(context, Traffic);
        yield* sockets.serveQuery(askTraffic, () => status);
        const all = Effect.all([status, sockets.askOthers(askTraffic, null)], { concurrency: 2 });
        const shared = {
          ...{ changes, own: status },
          status: Effect.map(all, ([here, others]) =>
            sumTraffic(
              here,
              others.map(({ value }) => value),
            ),
          ),
        };
        return Context.add(context, Traffic, shared);
      }),
    ),
  );

/** Adds up the traffic of this worker and the others. */
export const sumTraffic = (here: TrafficStatus, others: ReadonlyArray<TrafficStatus>): TrafficStatus => {
  const all = [here, ...others];
  const sum = (of: (status: TrafficStatus) => number) => all.reduce((total, status) => total + of(status), 0);
  const tokens = new Map<string, number>();
  for (const [name, count] of all.flatMap((it) => Object.entries(it.tokens)))
    tokens.set(name, (tokens.get(name) ?? 0) + count);
  return {
    live: all.flatMap(({ live }) => live),
    absent: all.flatMap(({ absent = [] }) => absent),
    attachable: all.flatMap(({ attachable = [] }) => attachable).toSorted((a, b) => a.began_at - b.began_at),
    connections: sum(({ connections }) => connections),
    // Each worker drains independently, and this response comes from this worker.
    draining: here.draining,
    since: Math.min(...all.map(({ since }) => since)),
    requests: {
      relayed: sum(({ requests }) => requests.relayed),
      passed_through: sum(({ requests }) => requests.passed_through),
      refused: sum(({ requests }) => requests.refused),
    },
    tokens: Object.fromEntries(tokens),
  };
};
