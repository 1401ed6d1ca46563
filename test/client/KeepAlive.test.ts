import { assert, describe, it } from "@effect/vitest";
import { ConfigProvider, Effect, Layer } from "effect";
import { ClientConfigError, type ExchangeRecord, ProviderClient } from "../../src/client/index.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import type { Answer } from "../../src/testing/script/FaultScript.ts";
import { found } from "../Polling.ts";
import { attempt, turns } from "./Attempt.ts";
import { protocols } from "./Protocols.ts";
import { played } from "./Run.ts";

const environment = (values: Record<string, string>) => ConfigProvider.layer(ConfigProvider.fromUnknown(values));

const variable = "STREAM_RECOVERY_KEEPALIVE_MS";

/** Waits until the server has no connections. */
const alone = (server: FaultProvider["Service"]) =>
  found(Effect.map(server.connections, (connections) => (connections === 0 ? true : undefined)));

describe("ProviderClient's kept connections", () => {
  it.live("are closed after the idle limit, even if the server announces 600 s, and the record says so", () =>
    Effect.gen(function* () {
      const records: Array<ExchangeRecord> = [];
      const server = yield* FaultProvider.make({
        script: { answers: [{ content: [{ text: 1 }], headers: { "keep-alive": "timeout=600" } }] },
      });
      const onExchange = (record: ExchangeRecord) => void records.push(record);
      const client = yield* ProviderClient.make({ keepAliveMs: 60, connections: 1, onExchange });
      const call = attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
      yield* call;
      yield* call;
      yield* alone(server);
      yield* call;
      assert.deepStrictEqual(
        (yield* server.log).map((row) => row.connection),
        [1, 1, 2],
      );
      assert.deepStrictEqual(
        records.map(({ connection, recycled, reused }) => [connection, reused, recycled]),
        [
          [1, false, 0],
          [1, true, 0],
          [2, false, 1],
        ],
      );
      const [first, second, third] = records;
      assert.strictEqual(first?.idle_ms, undefined);
      assert.isBelow(second?.idle_ms ?? Number.NaN, 60);
      assert.isBelow(second?.connection_idle_ms ?? Number.NaN, 60);
      assert.isAtLeast(third?.idle_ms ?? Number.NaN, 55);
      assert.strictEqual(third?.connection_idle_ms, 0);
    }),
  );

  it.live("are kept for a shorter time if the server says so", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        // undici closes two seconds before the server does, so one second leaves no idle time.
        script: { answers: [{ content: [{ text: 1 }], headers: { "keep-alive": "timeout=1" } }] },
      });
      const client = yield* ProviderClient.make();
      const call = attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
      yield* call;
      yield* alone(server);
      yield* call;
      assert.deepStrictEqual(
        (yield* server.log).map((row) => row.connection),
        [1, 2],
      );
    }),
  );

  it.live("take their idle limit from the environment when the layer is built", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 1 }] }] } });
      const url = server.endpoint("openai-chat");
      yield* Effect.gen(function* () {
        const client = yield* ProviderClient;
        yield* attempt(client, protocols["openai-chat"], { url });
        yield* alone(server);
        yield* attempt(client, protocols["openai-chat"], { url });
      }).pipe(Effect.provide(ProviderClient.layer().pipe(Layer.provide(environment({ [variable]: "30" })))));
      assert.deepStrictEqual(
        (yield* server.log).map((row) => row.connection),
        [1, 2],
      );
    }),
  );

  it.effect("refuse an invalid idle limit with an error that names the variable and the expected value", () =>
    Effect.gen(function* () {
      for (const bad of ["ten", "0", "-1", "1.5", "1e3", "2147483648"]) {
        const error = yield* ProviderClient.make().pipe(Effect.provide(environment({ [variable]: bad })), Effect.flip);
        assert.instanceOf(error, ClientConfigError);
        assert.strictEqual(error.setting, variable);
        assert.strictEqual(
          error.message,
          `${variable}: expected a whole number of milliseconds from 1 to 2147483647, got ${JSON.stringify(bad)}`,
        );
      }
      const error = yield* Effect.flip(ProviderClient.make({ keepAliveMs: Number.NaN }));
      assert.match(error.message, /^keepAliveMs: expected a whole number .* got NaN$/);
    }),
  );

  it.effect("prefer the caller's idle limit to the environment's", () =>
    Effect.asVoid(ProviderClient.make({ keepAliveMs: 5 }).pipe(Effect.provide(environment({ [variable]: "ten" })))),
  );
});

describe("a stale socket", () => {
  const warm: typeof Answer.Encoded = { content: [{ text: 1 }], break: { kind: "rst", at: "next_request" } };

  it.live("is replaced with a fresh connection, even if several were kept", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        // Both connections are dead when they are used again. The answers after them are healthy.
        script: {
          answers: [{ ...warm, head_delay_ms: 30 }, { ...warm, head_delay_ms: 30 }, { content: [{ text: 2 }] }],
        },
      });
      const records: Array<ExchangeRecord> = [];
      const client = yield* ProviderClient.make({ onExchange: (record) => records.push(record) });
      const call = attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
      yield* Effect.all([call, call], { concurrency: 2 });
      yield* turns(20);
      const seen = yield* played(client, server, { runId: "stale" });
      assert.deepStrictEqual(seen.rules, ["nothing_shown"]);
      assert.isTrue(seen.completed);
      assert.strictEqual((yield* server.log).length, 4, "one request an attempt");
      assert.deepStrictEqual(
        records
          .slice(2)
          .map(({ code, connection, outcome, recycled, reused }) => ({ code, connection, outcome, recycled, reused })),
        [
          { code: "ECONNRESET", connection: records[2]?.connection, outcome: "failed", recycled: 0, reused: true },
          { code: undefined, connection: 3, outcome: "complete", recycled: 1, reused: false },
        ],
      );
    }),
  );

  it.live(
    "that is followed only by resets costs one request more than the budget, and the first error text is kept",
    () =>
      Effect.gen(function* () {
        for (const retries of [0, 2]) {
          const server = yield* FaultProvider.make({
            script: { answers: [warm, { break: { kind: "rst", at: "request", n: 1 } }], after: "repeat" },
          });
          const records: Array<ExchangeRecord> = [];
          const client = yield* ProviderClient.make({ connections: 1, onExchange: (record) => records.push(record) });
          yield* attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
          const seen = yield* played(client, server, {
            runId: `all-${retries}`,
            budget: { max_auto_retries: retries },
          });
          assert.isFalse(seen.completed);
          assert.strictEqual((yield* server.log).length - 1, retries + 1);
          assert.strictEqual(records.length - 1, retries + 1, "recovered attempts have their records too");
          assert.deepInclude(seen.error?.cause, { _tag: "ProviderError" });
          const { cause } = seen.error?.cause instanceof Error ? seen.error.cause : {};
          assert.deepInclude(cause, { code: "ECONNRESET" });
          assert.deepStrictEqual(
            records.slice(1).map(({ outcome, reused }) => [outcome, reused]),
            Array.from({ length: retries + 1 }, (_, index) => ["failed", index === 0]),
          );
        }
      }),
  );
});
