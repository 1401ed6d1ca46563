import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import { refreshMs } from "../../src/client/Credentials.ts";
import { Credentials, ProviderClient } from "../../src/client/index.ts";
import { serverOf } from "../Servers.ts";
import { attempt } from "./Attempt.ts";
import { protocols } from "./Protocols.ts";
import { played } from "./Run.ts";
import { answer } from "./Server.ts";

/** A provider that accepts a single key and records the keys it was sent. */
const locked = (valid: string) =>
  Effect.gen(function* () {
    const keys: Array<string | undefined> = [];
    const url = yield* serverOf((request, response) => {
      request.resume();
      keys.push(request.headers.authorization);
      const good = request.headers.authorization === `Bearer ${valid}`;
      response.writeHead(good ? 200 : 401, { "content-type": good ? "text/event-stream" : "application/json" });
      response.end(
        good ? answer : '{"error":{"message":"expired","type":"invalid_request_error","code":"invalid_api_key"}}',
      );
    });
    return { keys, endpoint: () => `${url}/v1/chat/completions` };
  });

const stored = (keys: ReadonlyArray<string>) => {
  let at = 0;
  return {
    refreshes: () => at,
    source: {
      read: Effect.sync(() => ({ authorization: `Bearer ${keys[at] ?? ""}` })),
      refresh: Effect.sync(() => {
        at += 1;
      }),
    },
  };
};

describe("Credentials", () => {
  it.live("that have expired are renewed once, and the next attempt sends the new key", () =>
    Effect.gen(function* () {
      const server = yield* locked("new");
      const store = stored(["old", "new"]);
      const { headers, refreshCredentials } = Credentials.make(store.source);
      const client = yield* ProviderClient.make();
      const seen = yield* played(client, server, { refreshCredentials, request: () => ({ headers }) });
      assert.isTrue(seen.completed);
      assert.deepStrictEqual(seen.rules, ["credentials_refreshed"]);
      assert.deepStrictEqual(server.keys, ["Bearer old", "Bearer new"]);
      assert.strictEqual(store.refreshes(), 1);
    }),
  );

  it.live("that are refused again after their renewal are not renewed again, and the 401 remains the cause", () =>
    Effect.gen(function* () {
      const server = yield* locked("none");
      const store = stored(["old", "new", "newer"]);
      const { headers, refreshCredentials } = Credentials.make(store.source);
      const client = yield* ProviderClient.make();
      const seen = yield* played(client, server, { refreshCredentials, request: () => ({ headers }) });
      assert.isFalse(seen.completed);
      assert.deepStrictEqual(server.keys, ["Bearer old", "Bearer new"]);
      assert.strictEqual(store.refreshes(), 1);
      assert.deepInclude(seen.error?.cause, { _tag: "ProviderError" });
    }),
  );

  it.live("are read for every attempt, even without a renewal", () =>
    Effect.gen(function* () {
      const server = yield* locked("c");
      const client = yield* ProviderClient.make();
      let at = 0;
      const headers = Effect.sync(() => ({ authorization: `Bearer ${"abc"[at++]}` }));
      const call = client.stream({ protocol: protocols["openai-chat"], url: server.endpoint(), headers, body: {} });
      for (let n = 0; n < 3; n++) yield* Effect.exit(Stream.runDrain(call));
      assert.deepStrictEqual(server.keys, ["Bearer a", "Bearer b", "Bearer c"]);
    }),
  );

  it.live(
    "that cannot be read are the caller's own failure: nothing is sent, and the cause is the caller's error",
    () =>
      Effect.gen(function* () {
        const server = yield* locked("a");
        const client = yield* ProviderClient.make();
        const cause = new Error("keychain");
        const seen = yield* attempt(client, protocols["openai-chat"], {
          url: server.endpoint(),
          headers: Effect.fail(cause),
        });
        assert.strictEqual(seen.error?.reason.kind, "caller_failed");
        assert.strictEqual(seen.error?.cause, cause);
        assert.deepStrictEqual(seen.deliveries, ["not_sent"]);
        assert.deepStrictEqual(server.keys, []);
      }),
  );

  it.live("that are slow to read can be abandoned, and then nothing is sent", () =>
    Effect.gen(function* () {
      const server = yield* locked("a");
      const client = yield* ProviderClient.make();
      const reading = yield* Deferred.make<void>();
      const headers = Effect.andThen(Deferred.succeed(reading, undefined), Effect.never);
      const fiber = yield* Effect.forkChild(
        attempt(client, protocols["openai-chat"], { url: server.endpoint(), headers }),
      );
      yield* Deferred.await(reading);
      yield* Fiber.interrupt(fiber);
      assert.deepStrictEqual(server.keys, []);
    }),
  );

  it.effect("are renewed once for all waiting runs, even if the first of them is stopped", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>();
      let renewals = 0;
      const refresh = Effect.andThen(
        Effect.sync(() => {
          renewals += 1;
        }),
        Deferred.await(go),
      );
      const { refreshCredentials } = Credentials.make({ read: Effect.succeed({}), refresh });
      const waiting = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(refreshCredentials, { startImmediately: true }),
      );
      const [first, ...rest] = waiting;
      if (first !== undefined) yield* Fiber.interrupt(first);
      yield* Deferred.succeed(go, undefined);
      yield* Fiber.joinAll(rest);
      assert.strictEqual(renewals, 1);
      yield* refreshCredentials;
      assert.strictEqual(renewals, 2, "what comes after is a renewal of its own");
    }),
  );

  it.effect("whose renewal hangs fail after its limit, and may be renewed again", () =>
    Effect.gen(function* () {
      const { refreshCredentials } = Credentials.make({ read: Effect.succeed({}), refresh: Effect.never });
      for (let n = 0; n < 2; n++) {
        const fiber = yield* Effect.forkChild(Effect.flip(refreshCredentials), { startImmediately: true });
        yield* TestClock.adjust(refreshMs);
        assert.instanceOf(yield* Fiber.join(fiber), Credentials.CredentialsStalled);
      }
    }),
  );
});
