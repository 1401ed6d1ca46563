/** A client that names its run at another gateway, before the run's owner has begun the delivery. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, type Scope } from "effect";
import { TestClock } from "effect/testing";
import { beginMs, type Delivered, Deliveries } from "../../../src/gateway/delivery/Deliveries.ts";
import { DeliveryKey } from "../../../src/gateway/delivery/DeliveryKey.ts";
import * as StreamRefusals from "../../../src/gateway/delivery/StreamRefusals.ts";
import type { ClientResponse } from "../../../src/gateway/proxy/ClientResponse.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import * as E from "../../recorder/Entries.ts";
import { sourceOf, storeOf } from "./DeliveryCases.ts";

const secret = "secret";
const live = E.folded([E.begun("r"), E.attempt(1)]);

/** A run that has ended at a moment. */
const endedAt = (at: number, state: "completed" | "stopped" = "completed"): RunRecord => ({
  ...live,
  state: "ended",
  end: { state, reason: "stop", attempts: 1, at },
});

interface Bench {
  readonly here: Deliveries;
  /** The owner, at another gateway, has begun the delivery and evicted it at once: who finds that is told so, and no byte. */
  readonly begins: (node?: string) => void;
  /** Asks for the run. */
  readonly asks: (method?: "GET" | "HEAD" | "DELETE") => Effect.Effect<Fiber.Fiber<Delivered>, never, Scope.Scope>;
  /** What was looked up so far. */
  readonly looks: () => { readonly deliveries: number; readonly records: number };
  /** The client goes away. */
  readonly leaves: () => void;
}

/** A gateway to which a client comes back, and what the record says of its run. */
const bench = Effect.fnUntraced(function* (
  record: RunRecord | undefined | "away",
): Effect.fn.Return<Bench, never, Scope.Scope> {
  const { deliveries, store } = storeOf(() => undefined);
  const looks = { deliveries: 0, records: 0 };
  const find = Effect.suspend(() => {
    looks.deliveries += 1;
    return store.find({ runId: "r" });
  });
  const run = Effect.suspend(() => {
    looks.records += 1;
    if (record !== "away") return Effect.succeed(record);
    return Effect.fail(new RecorderError({ reason: "unavailable", run_id: "r", message: "away" }));
  });
  const here = yield* Deliveries.make({ ...store, find: () => find }, { run: () => run });
  const client = { gone: false, access: { learned: () => undefined } };
  // Of a client to which nothing is written only this is looked at.
  const returning = { client: client as unknown as ClientResponse, secret };
  return {
    here,
    begins: (node = "another") => {
      const salt = DeliveryKey.salt();
      const lock = DeliveryKey.of(secret, salt, "r").lock("r");
      const terms = { run_id: "r", node, request: "q", named: undefined, salt, lock, linger_ms: 1 };
      deliveries.set("r", { ...terms, state: "evicted" });
    },
    asks: (method = "GET") => Effect.forkScoped(here.streamed({ run_id: "r", method, from: 0 }, returning)),
    looks: () => looks,
    leaves: () => {
      client.gone = true;
    },
  };
});

describe("the delivery of a run that its owner has yet to begin", () => {
  for (const method of ["GET", "HEAD"] as const) {
    it.effect(`is waited for, where the run goes on by its record: ${method}`, () =>
      Effect.gen(function* () {
        const { asks, begins } = yield* bench(live);
        const asked = yield* asks(method);
        yield* TestClock.adjust(beginMs / 2);
        assert.isUndefined(asked.pollUnsafe(), "it waits");
        begins();
        yield* TestClock.adjust(beginMs / 4);
        assert.strictEqual(yield* Fiber.join(asked), StreamRefusals.evicted);
      }).pipe(Effect.scoped),
    );
  }

  it.effect(
    "is waited for, where the whole response has ended just now, and where another gateway's clock is ahead",
    () =>
      Effect.gen(function* () {
        for (const at of [0, 60_000]) {
          const { asks, begins } = yield* bench(endedAt(at));
          const asked = yield* asks();
          yield* TestClock.adjust(beginMs / 2);
          begins();
          yield* TestClock.adjust(beginMs / 4);
          assert.strictEqual(yield* Fiber.join(asked), StreamRefusals.evicted);
        }
      }).pipe(Effect.scoped),
  );

  it.effect("is waited for so long, and the record is asked once", () =>
    Effect.gen(function* () {
      const { asks, looks } = yield* bench(live);
      const asked = yield* asks();
      yield* TestClock.adjust(beginMs - 1);
      assert.isUndefined(asked.pollUnsafe());
      yield* TestClock.adjust(1_000);
      assert.strictEqual(yield* Fiber.join(asked), "none");
      assert.isAbove(looks().deliveries, 10);
      assert.strictEqual(looks().records, 1);
    }).pipe(Effect.scoped),
  );

  it.effect("is looked for no longer than its client is there", () =>
    Effect.gen(function* () {
      const { asks, leaves, looks } = yield* bench(live);
      const asked = yield* asks();
      yield* TestClock.adjust(beginMs / 4);
      leaves();
      const before = looks().deliveries;
      yield* TestClock.adjust(beginMs / 4);
      assert.isDefined(asked.pollUnsafe(), "it looks no more");
      assert.strictEqual(yield* Fiber.join(asked), "served", "nothing is refused: nobody is there");
      assert.isAtMost(looks().deliveries - before, 1);
    }).pipe(Effect.scoped),
  );

  const none = {
    "is on no record": undefined,
    "has a record that cannot be had": "away",
    "has been stopped": endedAt(0, "stopped"),
    "has ended long ago": endedAt(-60_000),
  } as const;
  for (const [what, record] of Object.entries(none)) {
    it.effect(`is not waited for, where the run ${what}`, () =>
      Effect.gen(function* () {
        const { asks, looks } = yield* bench(record);
        assert.strictEqual(yield* Fiber.join(yield* asks()), "none");
        assert.strictEqual(looks().deliveries, 1);
      }).pipe(Effect.scoped),
    );
  }

  it.effect("is not waited for by a DELETE: the owner is told otherwise", () =>
    Effect.gen(function* () {
      const { asks, looks } = yield* bench(live);
      assert.strictEqual(yield* Fiber.join(yield* asks("DELETE")), "none");
      assert.deepStrictEqual(looks(), { deliveries: 1, records: 0 });
    }).pipe(Effect.scoped),
  );

  it.effect("is not waited for by who asks at the owner itself, which would have given it", () =>
    Effect.gen(function* () {
      const { asks, here, looks } = yield* bench(live);
      here.owner.begin(sourceOf().source, { runId: "r", request: "q", named: undefined, secret: "another" });
      assert.strictEqual(yield* Fiber.join(yield* asks()), "none");
      assert.deepStrictEqual(looks(), { deliveries: 1, records: 0 });
      yield* here.owner.tick;
      assert.strictEqual(yield* Fiber.join(yield* asks()), "none");
      assert.deepStrictEqual(looks(), { deliveries: 2, records: 0 });
    }).pipe(Effect.scoped),
  );
});
