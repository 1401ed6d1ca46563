import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { ProviderClient } from "../../src/client/index.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import type { BreakKind } from "../../src/testing/script/FaultScript.ts";
import { attempt, setup, silentServer } from "./Attempt.ts";
import { protocols } from "./Protocols.ts";

describe("ProviderClient's report of delivery", () => {
  it.live("is not_sent for a port that refuses", () =>
    Effect.gen(function* () {
      const port = yield* Effect.scoped(Effect.map(FaultProvider.make(), (server) => server.port));
      const client = yield* ProviderClient.make();
      const seen = yield* attempt(client, protocols["openai-chat"], {
        url: `http://127.0.0.1:${port}/v1/chat/completions`,
      });
      assert.deepStrictEqual(seen.deliveries, ["not_sent"]);
      assert.deepInclude(seen.error?.reason, { kind: "transport", code: "ECONNREFUSED", operation: "connect" });
    }),
  );

  it.live("is not_sent for a host that has no address", () =>
    Effect.gen(function* () {
      const client = yield* ProviderClient.make();
      const seen = yield* attempt(client, protocols["openai-chat"], { url: "http://no-such-host.invalid/v1" });
      assert.deepStrictEqual(seen.deliveries, ["not_sent"]);
      assert.deepInclude(seen.error?.reason, { kind: "transport", operation: "connect" });
    }),
  );

  it.live("is not_sent if the TLS handshake fails", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({});
      const seen = yield* attempt(client, protocols["openai-chat"], {
        url: server.endpoint("openai-chat").replace("http:", "https:"),
      });
      assert.deepStrictEqual(seen.deliveries, ["not_sent"]);
      assert.deepInclude(seen.error?.reason, { kind: "transport", operation: "connect" });
    }),
  );

  it.live("is not_sent if the connect timeout expires", () =>
    Effect.gen(function* () {
      const { port } = yield* silentServer;
      const client = yield* ProviderClient.make({ connectMs: 30 });
      const seen = yield* attempt(client, protocols["openai-chat"], { url: `https://127.0.0.1:${port}/v1` });
      assert.deepStrictEqual(seen.error?.reason, { kind: "stalled", clock: "connect", code: "CONNECT_STALLED" });
      assert.deepStrictEqual(seen.deliveries, ["not_sent"]);
    }),
  );

  it.live("is not_sent for an address, a header or a body that cannot be sent", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({});
      const url = server.endpoint("openai-chat");
      const circular: Record<string, unknown> = {};
      circular.self = circular;
      for (const call of [{ url: "nonsense" }, { url, headers: { "x-a": "\u0000" } }, { url, body: circular }]) {
        const seen = yield* attempt(client, protocols["openai-chat"], call);
        assert.deepStrictEqual(seen.deliveries, ["not_sent"]);
        assert.strictEqual(seen.error?.reason.kind, "caller_failed");
      }
      assert.deepStrictEqual(yield* server.log, []);
    }),
  );

  it.live("is ambiguous after a part of a large request", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({ answers: [{ break: { kind: "rst", at: "request", n: 100_000 } }] });
      const seen = yield* attempt(client, protocols["openai-chat"], {
        url: server.endpoint("openai-chat"),
        body: "x".repeat(8_000_000),
      });
      assert.isAbove((yield* server.ended(1)).bytes_received, 99_999);
      assert.deepStrictEqual(seen.deliveries, ["not_sent", "ambiguous"]);
      assert.strictEqual(seen.error?.reason.kind, "transport");
    }),
  );

  it.live("is ambiguous on a kept connection that the server has dropped", () =>
    Effect.gen(function* () {
      for (const kind of ["rst", "fin"] satisfies ReadonlyArray<BreakKind>) {
        const { client, server } = yield* setup(
          {
            answers: [{ content: [{ text: 1 }], break: { kind, at: "next_request" } }],
          },
          { connections: 1 },
        );
        const url = server.endpoint("openai-chat");
        assert.strictEqual((yield* attempt(client, protocols["openai-chat"], { url })).error, undefined);
        const seen = yield* attempt(client, protocols["openai-chat"], { url });
        const row = yield* server.ended(2);
        assert.isTrue(row.reused);
        assert.isAbove(row.bytes_received, 0);
        assert.deepStrictEqual(seen.deliveries, ["not_sent", "ambiguous"]);
        assert.strictEqual(seen.error?.reason.kind, "transport");
        // No layer below the caller repeats the request: the server saw exactly two.
        assert.strictEqual((yield* server.log).length, 2);
      }
    }),
  );

  it.live("is never not_sent when the server has read a byte", () =>
    Effect.gen(function* () {
      for (let n = 0; n < 20; n++) {
        const { client, server } = yield* setup({
          answers: [{ break: { kind: "rst", at: n % 2 === 0 ? "accept" : "request", n: 1 } }],
        });
        const seen = yield* attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
        const row = yield* server.ended(1);
        if (row.bytes_received > 0) assert.strictEqual(seen.error?.delivery, "ambiguous");
        assert.notStrictEqual(seen.error?.delivery, "accepted");
      }
    }),
  );
});
