import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { assert, describe, it, vi } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import { wholeBytesMax } from "../../../src/gateway/body/BodyOutline.ts";
import { BodyStore, uploadBytesPerSecondMin, uploadGraceMs } from "../../../src/gateway/proxy/RequestBody.ts";
import { copiedServices } from "../../CopiedServices.ts";

const limits = { maxBodyBytes: 64 * 1024 * 1024, maxBodiesBytes: 256 * 1024 * 1024 };

/** A request whose body arrives as the test writes it. */
const requestOf = (headers: Record<string, string>) => {
  const stream = Object.assign(new PassThrough({ highWaterMark: limits.maxBodyBytes }), { headers });
  // Only the headers and the bytes of a request are read.
  return { stream, request: stream as unknown as IncomingMessage };
};

const turn = Effect.promise(() => new Promise((next) => setImmediate(next)));

describe("A body that arrives slowly", () => {
  const length = uploadBytesPerSecondMin * 60;
  const least = (uploadBytesPerSecondMin * uploadGraceMs) / 1_000;
  const slowly = Effect.gen(function* () {
    const { request, stream } = requestOf({ "content-length": String(length) });
    const store = new BodyStore(limits);
    const reading = yield* Effect.forkScoped(Effect.scoped(store.read(request, () => undefined)));
    yield* turn;
    yield* turn;
    const send = (bytes: number) =>
      Effect.gen(function* () {
        stream.write(Buffer.alloc(bytes));
        yield* turn;
        yield* TestClock.adjust(uploadGraceMs);
        yield* turn;
      });
    return { reading, send, store, stream };
  });

  it.effect("is accepted as long as it makes progress", () =>
    Effect.gen(function* () {
      const { reading, send, stream } = yield* slowly;
      for (let sent = 0; sent < length; sent += least) yield* send(least);
      stream.end();
      assert.strictEqual((yield* Fiber.join(reading)).byteLength, length);
    }),
  );

  it.effect("is refused once it has stalled, and uses no more memory", () =>
    Effect.gen(function* () {
      const { reading, send, store } = yield* slowly;
      yield* send(least);
      assert.isUndefined(reading.pollUnsafe());
      yield* send(least - 1);
      assert.strictEqual((yield* Effect.flip(Fiber.join(reading))).reason, "slow");
      assert.strictEqual(store.keptBytes, 0);
    }),
  );
});

describe("Bodies of several clients", () => {
  it.effect("leave half of the rest to the others, and a client's only body may be as long as any", () =>
    Effect.gen(function* () {
      const store = new BodyStore({ maxBodyBytes: 600, maxBodiesBytes: 1_000 });
      const stalled = (bytes: number, holder?: string) =>
        Effect.gen(function* () {
          const { request, stream } = requestOf({ "content-length": String(bytes + 1) });
          const reading = yield* Effect.forkScoped(store.read(request, () => undefined, holder));
          yield* turn;
          stream.write(Buffer.alloc(bytes));
          yield* turn;
          const exit = reading.pollUnsafe();
          return exit === undefined ? "taken" : (yield* Effect.flip(Fiber.join(reading))).reason;
        });
      const seen = [];
      for (const holder of ["hog", "hog", "hog", "hog"]) seen.push(yield* stalled(200, holder));
      assert.deepStrictEqual(seen, ["taken", "taken", "share", "share"]);
      assert.strictEqual(yield* stalled(500, "other"), "taken");
      // A single client gets all of it.
      assert.strictEqual(yield* stalled(90), "taken");
      assert.strictEqual(yield* stalled(90), "busy");
    }).pipe(Effect.scoped),
  );
});

describe("A stored body", () => {
  it.live("that claims a length gets its full place once an eighth has arrived, and equals what was sent", () =>
    Effect.gen(function* () {
      const length = 4 * 1024 * 1024;
      const sent = Buffer.from(
        Array.from({ length: length / 4 }, (_, n) => String(n).padStart(4, "0").slice(-4)).join(""),
      );
      const { request, stream } = requestOf({ "content-length": String(length) });
      const made = vi.spyOn(Buffer, "allocUnsafeSlow");
      const places = () => made.mock.calls.filter(([bytes]) => bytes === length).length;
      const store = new BodyStore(limits);
      const reading = yield* Effect.forkScoped(store.read(request, () => undefined));
      yield* turn;
      stream.write(sent.subarray(0, length / 8 - 1));
      yield* turn;
      assert.deepStrictEqual([store.keptBytes, places()], [length / 8 - 1, 0]);
      stream.write(sent.subarray(length / 8 - 1, length / 8));
      yield* turn;
      assert.strictEqual(places(), 1);
      stream.end(sent.subarray(length / 8));
      assert.isTrue(sent.equals(yield* Fiber.join(reading)));
      assert.strictEqual(places(), 1);
      made.mockRestore();
    }),
  );

  it.live("without a length is joined in several turns", () =>
    Effect.gen(function* () {
      const { request, stream } = requestOf({ "transfer-encoding": "chunked" });
      const chunks = Array.from({ length: 40 }, (_, n) => Buffer.alloc(wholeBytesMax, n));
      const reading = yield* Effect.forkScoped(new BodyStore(limits).read(request, () => undefined));
      yield* turn;
      for (const chunk of chunks) stream.write(chunk);
      stream.end();
      const turns = vi.spyOn(globalThis, "setImmediate");
      assert.isTrue(Buffer.concat(chunks).equals(yield* Fiber.join(reading)));
      // One per megabyte.
      assert.isAtLeast(turns.mock.calls.length, 9);
      turns.mockRestore();
    }),
  );

  it.live("is counted until its scope is closed, and copies no services for that", () =>
    Effect.gen(function* () {
      const { request, stream } = requestOf({ "content-length": "4" });
      stream.end("body");
      const store = new BodyStore(limits);
      const kept: Array<number> = [];
      const reading = Effect.tap(
        store.read(request, () => undefined),
        () => Effect.sync(() => kept.push(store.keptBytes)),
      );
      assert.strictEqual(yield* copiedServices(Effect.scoped(reading)), 0);
      assert.deepStrictEqual([...kept, store.keptBytes], [4, 0]);
    }),
  );
});
