import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, References, Stream, Tracer } from "effect";
import { type ExchangeRecord, ProviderClient } from "../../src/client/index.ts";
import type { Part } from "../../src/provider/Protocols.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";
import { attempt } from "./Attempt.ts";
import { protocols } from "./Protocols.ts";

const chat = protocols["openai-chat"];

const recording = (script: FaultScriptInput) =>
  Effect.gen(function* () {
    const records: Array<ExchangeRecord> = [];
    const server = yield* FaultProvider.make({ script });
    const client = yield* ProviderClient.make({ onExchange: (record) => void records.push(record) });
    return { records, server, client, url: server.endpoint("openai-chat") };
  });

/** Reads a stream up to a part, waits there, and is interrupted. */
const leftAt = (client: ProviderClient["Service"], url: string, wanted: (part: Part) => boolean) =>
  Effect.gen(function* () {
    const seen = yield* Deferred.make<void>();
    const fiber = yield* client.stream({ protocol: chat, url, body: {} }).pipe(
      Stream.runForEach((part) =>
        wanted(part) ? Effect.andThen(Deferred.succeed(seen, undefined), Effect.never) : Effect.void,
      ),
      Effect.forkChild,
    );
    yield* Deferred.await(seen);
    yield* Fiber.interrupt(fiber);
  });

describe("ProviderClient's telemetry", () => {
  it.live("measures an exchange: sizes equal to the server's, and times in order", () =>
    Effect.gen(function* () {
      const { client, records, server, url } = yield* recording({
        answers: [{ content: [{ text: 3 }], head_delay_ms: 30, first_delay_ms: 30 }],
      });
      const seen = yield* attempt(client, chat, { url, body: { stream: true, text: "ü".repeat(100) } });
      const [record] = records;
      const row = yield* server.ended(1);
      assert.deepInclude(record, {
        number: 1,
        origin: server.url,
        idle_ms: undefined,
        connection: 1,
        reused: false,
        connection_idle_ms: 0,
        recycled: 0,
        request_bytes: row.body_bytes,
        bytes: seen.bytes,
        status: 200,
        delivery: "accepted",
        outcome: "complete",
        failure: undefined,
        code: undefined,
      });
      assert.isAtLeast(row.body_bytes, 200);
      assert.isAtLeast(record?.wait_ms ?? Number.NaN, 0);
      // The server waits 30 ms before each. A busy machine may see the head late, and so the byte after it sooner.
      assert.isAtLeast(record?.head_ms ?? Number.NaN, 25);
      assert.isAbove((record?.first_byte_ms ?? Number.NaN) - (record?.head_ms ?? Number.NaN), 0);
      assert.isAtLeast(record?.duration_ms ?? Number.NaN, record?.first_byte_ms ?? Number.NaN);
    }),
  );

  it.live("has a record for each way in which an exchange can end", () =>
    Effect.gen(function* () {
      const { client, records, url } = yield* recording({
        answers: [
          { status: 429 },
          { break: { kind: "rst", at: "before_head" } },
          { break: { kind: "end", at: "event", n: 2 } },
          { content: [{ text: 1 }, { error: "overloaded" }] },
          { body: "<p>" },
          { break: { kind: "stall", at: "event", n: 1 } },
        ],
      });
      for (let n = 0; n < 5; n++) yield* attempt(client, chat, { url });
      yield* leftAt(client, url, () => true);
      yield* attempt(client, chat, { url: "http://127.0.0.1:1/refused" });
      yield* attempt(client, chat, { url: "nonsense" });
      assert.deepStrictEqual(
        records.map(({ code, delivery, failure, outcome, status }) => [outcome, failure, code, status, delivery]),
        [
          ["failed", "rate_limited", "rate_limit_exceeded", 429, "accepted"],
          ["failed", "transport", "ECONNRESET", undefined, "ambiguous"],
          ["failed", "truncated", undefined, 200, "accepted"],
          ["failed", "overloaded", "server_is_overloaded", 200, "accepted"],
          ["failed", "protocol", "web_page", 200, "accepted"],
          ["aborted", undefined, undefined, 200, "accepted"],
          ["failed", "transport", "ECONNREFUSED", undefined, "not_sent"],
          ["failed", "caller_failed", undefined, undefined, "not_sent"],
        ],
      );
      const [, , , , , , refused, nonsense] = records;
      assert.deepStrictEqual(
        [refused?.connection, refused?.wait_ms, refused?.head_ms],
        [undefined, undefined, undefined],
      );
      assert.strictEqual(nonsense?.origin, "");
    }),
  );

  it.live("counts an answer with its marker as complete, even if its reader stops there", () =>
    Effect.gen(function* () {
      const { client, records, url } = yield* recording({
        answers: [{ break: { kind: "stall", at: "event", n: 100 } }],
      });
      yield* leftAt(client, url, (part) => part.observation.terminal);
      assert.strictEqual(records[0]?.outcome, "complete");
    }),
  );

  it.live("contains nothing of the request's query, headers and body", () =>
    Effect.gen(function* () {
      const { client, records, server } = yield* recording({ answers: [{}, { status: 401 }] });
      const url = `${server.url}/v1/chat/completions?key=PLANTED`.replace("//", "//PLANTED:PLANTED@");
      for (let n = 0; n < 2; n++)
        yield* attempt(client, chat, { url, headers: { authorization: "PLANTED" }, body: "PLANTED" });
      assert.strictEqual(records.length, 2);
      assert.notInclude(JSON.stringify(records), "PLANTED");
    }),
  );

  it.live("does not disturb the stream when the caller's reader throws", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make();
      const client = yield* ProviderClient.make({
        onExchange: () => {
          throw new Error("reader");
        },
      });
      const seen = yield* attempt(client, chat, { url: server.endpoint("openai-chat") });
      assert.strictEqual(seen.error, undefined);
      assert.isAbove(seen.parts.length, 0);
    }).pipe(Effect.provideService(References.MinimumLogLevel, "None")),
  );

  it.live("gives every exchange a separate span and writes to no other", () =>
    Effect.gen(function* () {
      const spans: Array<Tracer.Span> = [];
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options);
          spans.push(span);
          return span;
        },
      });
      const server = yield* FaultProvider.make({ script: { answers: [{ status: 503 }] } });
      const client = yield* ProviderClient.make();
      yield* attempt(client, chat, { url: server.endpoint("openai-chat") }).pipe(
        Effect.withSpan("caller"),
        Effect.withTracer(tracer),
      );
      const [caller, exchange] = spans;
      assert.strictEqual(caller?.attributes.size, 0);
      assert.deepInclude(Object.fromEntries(exchange?.attributes ?? []), {
        "http.response.status_code": 503,
        "error.type": "server_error",
        "stream_recovery.outcome": "failed",
        "stream_recovery.connection": 1,
        "stream_recovery.connection_reused": false,
      });
      assert.strictEqual(exchange?.name, "stream_recovery.exchange");
      assert.strictEqual(exchange?.status._tag, "Ended");
    }),
  );
});
