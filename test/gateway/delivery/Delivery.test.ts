import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Fiber, Metric, Scope } from "effect";
import { TestClock } from "effect/testing";
import * as Metrics from "../../../src/gateway/api/Metrics.ts";
import { secretOf } from "../../../src/gateway/delivery/ClientSecret.ts";
import { Deliveries, grantMs } from "../../../src/gateway/delivery/Deliveries.ts";
import { DeliveryKey } from "../../../src/gateway/delivery/DeliveryKey.ts";
import { DeliveryOwner, totalBytesMax } from "../../../src/gateway/delivery/DeliveryOwner.ts";
import { DeliveryReading, type Item } from "../../../src/gateway/delivery/DeliveryReading.ts";
import type { ClientResponse } from "../../../src/gateway/proxy/ClientResponse.ts";
import type { Delivery, DeliveryStore } from "../../../src/recorder/delivery/DeliveryStore.ts";
import { seeded } from "../../Seeded.ts";
import { sourceOf, storeOf } from "./DeliveryCases.ts";

/** All that a reading gives, to its end or its loss. */
const readAll = (store: DeliveryStore["Service"], delivery: Delivery, key: DeliveryKey, from: number) =>
  Effect.gen(function* () {
    const reading = yield* DeliveryReading.make(store, { delivery, key, from, token: undefined });
    const items: Array<Item> = [];
    for (;;) {
      const item = yield* reading.next(() => false);
      if (item === undefined) return items;
      items.push(item);
      if (item._tag === "End" || item._tag === "Lost") return items;
    }
  });

const bytesOf = (items: ReadonlyArray<Item>) =>
  Buffer.concat(items.flatMap((item) => (item._tag === "Bytes" ? [item.bytes] : [])));

const one = { run_id: "r", n: 3, at: 9 };

describe("the key of a client", () => {
  const salt = DeliveryKey.salt();
  const key = DeliveryKey.of("secret", salt, "r");
  const sealed = key.seal("bytes", one, Buffer.from("text"));

  it("opens what was sealed, at its place only, and no other key does", () => {
    assert.strictEqual(key.open(one, sealed)?.bytes.toString(), "text");
    for (const place of [
      { ...one, n: 4 },
      { ...one, at: 8 },
      { ...one, run_id: "q" },
    ])
      assert.isUndefined(key.open(place, sealed));
    const others = [
      DeliveryKey.of("other", salt, "r"),
      DeliveryKey.of("secret", DeliveryKey.salt(), "r"),
      DeliveryKey.of("secret", salt, "q"),
    ];
    for (const other of others) assert.isUndefined(other.open(one, sealed));
    for (const other of others) assert.isFalse(other.opens("r", key.lock("r")));
    assert.isTrue(key.opens("r", key.lock("r")));
    assert.isUndefined(key.open(one, sealed.subarray(0, 20)));
  });

  it("is made of what is secret, or there is none", () => {
    const headers = (value: string) => ({ headers: [["authorization", value] as const], target: "/v1/x" });
    assert.isDefined(secretOf(headers("Bearer 0123456789abcdef"), undefined));
    assert.isUndefined(secretOf(headers("Bearer 0123456789abcde"), undefined));
    assert.isUndefined(secretOf({ headers: [], target: "/v1/x" }, undefined));
    assert.isDefined(secretOf({ headers: [], target: "/v1/x" }, new Uint8Array(32)));
  });
});

describe("a delivery", () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    it.effect(`is read byte by byte as it was written, whatever write of it fails: seed ${seed}`, () =>
      Effect.gen(function* () {
        const random = seeded(seed);
        const roll = (count: number) => Math.floor(random() * count);
        const { deliveries, store } = storeOf(() => (["before", "behind", undefined, undefined] as const)[roll(4)]);
        const scope = yield* Scope.make();
        const owner = yield* Scope.provide(DeliveryOwner.make(store, "one"), scope);
        const { log, source } = sourceOf();
        owner.begin(source, { runId: "r", request: "q", named: undefined, secret: "secret" });
        const said: Array<Buffer> = [];
        for (let step = 0; step < 12; step += 1) {
          const bytes = Buffer.alloc(roll(3_000), step + 1);
          log.append(bytes);
          said.push(bytes);
          if (roll(2) === 0) yield* owner.tick;
          yield* TestClock.adjust(roll(2_500));
        }
        source.bodyEnd = "end";
        source.entry.end = { how: "whole" };
        while (deliveries.get("r")?.state !== "whole") yield* TestClock.adjust(1_000);
        const delivery = deliveries.get("r");
        assert.isDefined(delivery);
        const key = DeliveryKey.of("secret", delivery.salt, "r");
        const all = Buffer.concat(said);
        for (const from of [0, 1, roll(all.byteLength), all.byteLength]) {
          const items = yield* readAll(store, delivery, key, from);
          assert.strictEqual(items[0]?._tag, "Head");
          assert.deepStrictEqual(bytesOf(items), all.subarray(from));
          assert.deepStrictEqual(items.at(-1), { _tag: "End", how: "end", at: all.byteLength });
        }
        yield* Scope.close(scope, Exit.void);
      }),
    );
  }

  it.effect("with a part that is missing, or of another hand, is lost there and never ended", () =>
    Effect.gen(function* () {
      const { parts, store } = storeOf(() => undefined);
      const salt = DeliveryKey.salt();
      const key = DeliveryKey.of("secret", salt, "r");
      const terms = { run_id: "r", node: "n", request: "q", named: undefined, salt, lock: key.lock("r"), linger_ms: 1 };
      yield* store.begin([terms]);
      const add = (n: number, at: number, kind: "head" | "bytes" | "end", text: string) =>
        parts.push({ run_id: "r", n, at, sealed: key.seal(kind, { run_id: "r", n, at }, Buffer.from(text)) });
      add(0, 0, "head", JSON.stringify({ head: { status: 200, statusText: "", headers: [] }, streaming: true }));
      add(1, 0, "bytes", "abc");
      add(3, 6, "bytes", "ghi");
      add(4, 9, "end", "end");
      const delivery = { ...terms, state: "whole" as const };
      for (const from of [0, 2, 4]) {
        const items = yield* readAll(store, delivery, key, from);
        assert.strictEqual(bytesOf(items).toString(), "abc".slice(from));
        assert.strictEqual(items.at(-1)?._tag, "Lost");
      }
    }),
  );

  it.effect("that ends with others is said to have ended in one call with them", () =>
    Effect.gen(function* () {
      const { deliveries, ends, store } = storeOf(() => undefined);
      const owner = yield* DeliveryOwner.make(store, "one");
      for (const runId of ["a", "b", "c"]) {
        const { log, source } = sourceOf();
        owner.begin(source, { runId, request: "q", named: undefined, secret: "secret" });
        log.append(Buffer.from(runId));
        source.bodyEnd = "end";
        source.entry.end = { how: "whole" };
      }
      yield* owner.tick;
      assert.deepStrictEqual(ends, [3]);
      assert.deepStrictEqual(
        [...deliveries.values()].map(({ state }) => state),
        ["whole", "whole", "whole"],
      );
    }).pipe(Effect.scoped),
  );
});

// A delivery that is gone writes nothing: of its client only this is looked at.
const unread = { gone: false } as unknown as ClientResponse;

/** The lines of the delivery log in the metrics, without their help. */
const linesOf = (context: Context.Context<never>) =>
  Effect.map(Effect.provideContext(Metrics.text(), context), (text) =>
    text.split("\n").filter((line) => /^stream_recovery_gateway_delivery/.test(line)),
  );

describe("the metrics of the delivery log", () => {
  it.effect("count sealed bytes once, whatever write of them fails, and each failure by its reason", () =>
    Effect.gen(function* () {
      const context: Context.Context<never> = Context.make(Metric.MetricRegistry, new Map());
      const fails = ["before", "behind", undefined] as const;
      let tried = 0;
      const { parts, store } = storeOf(() => {
        tried += 1;
        return fails[tried - 1];
      });
      yield* Effect.gen(function* () {
        const owner = yield* DeliveryOwner.make(store, "one");
        const { log, source } = sourceOf();
        owner.begin(source, { runId: "r", request: "q", named: undefined, secret: "secret" });
        log.append(Buffer.from("text"));
        while (tried < 3) yield* Effect.andThen(owner.tick, TestClock.adjust(2_000));
      }).pipe(Effect.scoped, Effect.provideContext(context));
      const sealed = parts.reduce((sum, it) => sum + it.sealed.byteLength, 0);
      const lines = yield* linesOf(context);
      assert.include(lines, `stream_recovery_gateway_delivery_log_bytes_total ${sealed}`);
      const failed = lines.find((line) => line.startsWith("stream_recovery_gateway_delivery_log_failures_total"));
      assert.match(failed ?? "", /error_type="unavailable".* 2$/);
      assert.match(failed ?? "", /of="write"/);
    }),
  );

  it.effect("count a run that is not logged because the log is full", () =>
    Effect.gen(function* () {
      const context: Context.Context<never> = Context.make(Metric.MetricRegistry, new Map());
      const { deliveries, held, store } = storeOf(() => undefined);
      held.bytes = totalBytesMax + 1;
      yield* Effect.gen(function* () {
        const owner = yield* DeliveryOwner.make(store, "one");
        yield* TestClock.adjust(1);
        owner.begin(sourceOf().source, { runId: "r", request: "q", named: undefined, secret: "secret" });
        yield* owner.tick;
      }).pipe(Effect.scoped, Effect.provideContext(context));
      assert.strictEqual(deliveries.size, 0);
      assert.include(yield* linesOf(context), "stream_recovery_gateway_delivery_log_skipped_total 1");
    }),
  );

  for (const { outcome, says } of [
    { says: (wish: string) => ({ reader: wish, refused: null }), outcome: "given" },
    { says: (wish: string) => ({ reader: null, refused: wish }), outcome: "refused" },
    { says: () => ({ reader: null, refused: null }), outcome: "unanswered" },
  ] as const) {
    it.effect(`count a place that is ${outcome}`, () =>
      Effect.gen(function* () {
        const context: Context.Context<never> = Context.make(Metric.MetricRegistry, new Map());
        const { deliveries, store } = storeOf(() => undefined);
        const salt = DeliveryKey.salt();
        const lock = DeliveryKey.of("secret", salt, "r").lock("r");
        const terms = { run_id: "r", node: "n", request: "q", named: undefined, salt, lock, linger_ms: 1 };
        yield* store.begin([terms]);
        assert.strictEqual(deliveries.size, 1);
        let wished = "";
        const asked: DeliveryStore["Service"] = {
          ...store,
          wish: (_, wish) =>
            Effect.sync(() => {
              wished = wish;
            }),
          standing: () => Effect.succeed({ state: "live", beats: 0, ...says(wished) }),
          look: () => Effect.succeed({ standing: undefined, parts: [] }),
        };
        yield* Effect.gen(function* () {
          const here = yield* Deliveries.make(asked);
          const wish = { repeats: true, asked: true, forbidden: false, idempotencyKey: undefined };
          const returning = yield* Effect.forkChild(
            here.repeated(["q", undefined], wish, { client: unread, secret: "secret" }),
          );
          yield* TestClock.adjust(grantMs + 1_000);
          assert.isFalse(yield* Fiber.join(returning));
        }).pipe(Effect.scoped, Effect.provideContext(context));
        const lines = yield* linesOf(context);
        assert.deepStrictEqual(
          lines.filter((line) => /_places_total/.test(line)),
          [`stream_recovery_gateway_delivery_places_total{outcome="${outcome}"} 1`],
        );
      }),
    );
  }
});
