/**
 * Gathers the metrics of all workers: a worker that is scraped asks the supervisor, which asks the others.
 */
import { Effect, Schema, type Scope } from "effect";
import { supervisor, WorkerBus } from "../workers/WorkerBus.ts";
import { notice, query } from "../workers/WorkerMessage.ts";
import { MetricLedger, MetricRows } from "./MetricRows.ts";

/** A worker is scraped: it tells its own series, and reads those of all. */
const gathered = query("metrics_gathered", MetricRows, MetricRows);

/** The supervisor asks a worker for its series. It waits for less than the scraped worker does for it. */
const told = query("metrics_told", Schema.Null, MetricRows, { replyMs: 1_000 });

/** A worker tells its series from time to time: what it counts behind that is lost where it is killed. */
const kept = notice("metrics_kept", MetricRows);

/** From one time to the next, in milliseconds. */
export const keepMs = 5_000;

/**
 * Lets a worker take part while the scope lives.
 *
 * @param own the worker's own series
 * @returns those of all workers; its own where the supervisor does not reply
 */
export const joined = Effect.fnUntraced(function* (
  bus: WorkerBus["Service"],
  own: Effect.Effect<MetricRows>,
): Effect.fn.Return<Effect.Effect<MetricRows>, never, Scope.Scope> {
  yield* bus.replies(told, () => own);
  const keep = Effect.map(own, (rows) => bus.tell(kept, rows, supervisor));
  yield* Effect.addFinalizer(() => keep);
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(keepMs), keep)));
  return Effect.flatMap(own, (rows) =>
    Effect.catch(bus.ask(gathered, rows, supervisor), ({ reason }) =>
      Effect.as(Effect.logWarning("the metrics are those of one worker alone", { reason }), rows),
    ),
  );
});

/** Keeps the ledger of all workers, in their supervisor. */
export const keeping: Effect.Effect<void, never, WorkerBus | Scope.Scope> = Effect.gen(function* () {
  const bus = yield* WorkerBus;
  const ledger = new MetricLedger();
  yield* bus.on(kept, (rows, worker) => ledger.told(worker, rows));
  yield* bus.onLeft((worker) => ledger.left(worker));
  yield* bus.replies(gathered, (rows, scraped) =>
    Effect.gen(function* () {
      ledger.told(scraped, rows);
      const others = bus.others().filter((worker) => worker !== scraped);
      const ask = (worker: number) =>
        // What a worker that does not reply has told before still counts.
        Effect.ignore(Effect.map(bus.ask(told, null, worker), (its) => ledger.told(worker, its)));
      yield* Effect.forEach(others, ask, { concurrency: "unbounded", discard: true });
      return ledger.rows;
    }),
  );
});
