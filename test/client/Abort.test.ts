import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Exit, Fiber, Stream } from "effect";
import { ProviderClient } from "../../src/client/index.ts";
import type { Delivery } from "../../src/domain/AttemptFacts.ts";
import type { BreakPlace } from "../../src/testing/script/FaultScript.ts";
import { attempt, setup, silentServer } from "./Attempt.ts";
import { protocols } from "./Protocols.ts";

const content = [{ reasoning: 2 }, { text: 4 }];

describe("ProviderClient's abort", () => {
  for (const at of ["before_head", "after_head", "event"] satisfies ReadonlyArray<BreakPlace>) {
    it.live(`closes the socket at once while the server is silent at ${at}`, () =>
      Effect.gen(function* () {
        const { client, server } = yield* setup({ answers: [{ content, break: { kind: "stall", at, n: 2 } }] });
        const fiber = yield* Effect.forkChild(
          attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") }),
        );
        yield* server.until((rows) =>
          rows.find((row) => row.body_hash !== "" && (at === "before_head" || row.bytes_sent > 0)),
        );
        yield* Fiber.interrupt(fiber);
        assert.strictEqual((yield* server.ended(1)).outcome, "client_closed");
      }),
    );
  }

  it.live("closes the socket when the consumer stops reading", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({
        answers: [{ content, break: { kind: "keep_alive", at: "event", n: 4 }, keep_alive: { every_ms: 1 } }],
      });
      const pings = yield* client
        .stream({ protocol: protocols["anthropic-messages"], url: server.endpoint("anthropic-messages"), body: {} })
        .pipe(
          Stream.filter((part) => part.observation.keep_alive),
          Stream.take(5),
          Stream.runCollect,
        );
      assert.strictEqual(pings.length, 5);
      assert.strictEqual((yield* server.ended(1)).outcome, "client_closed");
    }),
  );

  it.live("closes a socket that is still being opened", () =>
    Effect.gen(function* () {
      const server = yield* silentServer;
      const client = yield* ProviderClient.make();
      const fiber = yield* Effect.forkChild(
        attempt(client, protocols["openai-chat"], { url: `https://127.0.0.1:${server.port}/v1` }),
      );
      yield* Deferred.await(server.accepted);
      yield* Fiber.interrupt(fiber);
      yield* Deferred.await(server.closed);
    }),
  );

  it.live("gives the slot of a cancelled connection to the next request", () =>
    Effect.gen(function* () {
      const server = yield* silentServer;
      const client = yield* ProviderClient.make({ connections: 1 });
      const call = attempt(client, protocols["openai-chat"], { url: `https://127.0.0.1:${server.port}/v1` });
      const first = yield* Effect.forkChild(call);
      yield* Deferred.await(server.accepted);
      const second = yield* Effect.forkChild(call, { startImmediately: true });
      yield* Fiber.interrupt(first);
      yield* Deferred.await(server.acceptedAgain);
      yield* Fiber.interrupt(second);
      yield* Deferred.await(server.closedAgain);
    }),
  );

  it.live("applies the connect timeout to every request, even to those that waited for a connection", () =>
    Effect.gen(function* () {
      const server = yield* silentServer;
      const client = yield* ProviderClient.make({ connections: 1, connectMs: 20 });
      const call = attempt(client, protocols["openai-chat"], { url: `https://127.0.0.1:${server.port}/v1` });
      for (const seen of yield* Effect.all([call, call, call], { concurrency: "unbounded" })) {
        assert.deepStrictEqual(seen.error?.reason, { kind: "stalled", clock: "connect", code: "CONNECT_STALLED" });
        assert.deepStrictEqual(seen.deliveries, ["not_sent"]);
      }
    }),
  );

  it.live("does not affect other requests of the same client", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({
        scripts: { stall: [{ break: { kind: "stall", at: "after_head" } }], fine: [{ content: [{ text: 200 }] }] },
      });
      const stalled = yield* Effect.forkChild(
        attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat", "stall") }),
      );
      yield* server.until((rows) => rows.find((row) => row.bytes_sent > 0));
      const fine = yield* Effect.forkChild(
        attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat", "fine") }),
      );
      yield* Fiber.interrupt(stalled);
      assert.strictEqual((yield* Fiber.join(fine)).error, undefined);
    }),
  );

  it.live("limits the wait for a free connection, and is not_sent until then", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup(
        { scripts: { stall: [{ break: { kind: "stall", at: "after_head" } }], fine: [{ content: [{ text: 1 }] }] } },
        { connections: 1 },
      );
      const stalled = yield* Effect.forkChild(
        attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat", "stall") }),
      );
      yield* server.until((rows) => rows.find((row) => row.bytes_sent > 0));
      const deliveries: Array<Delivery> = [];
      const waiting = yield* Effect.forkChild(
        client
          .stream({
            protocol: protocols["openai-chat"],
            url: server.endpoint("openai-chat", "fine"),
            delivery: (now) => void deliveries.push(now),
          })
          .pipe(Stream.runDrain, Effect.exit),
        { startImmediately: true },
      );
      assert.deepStrictEqual(deliveries, ["not_sent"]);
      yield* Fiber.interrupt(stalled);
      assert.isTrue(Exit.isSuccess(yield* Fiber.join(waiting)));
      assert.deepStrictEqual(deliveries, ["not_sent", "ambiguous", "accepted"]);
    }),
  );
});
