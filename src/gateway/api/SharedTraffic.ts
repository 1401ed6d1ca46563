/**
 * Makes one traffic of that of all workers: a page that any of them serves tells what all of them do, and hears of their changes.
 */
import { Clock, Context, Effect, Layer, Option, Queue, Schema, Stream } from "effect";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { WorkerBus } from "../workers/WorkerBus.ts";
import { notice, query } from "../workers/WorkerMessage.ts";
import { AttachableRun, changesMax, type RunChange, runChanges, Traffic, type TrafficStatus } from "./Traffic.ts";

/** Most runs of one worker that are told, of each kind: more than it may have connections. */
const runsMax = 65_536;

const runs = <A>(schema: Schema.Codec<A>) => Schema.Array(schema).check(Schema.isMaxLength(runsMax));

const Status = Schema.Struct({
  live: runs(Label),
  absent: Schema.optionalKey(runs(Schema.Struct({ run_id: Label, since: Milliseconds, until: Milliseconds }))),
  attachable: Schema.optionalKey(runs(AttachableRun)),
  connections: Schema.Natural,
  draining: Schema.Boolean,
  since: Milliseconds,
  requests: Schema.Struct({ relayed: Schema.Natural, passed_through: Schema.Natural, refused: Schema.Natural }),
  tokens: Schema.Record(Schema.String, Schema.Natural),
});

const told = query("traffic_told", Schema.Null, Status);

const changed = notice("run_changed", Schema.Struct({ run_id: Label, what: Schema.Literals(runChanges) }));

/** A worker has readers of changes. Only then are they told of: most of the time nobody looks. */
const reading = notice("changes_read", Schema.Null);

/** From one word of a reader to the next, in milliseconds. */
const readMs = 1_000;

/** A reader that was not heard of for so long is gone, in milliseconds. */
const goneMs = 3 * readMs;

/**
 * Puts the traffic of all workers in the place of this one's, where there are several.
 *
 * @param own gives the traffic of this process
 */
export const layer = <Out, E, R>(own: Layer.Layer<Traffic | Out, E, R>): Layer.Layer<Traffic | Out, E, R> =>
  // Only what the layer gives: the context in which a layer is built has its scope, and would put that in the place of the reader's.
  Layer.flatMap(own, (context) =>
    Layer.effectContext(
      Effect.gen(function* () {
        const bus = Option.getOrUndefined(yield* Effect.serviceOption(WorkerBus));
        if (bus === undefined) return context;
        return Context.add(context, Traffic, yield* shared(Context.get(context, Traffic), bus));
      }),
    ),
  );

const shared = Effect.fnUntraced(function* (own: Traffic["Service"], bus: WorkerBus["Service"]) {
  const clock = yield* Clock.Clock;
  yield* bus.replies(told, () => own.status);
  const scope = yield* Effect.scope;
  let readAt = Number.NEGATIVE_INFINITY;
  let tells = false;
  const telling = own.changes.pipe(
    Stream.runForEachWhile((change) =>
      Effect.sync(() => {
        if (monotonicMs(clock) - readAt > goneMs) return false;
        bus.tell(changed, change);
        return true;
      }),
    ),
    Effect.ensuring(
      Effect.sync(() => {
        tells = false;
      }),
    ),
  );
  const services = yield* Effect.context<never>();
  yield* bus.on(reading, () => {
    readAt = monotonicMs(clock);
    if (tells) return;
    tells = true;
    Effect.runForkWith(services)(Effect.forkIn(telling, scope, { startImmediately: true }));
  });
  return {
    status: Effect.map(Effect.all([own.status, bus.askOthers(told, null)], { concurrency: 2 }), ([here, others]) =>
      summed(
        here,
        others.map(({ value }) => value),
      ),
    ),
    own: own.status,
    changes: Stream.merge(own.changes, changesOf(bus)),
  };
});

/** The changes of the others, while they are read. */
const changesOf = (bus: WorkerBus["Service"]): Stream.Stream<RunChange> =>
  Stream.callback<RunChange>(
    (queue) =>
      Effect.gen(function* () {
        yield* bus.on(changed, (change) => void Queue.offerUnsafe(queue, change));
        return yield* Effect.forever(
          Effect.andThen(
            Effect.sync(() => bus.tell(reading, null)),
            Effect.sleep(readMs),
          ),
        );
      }),
    { bufferSize: changesMax, strategy: "sliding" },
  );

/** What all workers do, as one. */
export const summed = (here: TrafficStatus, others: ReadonlyArray<TrafficStatus>): TrafficStatus => {
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
    // Each worker drains by itself: this one says what its client meets.
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
