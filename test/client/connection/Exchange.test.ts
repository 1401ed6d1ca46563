import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { Exchange, unreadBytesMax } from "../../../src/client/connection/Exchange.ts";

/** The part of undici's controller that an exchange uses. */
const controller = () => ({
  paused: false,
  aborted: false,
  reason: null,
  pause() {
    this.paused = true;
  },
  resume() {
    this.paused = false;
  },
  abort() {
    this.aborted = true;
  },
});

const streaming = (reporters = {}) => {
  const exchange = new Exchange(reporters, () => 0);
  const undici = controller();
  exchange.onRequestStart(undici);
  exchange.onResponseStart(undici, 200, { "x-a": ["1", "2"] });
  return { exchange, undici };
};

describe("Exchange", () => {
  it.effect("pauses the socket above its limit and resumes it when the reader reads", () =>
    Effect.gen(function* () {
      const { exchange, undici } = streaming();
      exchange.onResponseData(undici, new Uint8Array(unreadBytesMax));
      assert.isFalse(undici.paused);
      exchange.onResponseData(undici, new Uint8Array(1));
      assert.isTrue(undici.paused);
      assert.strictEqual((yield* exchange.read)?.length, 2);
      assert.isFalse(undici.paused);
    }),
  );

  it.live("hands over what arrived in one go as one read", () =>
    Effect.gen(function* () {
      const { exchange, undici } = streaming();
      const reader = yield* Effect.forkChild(exchange.read, { startImmediately: true });
      for (const byte of [1, 2, 3]) exchange.onResponseData(undici, Uint8Array.of(byte));
      assert.deepStrictEqual(yield* Fiber.join(reader), [Uint8Array.of(1), Uint8Array.of(2), Uint8Array.of(3)]);
    }),
  );

  it.effect("returns bytes that arrived before an error first", () =>
    Effect.gen(function* () {
      const { exchange, undici } = streaming();
      const error = new Error("reset");
      exchange.onResponseData(undici, Uint8Array.of(1));
      exchange.onResponseError(undici, error);
      assert.strictEqual((yield* exchange.read)?.length, 1);
      const broken = yield* Effect.flip(exchange.read);
      assert.strictEqual(broken.error, error);
      assert.strictEqual(broken.operation, "body");
    }),
  );

  it.effect("ends after the last bytes and joins repeated headers", () =>
    Effect.gen(function* () {
      const { exchange, undici } = streaming();
      assert.deepStrictEqual(yield* exchange.head, { status: 200, headers: { "x-a": "1, 2" } });
      exchange.onResponseData(undici, Uint8Array.of(1));
      exchange.onResponseEnd();
      assert.strictEqual((yield* exchange.read)?.length, 1);
      assert.strictEqual(yield* exchange.read, undefined);
    }),
  );

  it("reports each step of delivery once, and accepted for an interim head", () => {
    const seen: Array<string> = [];
    const exchange = new Exchange({ delivery: (now) => void seen.push(now) }, () => 0);
    const undici = controller();
    assert.deepStrictEqual(seen, ["not_sent"]);
    exchange.onRequestStart(undici);
    exchange.onResponseStart(undici, 103, {});
    exchange.onResponseStart(undici, 200, {});
    assert.deepStrictEqual(seen, ["not_sent", "ambiguous", "accepted"]);
  });

  it("writes nothing for a request that was abandoned before its connection was ready", () => {
    const seen: Array<string> = [];
    const exchange = new Exchange({ delivery: (now) => void seen.push(now) }, () => 0);
    const undici = controller();
    exchange.abort();
    exchange.onRequestStart(undici);
    assert.isTrue(undici.aborted);
    assert.deepStrictEqual(seen, ["not_sent"]);
  });

  it("never writes a request a second time, whatever the layer below it does", () => {
    const exchange = new Exchange({}, () => 0);
    const [first, second] = [controller(), controller()];
    exchange.onRequestStart(first);
    exchange.onRequestStart(second);
    assert.isFalse(first.aborted);
    assert.isTrue(second.aborted);
    assert.match(String(Effect.runSync(Effect.flip(exchange.head)).error), /second time/);
  });

  it("names the part of the request that broke", () => {
    const operation = (error: object, prepare: (exchange: Exchange) => void) => {
      const exchange = new Exchange({}, () => 0);
      prepare(exchange);
      exchange.onResponseError(undefined, error);
      return Effect.runSync(Effect.flip(exchange.read)).operation;
    };
    assert.strictEqual(
      operation({}, () => {}),
      "connect",
    );
    assert.strictEqual(
      operation({ syscall: "write" }, (exchange) => exchange.onRequestStart(controller())),
      "write",
    );
    assert.strictEqual(
      operation({ syscall: "read" }, (exchange) => exchange.onRequestStart(controller())),
      "head",
    );
  });
});
