/** What a relayed request does while its path is down or its provider cools: on the real runtime and the real paths, in virtual time. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import { RelayRepeats } from "../../../src/adapters/relay/RelayRepeats.ts";
import type { RelayTransport } from "../../../src/adapters/relay/RelayTransport.ts";
import type { RelayWait } from "../../../src/adapters/relay/RelayWaits.ts";
import type { Path, Probed } from "../../../src/paths/Path.ts";
import { Paths } from "../../../src/paths/Paths.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { client, head, opening, pass, planOf, role, type Step, scripted, settle, stop, text } from "./RelayCases.ts";

const layer = StreamProcessor.layer.pipe(
  Layer.provideMerge(UserDecisions.layerHeadless()),
  Layer.provideMerge(RunRecorder.layerMemory()),
  Layer.provideMerge(Paths.layer),
);

const id = "https://api.example";

/** A provider that can be away: then no connection is made, and a probe finds none. */
const world = (...attempts: ReadonlyArray<ReadonlyArray<Step>>) => {
  const network = { up: true };
  const played = scripted(...attempts);
  const seen = { refused: 0 };
  const probe = Effect.sync(
    (): Probed => (network.up ? { _tag: "works" } : { _tag: "failed", reason: "network", code: "ECONNREFUSED" }),
  );
  const path: Path = { id, credential: "k", way: { probe, dropIdle: () => undefined } };
  const over = (transport: RelayTransport): RelayTransport => ({
    open: (request, reporters) => {
      if (network.up) return transport.open(request, reporters);
      seen.refused += 1;
      reporters.delivery("not_sent");
      const failed = () => Promise.reject(Object.assign(new Error("connect"), { code: "ECONNREFUSED" }));
      return { head: failed, read: failed, abort: () => undefined };
    },
  });
  const begin = Effect.gen(function* () {
    (yield* Paths).markReached(id);
    return over(yield* played.timed);
  });
  return { network, path, begin, played, seen, transport: over(played.transport) };
};

const json = { ...head, headers: [["content-type", "application/json"] as const] };
const document = [json, '{"choices":[]}', "end"] as const;

describe("a streamed request whose provider cannot be reached", () => {
  it.effect(
    "waits behind a withheld head, then behind our own with no-ops, and comes whole once the provider is back",
    () =>
      Effect.gen(function* () {
        const { begin, network, path, played, seen } = world([head, role, text("a"), stop, "end"]);
        const transport = yield* begin;
        network.up = false;
        const waits: Array<RelayWait> = [];
        const open = yield* opening(planOf(), {
          ...{ head: { withinMs: 45_000 }, keepAliveMs: 15_000, pathPatienceMs: 15_000, path, transport },
          onWaited: (wait) => void waits.push(wait),
        });
        yield* pass(44);
        assert.isUndefined(open.pollUnsafe());
        yield* pass(2);
        const response = yield* Fiber.join(open);
        assert.include(response.head.headers.flat(), "x-recovery-waiting");
        const got = yield* client(response.read);
        yield* pass(32);
        assert.strictEqual(got.text, ": keep-alive\n\n".repeat(2));
        network.up = true;
        yield* pass(10);
        assert.deepStrictEqual(got, { text: `${": keep-alive\n\n".repeat(2)}${role}${text("a")}${stop}`, end: "end" });
        assert.deepStrictEqual([played.seen.opened, seen.refused], [1, 1], "nothing but probes asked meanwhile");
        assert.lengthOf(waits, 1);
        assert.strictEqual(waits[0]?.for, "path");
        assert.isAbove(waits[0]?.ms ?? 0, 78_000);
      }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("ends as given up once it has waited for as long as it may, with its status", () =>
    Effect.gen(function* () {
      const { begin, network, path, played, seen } = world();
      const transport = yield* begin;
      network.up = false;
      const budget = { max_outage_ms: 30_000 };
      const open = yield* opening(planOf(), { head: { withinMs: 45_000 }, path, transport, budget });
      yield* pass(29);
      assert.isUndefined(open.pollUnsafe());
      yield* pass(3);
      const error = yield* Effect.flip(Fiber.join(open));
      assert.strictEqual(error.rule, "outage_too_long");
      assert.isUndefined(error.again_ms);
      assert.deepStrictEqual([played.seen.opened, seen.refused], [0, 1]);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});

describe("a request that does not stream and whose provider cannot be reached", () => {
  const plan = planOf({ stream: false });
  const patience = { head: { withinMs: 45_000 }, pathPatienceMs: 15_000 } as const;

  it.effect("is told to ask again after 15 s; its run is over, and no request of it goes out later", () =>
    Effect.gen(function* () {
      const { begin, network, path, played, seen } = world(document);
      const transport = yield* begin;
      network.up = false;
      const open = yield* opening(plan, { ...patience, path, transport });
      yield* pass(14);
      assert.isUndefined(open.pollUnsafe());
      yield* pass(2);
      const error = yield* Effect.flip(Fiber.join(open));
      assert.deepStrictEqual([error.again_ms, error.failure.kind, error.attempts], [5_000, "transport", 1]);
      assert.include(error.message, "15 s");
      const [run] = yield* (yield* RunRecorder).runs();
      assert.deepStrictEqual([run?.end?.state, run?.end?.reason], ["stopped", "lifecycle_closed"]);
      assert.strictEqual(run?.waiting, undefined);
      assert.strictEqual((yield* Paths).list()[0]?.waiting, 0);
      network.up = true;
      yield* pass(60);
      assert.deepStrictEqual([played.seen.opened, seen.refused], [0, 1]);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("goes on waiting where its client asks again, with its whole budget, and nothing is told from memory", () =>
    Effect.gen(function* () {
      const { begin, network, path } = world(document);
      const transport = yield* begin;
      network.up = false;
      const repeats = new RelayRepeats();
      const options = { ...patience, path, transport, repeats, budget: { max_auto_retries: 1, max_not_processed: 1 } };
      const first = yield* opening(plan, options);
      yield* pass(16);
      const told = yield* Effect.flip(Fiber.join(first));
      assert.isUndefined(yield* repeats.recall(plan.request));
      const second = yield* opening(plan, options);
      yield* pass(10);
      assert.isUndefined(second.pollUnsafe());
      network.up = true;
      yield* pass(3);
      const response = yield* Fiber.join(second);
      assert.strictEqual(response.retry_of, told.run_id);
      assert.strictEqual(response.head.status, 200);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("is left alone once its request has gone out, however long its response takes", () =>
    Effect.gen(function* () {
      const { begin, network, path, played } = world([100_000, ...document]);
      const transport = yield* begin;
      network.up = false;
      const clocks = { first_progress: false, idle: false } as const;
      const open = yield* opening(plan, { ...patience, path, transport, clocks });
      yield* pass(10);
      network.up = true;
      yield* pass(3);
      assert.strictEqual(played.seen.opened, 1);
      yield* pass(60);
      assert.isUndefined(open.pollUnsafe());
      yield* pass(45);
      const got = yield* client((yield* Fiber.join(open)).read);
      yield* settle;
      assert.deepStrictEqual(got, { text: '{"choices":[]}', end: "end" });
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("waits for an announced wait as long as the budget permits: that is no outage", () =>
    Effect.gen(function* () {
      const refused = {
        status: 429,
        statusText: "",
        headers: [["retry-after", "30"] as const, ["content-type", "application/json"] as const],
      };
      const said = '{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}';
      const { begin, path, played } = world([refused, said, "end"], document);
      const transport = yield* begin;
      const waits: Array<RelayWait> = [];
      const open = yield* opening(plan, { ...patience, path, transport, onWaited: (wait) => void waits.push(wait) });
      yield* pass(29);
      assert.isUndefined(open.pollUnsafe());
      assert.strictEqual(played.seen.opened, 1);
      yield* pass(12);
      assert.strictEqual((yield* Fiber.join(open)).head.status, 200);
      assert.isTrue(waits.every((wait) => wait.for === "cooldown"));
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("that was never reached fails as before, within seconds", () =>
    Effect.gen(function* () {
      const { network, path, transport } = world(document);
      network.up = false;
      const open = yield* opening(plan, { ...patience, path, transport });
      yield* pass(30);
      const error = yield* Effect.flip(Fiber.join(open));
      assert.isUndefined(error.again_ms);
      assert.strictEqual(error.failure.code, "ECONNREFUSED");
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});

describe("a client that leaves while its request waits", () => {
  it.effect("ends the wait in that step, and nothing is sent for it", () =>
    Effect.gen(function* () {
      const { begin, network, path, played } = world([head, role, text("a"), stop, "end"]);
      const transport = yield* begin;
      network.up = false;
      const paths = yield* Paths;
      const options = { head: { withinMs: 45_000 }, path, transport };
      const open = yield* Effect.forkScoped(Effect.scoped(Relay.open(planOf(), options)), { startImmediately: true });
      yield* pass(5);
      assert.strictEqual(paths.list()[0]?.waiting, 1);
      yield* Fiber.interrupt(open);
      yield* settle;
      assert.strictEqual(paths.list()[0]?.waiting, 0);
      network.up = true;
      yield* TestClock.adjust("10 minutes");
      yield* settle;
      assert.strictEqual(played.seen.opened, 0);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});
