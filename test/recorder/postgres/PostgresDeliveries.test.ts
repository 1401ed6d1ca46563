import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import { type DeliveryPart, DeliveryStore, type DeliveryTerms } from "../../../src/recorder/delivery/DeliveryStore.ts";
import * as PostgresDeliveries from "../../../src/recorder/postgres/PostgresDeliveries.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as Databases from "./Databases.ts";

const hourMs = 3_600_000;
const minuteMs = 60_000;

const terms = (run_id: string): DeliveryTerms => ({
  ...{ run_id, node: "n", request: "q", named: undefined, linger_ms: hourMs },
  ...{ salt: Buffer.from("salt"), lock: Buffer.from("lock") },
});

const parts = (run_id: string): ReadonlyArray<DeliveryPart> =>
  [0, 1].map((n) => ({ run_id, n, at: 5 * n, sealed: Buffer.from("bytes") }));

/** A log over an empty database, and what an operator sees of it. */
const opened = Effect.gen(function* () {
  const address = yield* Databases.empty;
  const recorder = yield* Databases.open({ address });
  const layer = Layer.provide(PostgresDeliveries.layer({ address }), Layer.succeed(RunRecorder, recorder));
  const log = Context.get(yield* Layer.build(Layer.fresh(layer)), DeliveryStore);
  const admin = yield* Databases.client(address, "operator");
  /** In how many minutes the server forgets a run's delivery. */
  const minutesLeft = (runId: string) =>
    Effect.map(
      admin<{ readonly minutes: number }>`SELECT round(extract(epoch FROM expires_at - now()) / 60)::integer AS minutes
        FROM stream_recovery_deliveries WHERE run_id = ${runId}`,
      ([row]) => row?.minutes,
    );
  /** The time of a run's delivery passes. */
  const passes = (runId: string) =>
    admin`UPDATE stream_recovery_deliveries SET expires_at = now() - interval '1 millisecond' WHERE run_id = ${runId}`;
  const kept = Effect.map(
    admin<{ readonly run_id: string }>`SELECT DISTINCT run_id FROM stream_recovery_deliveryparts ORDER BY run_id`,
    (rows) => rows.map(({ run_id }) => run_id),
  );
  yield* log.begin([terms("over"), terms("live")]);
  yield* log.append([...parts("over"), ...parts("live")]);
  return { kept, log, minutesLeft, passes };
});

describe("The delivery log in PostgreSQL", () => {
  it.live("forgets what has expired by the server's clock, with all of its parts, and counts what is left", () =>
    Effect.gen(function* () {
      const { kept, log, passes } = yield* opened;
      yield* log.beat(new Map([["live", 10]]));
      yield* log.ended([{ run_id: "over", state: "whole", bytes: 20 }]);
      assert.strictEqual(yield* log.forget, 30);
      assert.deepStrictEqual(yield* kept, ["live", "over"]);
      yield* passes("over");
      assert.strictEqual(yield* log.forget, 10);
      assert.deepStrictEqual(yield* log.find({ runId: "over" }), []);
      assert.isUndefined(yield* log.standing("over"));
      assert.deepStrictEqual(yield* log.look("over", { n: 0 }), { standing: undefined, parts: [] });
      assert.deepStrictEqual(yield* kept, ["live"]);
      assert.lengthOf((yield* log.look("live", { n: 0 })).parts, 2);
      // What comes late for it is nobody's any more.
      yield* log.append(parts("over"));
      assert.deepStrictEqual(yield* kept, ["live"]);
      yield* passes("live");
      assert.strictEqual(yield* log.forget, 0);
      assert.deepStrictEqual(yield* kept, []);
    }).pipe(Effect.scoped),
  );

  it.live(
    "keeps a live one for as long as its run lingers and a minute more, from each word of its owner, and one that ended for as long as it lingers",
    () =>
      Effect.gen(function* () {
        const { kept, log, minutesLeft, passes } = yield* opened;
        const minutes = hourMs / minuteMs;
        assert.strictEqual(yield* minutesLeft("live"), minutes + 1);
        yield* passes("live");
        // Its owner was late, and nobody has looked meanwhile.
        assert.deepStrictEqual(yield* log.beat(new Map([["live", 10]])), new Set(["live"]));
        assert.strictEqual(yield* minutesLeft("live"), minutes + 1);
        yield* log.ended([{ run_id: "over", state: "broken", bytes: 20 }]);
        assert.strictEqual(yield* minutesLeft("over"), minutes);
        assert.strictEqual(yield* log.forget, 30);
        assert.deepStrictEqual(yield* kept, ["live", "over"]);
      }).pipe(Effect.scoped),
  );
});
