/**
 * A client of one process that is given the response of another one's run, over both ways between processes: between a process of this
 * program and what else may be there.
 */
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, References, type Scope } from "effect";
import { TestClock } from "effect/testing";
import { encode, type HopAsked, HopHead, read } from "../../../src/gateway/attach/HopMessage.ts";
import { decideMs, hop } from "../../../src/gateway/attach/HopRequest.ts";
import { type HopServing, listenerOf, Siblings } from "../../../src/gateway/attach/Siblings.ts";
import { Access } from "../../../src/gateway/log/AccessRecord.ts";
import { ClientResponse } from "../../../src/gateway/proxy/ClientResponse.ts";
import { type Destination, type HopTarget, hopHeader, requestTo } from "../../../src/gateway/workers/SignedWire.ts";
import { socketOf } from "../../../src/gateway/workers/WorkerSockets.ts";
import { folder } from "../../cli/ServeProcess.ts";
import { eventually } from "../../Polling.ts";
import { serverOf } from "../../Servers.ts";
import { members, store, ways } from "../workers/Members.ts";
import { clientOf } from "./AttachCases.ts";

const key = "a".repeat(64);
/** The target of an owner that does not check who asks. */
const unsigned = (to: Destination): HopTarget => ({ to, headersOf: (word) => ({ [hopHeader]: word }) });
const asked: HopAsked = {
  ...{ from: null, worker: 2, hop: 7 },
  wish: { _tag: "Repeat", key, repeats: true, asked: false, idempotencyKey: null },
};

const nothing = {
  ...{ run_id: null, attached_at: null, route: null, attempts: null, rule: null, failure: null, code: null },
  ...{ refused: null, no_ops: null, waited_ms: null, seams: null },
} as const;
const facts = {
  ...nothing,
  run_id: "gw_1",
  attached_at: 0,
  attempts: 2,
  failure: "transport",
  no_ops: 3,
  seams: 1,
  waited_ms: 4,
} as const;

/** A client at a worker, and what it reads. */
const client = Effect.gen(function* () {
  let response: ServerResponse | undefined;
  const url = yield* serverOf((_, its) => {
    response = its;
  });
  const reading = clientOf(url, { method: "POST", body: "{}" });
  const its = yield* eventually(() => response);
  const access = new Access(() => 0);
  return { reading, access, response: new ClientResponse(its, 60_000, access), begun: () => its.headersSent };
});

type Owner = (listener: RequestListener) => Effect.Effect<HopTarget, never, Scope.Scope>;

/** Stands for the owner of a run at a socket. */
const atSocket: Owner = Effect.fnUntraced(function* (listener) {
  const socketPath = socketOf(yield* folder, 1);
  yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer(listener);
      server.listen(socketPath, () => resume(Effect.succeed(server)));
    }),
    (server) =>
      Effect.sync(() => {
        server.close();
        server.closeAllConnections();
      }),
  );
  return unsigned({ socketPath });
});

/** Stands for the owner of a run, by the way in which it is reached. */
const owners: Readonly<Record<string, Owner>> = {
  "a Unix socket": atSocket,
  "an address": (listener) => Effect.map(serverOf(listener), (origin) => unsigned({ origin, aheadMs: 0 })),
};

/** What becomes of a hop to an owner that responds so. */
const hoppedTo = (owner: Owner, listener: RequestListener) =>
  Effect.gen(function* () {
    const { access, begun, reading, response } = yield* client;
    const result = yield* hop(asked, yield* owner(listener), response);
    if (result === "none") return { result, begun: begun(), record: access.record, got: undefined };
    return { result, begun: begun(), record: access.record, got: yield* Effect.promise(() => reading.over) };
  });

const taken = (response: ServerResponse, word = encode(facts)): void =>
  void response.socket?.write(`HTTP/1.1 102 Processing\r\n${hopHeader}: ${word}\r\n\r\n`);

const head = { ...{ status: 200, statusText: "OK", streaming: true, facts }, headers: [["x-run", "one"]] } as const;
const headed = (response: ServerResponse): void =>
  void response.writeHead(200, { [hopHeader]: encode({ _tag: "Head", ...head }) }).write("data: 1\n\n");

for (const [way, owner] of Object.entries(owners))
  describe(`a hop over ${way}`, () => {
    const hopped = (listener: RequestListener) => hoppedTo(owner, listener);

    it.live("copies head, bytes and end, and tells the access line what the owner has learned", () =>
      Effect.gen(function* () {
        const words: Array<unknown> = [];
        const { got, record, result } = yield* hopped((request, response) => {
          words.push(read(HopHead, request.headers[hopHeader]));
          // Both words in one packet.
          response.socket?.cork();
          taken(response);
          headed(response);
          response.socket?.uncork();
          response.addTrailers([[hopHeader, encode({ how: "whole", facts: { ...facts, rule: "replay" } })]]);
          response.end("data: 2\n\n");
        });
        assert.deepStrictEqual(words, [undefined]);
        assert.strictEqual(result, "served");
        assert.strictEqual(String(got?.body), "data: 1\n\ndata: 2\n\n");
        assert.isFalse(got?.broken);
        assert.strictEqual(got?.head?.headers["x-run"], "one");
        assert.isUndefined(got?.head?.headers[hopHeader]);
        assert.containSubset(record, {
          ...{ run_id: "gw_1", attached_at: 0, attempts: 2, failure: "transport", rule: "replay" },
          ...{ no_ops: 3, seams: 1, waited_ms: 4, outcome: "attached", status: 200, bytes: 18 },
        });
      }).pipe(Effect.scoped),
    );

    const breaks: Readonly<Record<string, RequestListener>> = {
      "the owner says that it broke": (_, response) => {
        headed(response);
        response.addTrailers([[hopHeader, encode({ how: "broken", facts })]]);
        response.end();
      },
      "the owner does not say how it ended": (_, response) => {
        headed(response);
        response.end();
      },
      "the owner says how in other words": (_, response) => {
        headed(response);
        response.addTrailers([[hopHeader, encode({ how: "whole", facts }).slice(1)]]);
        response.end();
      },
      "the owner dies behind the head": (_, response) => {
        headed(response);
        setImmediate(() => response.destroy());
      },
      "the owner dies once it has given the place": (_, response) => {
        taken(response);
        setImmediate(() => response.destroy());
      },
      "the owner breaks it before its head": (_, response) => {
        taken(response);
        response.writeHead(200, { [hopHeader]: encode({ _tag: "Broken", facts }) }).end();
      },
      "the owner says another head once it has given the place": (_, response) => {
        taken(response, "another version");
        response.writeHead(200, { [hopHeader]: "another version" }).end();
      },
      "a document is none": (_, response) => {
        response.writeHead(200, { [hopHeader]: encode({ _tag: "Answer", status: 400, headers: [], facts }) }).end("{");
      },
    };
    for (const [name, listener] of Object.entries(breaks))
      it.live(`is broken where ${name}`, () =>
        Effect.gen(function* () {
          const { got, result } = yield* hopped(listener);
          assert.notStrictEqual(result, "none");
          assert.isTrue(got?.broken);
        }).pipe(Effect.scoped),
      );

    const nones: Readonly<Record<string, RequestListener>> = {
      "has nothing": (_, response) => {
        response.writeHead(200, { [hopHeader]: encode({ _tag: "None" }) }).end("{}");
      },
      "does not know the asker": (_, response) => {
        response.writeHead(403).end();
      },
      "speaks another version": (_, response) => {
        response.writeHead(200, { [hopHeader]: encodeURIComponent('{"_tag":"Later"}') }).end("data: 1\n\n");
      },
      "says a head that is none": (_, response) => {
        response.writeHead(200, { [hopHeader]: encode({ _tag: "Head", ...head }).replace("200", "2000") }).end();
      },
      "dies before it has decided": (request) => {
        request.socket.destroy();
      },
    };
    for (const [name, listener] of Object.entries(nones))
      it.live(`leaves the client to a run of its own where the owner ${name}`, () =>
        Effect.gen(function* () {
          const { begun, result } = yield* hopped(listener);
          assert.deepStrictEqual([result, begun], ["none", false]);
        }).pipe(Effect.scoped),
      );

    it.live("lets the asking worker start a new run if no worker owns one", () =>
      Effect.gen(function* () {
        const { begun, response } = yield* client;
        const gone =
          way === "an address"
            ? { origin: "http://127.0.0.1:1", aheadMs: 0 }
            : { socketPath: join(yield* folder, "9.sock") };
        assert.strictEqual(yield* hop(asked, unsigned(gone), response), "none");
        assert.isFalse(begun());
      }).pipe(Effect.scoped),
    );

    it.effect("waits for a decision for so long, and for a head as long as it takes", () =>
      Effect.gen(function* () {
        const got: Array<ServerResponse> = [];
        const to = yield* owner((_, response) => void got.push(response));
        const one = yield* client;
        const undecided = yield* Effect.forkChild(hop(asked, to, one.response), { startImmediately: true });
        yield* eventually(() => got[0]);
        yield* TestClock.adjust(decideMs);
        assert.strictEqual(yield* Fiber.join(undecided), "none");
        const other = yield* client;
        const waiting = yield* Effect.forkChild(hop(asked, to, other.response), { startImmediately: true });
        taken(yield* eventually(() => got[1]));
        yield* eventually(() => other.access.record.run_id);
        yield* TestClock.adjust(100 * decideMs);
        headed(got[1] ?? assert.fail());
        got[1]?.addTrailers([[hopHeader, encode({ how: "whole", facts })]]);
        got[1]?.end();
        assert.strictEqual(yield* Fiber.join(waiting), "served");
      }).pipe(Effect.scoped),
    );

    it.live("ends at the owner where the client leaves, and where its request is given up", () =>
      Effect.gen(function* () {
        let closed = 0;
        const to = yield* owner((_, response) => {
          response.on("close", () => {
            closed += 1;
          });
          taken(response);
          headed(response);
        });
        const one = yield* client;
        const reading = yield* Effect.forkChild(hop(asked, to, one.response), { startImmediately: true });
        yield* eventually(() => (one.reading.got().byteLength > 0 ? true : undefined));
        one.reading.leave();
        assert.strictEqual(yield* Fiber.join(reading), "served");
        yield* eventually(() => (closed === 1 ? true : undefined));
        assert.strictEqual(one.access.record.outcome, "left");
        const other = yield* client;
        const given = yield* Effect.forkChild(hop(asked, to, other.response), { startImmediately: true });
        yield* eventually(() => (other.reading.got().byteLength > 0 ? true : undefined));
        yield* Fiber.interrupt(given);
        yield* eventually(() => (closed === 2 ? true : undefined));
      }).pipe(Effect.scoped),
    );
  });

describe("a repeat at another worker", () => {
  it.live("is asked of all, also where the one that has told of its key cannot answer it", () =>
    Effect.gen(function* () {
      const shared = yield* store;
      const all = yield* Effect.forEach(yield* members(3), (sockets) =>
        Siblings.make(sockets, undefined, shared.process()),
      );
      const hops: Array<number> = [];
      for (const [at, siblings] of all.entries())
        yield* siblings?.serve({
          ...{ now: () => 0, slowMs: () => 60_000, hasRequest: () => true, hasRun: () => false },
          run: (its) => void Effect.runFork(its),
          serve: (_, its) => {
            hops.push(at + 1);
            if (at !== 2) return Effect.succeed(false);
            its.head({ status: 200, statusText: "OK", headers: [] });
            return Effect.as(its.end, true);
          },
        }) ?? Effect.void;
      const [first, second] = all;
      if (first === undefined || second === undefined) return assert.fail();
      first.held.add(key);
      yield* eventually(() => (second.held.isEmpty ? undefined : true));
      const wish = { lingerMs: 1, asked: false, repeats: false, forbidden: false, idempotencyKey: undefined };
      assert.isFalse(yield* second.serveRepeat(key, wish, (yield* client).response));
      assert.deepStrictEqual(hops.splice(0), [1], "who does not say that it repeats one is a new run");
      for (const says of [{ repeats: true }, { asked: true }, { idempotencyKey: "mine" }]) {
        assert.isTrue(yield* second.serveRepeat(key, { ...wish, ...says }, (yield* client).response));
        assert.deepStrictEqual(hops.splice(0), [1, 3]);
      }
    }).pipe(Effect.scoped),
  );
});

for (const [way, reached] of Object.entries(ways))
  describe(`a process that serves hops over ${way}`, () => {
    /** The part of the process, and how it is asked. */
    const served = Effect.fnUntraced(function* (serve: HopServing["serve"]) {
      const { serveHops, target } = yield* reached;
      const setting = () => ({ slowMs: 60_000, now: () => 0, isSilent: Effect.succeed(false), isRemote: false });
      const run = (its: Effect.Effect<void>) =>
        void Effect.runFork(Effect.provideService(its, References.MinimumLogLevel, "None"));
      yield* serveHops(listenerOf({ setting, serve, run }));
      return target;
    });

    it.live("rejects a message that is not one of the protocol", () =>
      Effect.gen(function* () {
        const words: Array<unknown> = [];
        const { headersOf, to } = yield* served((wish) => {
          words.push(wish);
          return Effect.succeed(false);
        });
        const status = (word: string) =>
          Effect.promise(
            () =>
              new Promise<number | undefined>((resolve) => {
                const request = requestTo(to, headersOf(word));
                request.on("response", (response) => resolve(response.resume().statusCode));
                request.on("error", () => resolve(undefined));
                request.end();
              }),
          );
        const word = encode(asked);
        const wish = { ...asked.wish, key: "sk-one" };
        const unread = encodeURIComponent(JSON.stringify({ ...asked, wish }));
        for (const hostile of ["", "%", "null", "{}", word.slice(1), unread])
          assert.strictEqual(yield* status(hostile), 400, hostile);
        assert.strictEqual(yield* status(word), 200);
        assert.lengthOf(words, 1);
      }).pipe(Effect.scoped),
    );

    it.live("forwards a stream, a document, a break, a defect and an empty response unchanged", () =>
      Effect.gen(function* () {
        const cases: ReadonlyArray<readonly [HopServing["serve"], string, number | undefined, boolean]> = [
          [
            (_, its) =>
              Effect.as(
                Effect.andThen(
                  Effect.sync(() =>
                    its.head({
                      status: 201,
                      statusText: "Made",
                      headers: [
                        ["x-ä", "no"],
                        ["x-b", "ä"],
                      ],
                    }),
                  ),
                  Effect.andThen(its.write([new TextEncoder().encode("all")]), its.end),
                ),
                true,
              ),
            "all",
            201,
            false,
          ],
          [
            (_, its) =>
              Effect.as(
                Effect.sync(() => its.refuse({ status: 410, reason: "broken", message: "gone" }, undefined)),
                true,
              ),
            '{"error":',
            410,
            false,
          ],
          [(_, its) => Effect.as(its.break, true), "", undefined, true],
          [() => Effect.die("a defect"), '{"error":', 500, false],
          [
            (_, its) =>
              Effect.as(
                Effect.andThen(
                  Effect.sync(() => its.head({ status: 200, statusText: "", headers: [] })),
                  its.write([new TextEncoder().encode("some")]),
                ),
                true,
              ),
            "some",
            200,
            true,
          ],
        ];
        for (const [serve, body, status, broken] of cases) {
          const to = yield* served(serve);
          const { reading, response } = yield* client;
          assert.notStrictEqual(yield* hop(asked, to, response), "none");
          const got = yield* Effect.promise(() => reading.over);
          assert.isTrue(String(got.body).startsWith(body), String(got.body));
          assert.deepStrictEqual([got.head?.statusCode, got.broken], [status, broken]);
          if (status === 201) assert.strictEqual(got.head?.headers["x-b"], "ä");
          if (status === 410) assert.strictEqual(got.head?.headers["x-recovery-refused"], "broken");
        }
        const to = yield* served(() => Effect.succeed(false));
        assert.strictEqual(yield* hop(asked, to, (yield* client).response), "none");
      }).pipe(Effect.scoped),
    );
  });
