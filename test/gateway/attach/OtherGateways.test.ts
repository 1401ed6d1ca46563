/**
 * Gateways over one store that reach each other at their addresses.
 */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Exit, Fiber, References, Schema, Scope } from "effect";
import { TestClock } from "effect/testing";
import { ShiftedClock } from "../../../scripts/kill/ShiftedClock.ts";
import type { AttachWish } from "../../../src/gateway/attach/AttachWish.ts";
import type { HopWish } from "../../../src/gateway/attach/HopMessage.ts";
import { addressMs, OtherGateways } from "../../../src/gateway/attach/OtherGateways.ts";
import { type SiblingServing, Siblings } from "../../../src/gateway/attach/Siblings.ts";
import { Access } from "../../../src/gateway/log/AccessRecord.ts";
import { ClientResponse } from "../../../src/gateway/proxy/ClientResponse.ts";
import { HopSignature, signatureHeader, signatureMs } from "../../../src/gateway/workers/HopSignature.ts";
import { hopHeader, hopPath, query, requestTo } from "../../../src/gateway/workers/SignedWire.ts";
import type { SharedFacts } from "../../../src/recorder/shared/SharedFacts.ts";
import { eventually, polled } from "../../Polling.ts";
import { serverOf } from "../../Servers.ts";
import { gateway, gatewaysAt, key, members, store } from "../workers/Members.ts";
import { clientOf } from "./AttachCases.ts";

const doubled = query("doubled", Schema.Int, Schema.Number);

/** Lets what was put be read. */
const told = Effect.repeat(TestClock.adjust(1), { times: 3 });

/** The facts of a process that is killed before it removes anything. */
const withoutTake = (facts: SharedFacts): SharedFacts => ({ ...facts, take: () => Effect.undefined });

const publishOnce = (gateway: OtherGateways) => Effect.as(Effect.andThen(gateway.publish, told), gateway.origin);

/** A clock that is ahead of this machine's, in milliseconds. */
const shifted = (byMs: number) => Effect.map(Clock.Clock, (clock) => new ShiftedClock(clock, byMs));

const at = (origin: string, facts: SharedFacts) => OtherGateways.make(origin, facts);

describe("the addresses of gateways", () => {
  it.effect("are known while their gateways live, and are removed when they end", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const life = yield* Scope.make();
      const first = yield* Scope.provide(at("https://a.test/", shared.process()), life);
      const second = yield* at("https://b.test", shared.process());
      yield* second.publish;
      yield* told;
      assert.deepStrictEqual(yield* first.others, ["https://b.test"]);
      assert.deepStrictEqual(yield* second.others, [], "it does not serve yet");
      yield* Scope.provide(first.publish, life);
      yield* TestClock.adjust(10 * addressMs);
      assert.deepStrictEqual([yield* first.others, yield* second.others], [["https://b.test"], ["https://a.test"]]);
      shared.isAway = true;
      assert.deepStrictEqual(yield* second.others, ["https://a.test"], "the last known ones count");
      shared.isAway = false;
      yield* Scope.close(life, Exit.void);
      assert.deepStrictEqual(yield* second.others, []);
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  );

  it.effect("are known to a gateway whose store goes away before a client has returned", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const [first, second] = [
        yield* at("https://a.test", shared.process()),
        yield* at("https://b.test", shared.process()),
      ];
      yield* first.publish;
      yield* told;
      yield* second.publish;
      yield* told;
      shared.isAway = true;
      assert.deepStrictEqual(yield* second.others, ["https://a.test"]);
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  );

  it.effect("expire after a gateway was killed, and are never its own", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const killed = yield* Effect.scoped(
        Effect.flatMap(at("https://a.test", withoutTake(shared.process())), publishOnce),
      );
      assert.strictEqual(killed, "https://a.test");
      const [one, worker] = [
        yield* at("https://b.test", shared.process()),
        yield* at("https://b.test", shared.process()),
      ];
      yield* Effect.andThen(one.publish, worker.publish);
      yield* told;
      for (const it of [one, worker]) assert.deepStrictEqual(yield* it.others, ["https://a.test"]);
      yield* TestClock.adjust(addressMs);
      for (const it of [one, worker]) assert.deepStrictEqual(yield* it.others, []);
    }).pipe(Effect.scoped),
  );

  it.effect("are not taken from rows that no gateway would write", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const other = shared.process();
      const wrong = [
        "http://gateway.test",
        "https://u:p@gateway.test",
        "file:///etc/passwd",
        "https://gateway.test/path",
      ];
      for (const value of ["", "null", "{}", ...wrong.map((origin) => JSON.stringify({ origin, at: 0 }))])
        yield* other.put("gateway", value, value, addressMs);
      const one = yield* at("https://b.test", shared.process());
      assert.deepStrictEqual(yield* one.others, []);
    }).pipe(Effect.scoped),
  );
});

describe("a request from one gateway to another", () => {
  it.live("is answered by the one that it is signed for, and by no other", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const [one, other, third] = [
        yield* gateway(shared.process()),
        yield* gateway(shared.process()),
        yield* gateway(shared.process()),
      ];
      for (const it of [other, third]) yield* it.wire.serveQuery(doubled, (value) => Effect.succeed(2 * value));
      assert.strictEqual(yield* one.ask(doubled, 21, other.origin), 42);
      yield* third.wire.serveHops((_, response) => void response.writeHead(200).end());
      const { headersOf } = one.wire.hopTo(one.destinationOf(other.origin));
      const status = (headers: Record<string, string>) =>
        Effect.callback<number | undefined>((resume) => {
          const request = requestTo({ origin: third.origin, aheadMs: 0 }, headers);
          request.on("response", (response) => resume(Effect.succeed(response.resume().statusCode)));
          request.end();
        });
      assert.strictEqual(yield* status(headersOf("word")), 403, "it was meant for another gateway");
      assert.strictEqual(yield* status(one.wire.hopTo(one.destinationOf(third.origin)).headersOf("word")), 200);
      const late = new HopSignature(key, () => Date.now() - signatureMs - 1_000);
      const expired = { [hopHeader]: "word", [signatureHeader]: late.sign(`${third.origin}\nword`) };
      assert.strictEqual(yield* status(expired), 403, "it is too old");
    }).pipe(Effect.scoped),
  );

  it.live("is answered although the clocks of the two differ by hours, once it knows the other one's address", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const ahead = yield* shifted(7_200_000);
      const one = yield* gateway(shared.process());
      const other = yield* Effect.provideService(gateway(shared.process()), Clock.Clock, ahead);
      for (const [from, to] of [
        [one, other],
        [other, one],
      ] as const) {
        yield* to.wire.serveQuery(doubled, (value) => Effect.succeed(2 * value));
        yield* polled(Effect.map(from.others, ({ length }) => (length === 1 ? true : undefined)));
        assert.strictEqual(yield* from.ask(doubled, 21, to.origin), 42);
      }
    }).pipe(Effect.scoped),
  );

  it.effect("fails in time if the other one hangs, is gone or refuses it, and the log says which", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const one = yield* gateway(shared.process());
      let asked = 0;
      const hangs = yield* serverOf(() => {
        asked += 1;
      });
      const refuses = yield* serverOf((_, response) => void response.writeHead(403).end());
      const failure = (origin: string) => Effect.map(Effect.flip(one.ask(doubled, 1, origin)), ({ reason }) => reason);
      const late = yield* Effect.forkChild(failure(hangs), { startImmediately: true });
      yield* eventually(() => (asked > 0 ? true : undefined));
      yield* TestClock.adjust(doubled.replyMs);
      assert.strictEqual(yield* Fiber.join(late), "late");
      assert.strictEqual(yield* failure("http://127.0.0.1:1"), "gone");
      assert.strictEqual(yield* failure(refuses), "refused");
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  );

  it.live("is served at one path only", () =>
    Effect.gen(function* () {
      const one = yield* gateway((yield* store).process());
      for (const url of [`${hopPath}/`, "/", `/x${hopPath}`, `${hopPath}?x`, "/Recovery/hop"])
        assert.isFalse(one.isFor({ url }), url);
      assert.isTrue(one.isFor({ url: hopPath }));
    }).pipe(Effect.scoped),
  );
});

/** A client of a process, and what it reads. */
const client = Effect.gen(function* () {
  let response: ClientResponse | undefined;
  const url = yield* serverOf((_, its) => {
    response = new ClientResponse(its, 60_000, new Access(() => 0));
  });
  const reading = clientOf(url, { method: "POST", body: "{}" });
  return { reading, response: yield* eventually(() => response) };
});

const wish: AttachWish = { lingerMs: 1, asked: true, repeats: true, forbidden: false, idempotencyKey: undefined };
const request = "a".repeat(64);
const holder = "b".repeat(64);

/** Serves the runs that a process has, by the key of their request and by their holder. */
const serving = (mine: { readonly has: boolean }, hops: Array<HopWish["_tag"]>): SiblingServing => ({
  ...{ now: () => 0, slowMs: () => 60_000 },
  hasRequest: (of) => mine.has && of === request,
  hasRun: (_, of) => mine.has && of === holder,
  run: (its) => void Effect.runFork(its),
  serve: (asked, its) => {
    if (!mine.has || (asked._tag === "Stream" && asked.holder !== holder)) return Effect.succeed(false);
    hops.push(asked._tag);
    its.head({ status: 200, statusText: "OK", headers: [] });
    return Effect.as(Effect.andThen(its.write([new TextEncoder().encode("its bytes")]), its.end), true);
  },
});

describe("a client that comes back at another gateway", () => {
  it.live("is served by the worker that has its run, whichever worker takes the request", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const facts = [shared.process(), shared.process()];
      const sockets = yield* members(2);
      const owners = yield* gatewaysAt(facts);
      const hops: Array<HopWish["_tag"]> = [];
      // The second worker takes requests; at first it has the run, then the first one.
      const has = [{ has: false }, { has: true }];
      for (const [index, mine] of has.entries()) {
        const siblings = yield* Siblings.make(sockets[index], owners[index], facts[index]);
        yield* siblings?.serve(serving(mine, hops)) ?? Effect.void;
      }
      const process = shared.process();
      const asker = yield* gateway(process);
      yield* polled(Effect.map(asker.others, ({ length }) => (length === 1 ? true : undefined)));
      const siblings = (yield* Siblings.make(undefined, asker, process)) ?? assert.fail();
      for (const owner of [1, 0]) {
        for (const [index, mine] of has.entries()) mine.has = index === owner;
        const repeat = yield* client;
        assert.isTrue(yield* siblings.serveRepeat(request, wish, repeat.response), `worker ${owner}`);
        const got = yield* Effect.promise(() => repeat.reading.over);
        assert.deepStrictEqual([got.body.toString(), got.broken], ["its bytes", false]);
        const named = yield* client;
        const asked = { _tag: "Stream", run_id: "gw_1", holder, method: "GET", from: 0 } as const;
        assert.strictEqual(yield* siblings.serveStream(asked, named.response), "served", `worker ${owner}`);
        assert.deepStrictEqual((yield* Effect.promise(() => named.reading.over)).body.toString(), "its bytes");
        const stranger = yield* client;
        const wrong = { ...asked, holder: "c".repeat(64) };
        assert.strictEqual(yield* siblings.serveStream(wrong, stranger.response), "none");
        assert.isFalse(yield* siblings.serveRepeat("d".repeat(64), wish, stranger.response));
        assert.deepStrictEqual(hops.splice(0), ["Repeat", "Stream"]);
      }
    }).pipe(Effect.scoped),
  );

  it.live("has nothing there if no gateway that answers has its run, or its own has no address", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const process = shared.process();
      const dead = shared.process();
      yield* dead.put("gateway", dead.node, JSON.stringify({ origin: "http://127.0.0.1:1", at: 0 }), addressMs);
      const asker = yield* gateway(process);
      yield* polled(Effect.map(asker.others, ({ length }) => (length === 1 ? true : undefined)));
      const siblings = (yield* Siblings.make(undefined, asker, process)) ?? assert.fail();
      const { reading, response } = yield* client;
      assert.isFalse(yield* siblings.serveRepeat(request, wish, response));
      const asked = { _tag: "Stream", run_id: "gw_1", holder, method: "GET", from: 0 } as const;
      assert.strictEqual(yield* siblings.serveStream(asked, response), "none");
      assert.isUndefined(yield* Siblings.make(undefined, undefined, process));
      reading.leave();
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  );
});
