import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import type { BreakKind, BreakPlace } from "../../src/testing/script/FaultScript.ts";
import { samples } from "../samples/index.ts";
import { attempt, type Call, setup } from "./Attempt.ts";
import { protocols, serialsOf } from "./Protocols.ts";

const ids = Object.keys(protocols) as ReadonlyArray<ProtocolId>; // the record's keys are the ids
const content = [{ reasoning: 2 }, { text: 4 }, { tool: "bash", input: { cmd: "ls ü" } }];
const inBody: ReadonlyArray<readonly [BreakPlace, number]> = [
  ["after_head", 0],
  ["byte", 40],
  ["event", 1],
  ["event", 3],
  ["utf8", 0],
  ["utf8", 3],
  ["tool_arguments", 0],
  ["terminal", 0],
];
const beforeBody: ReadonlyArray<readonly [BreakPlace, number]> = [
  ["accept", 0],
  ["request", 20],
  ["before_head", 0],
];

const hasCalls = (id: ProtocolId): boolean => samples[id].has.calls !== "none";

describe("ProviderClient", () => {
  for (const id of ids) {
    describe(id, () => {
      it.live("returns every delta of a healthy answer and ends", () =>
        Effect.gen(function* () {
          const { client, server } = yield* setup({ answers: [{ content }] });
          const seen = yield* attempt(client, protocols[id], { url: server.endpoint(id) });
          const row = yield* server.ended(1);
          assert.strictEqual(seen.error, undefined);
          assert.deepStrictEqual(serialsOf(seen.parts), [...row.reasoning, ...row.text]);
          assert.deepStrictEqual(seen.deliveries, ["not_sent", "ambiguous", "accepted"]);
          const decoded = seen.parts.flatMap((part) => part.observation.calls).filter((call) => call.phase === "ready");
          assert.strictEqual(decoded.length, hasCalls(id) ? 1 : 0);
          assert.isTrue(row.terminal);
        }),
      );

      it.live("accepts an answer that arrives one byte at a time", () =>
        Effect.gen(function* () {
          const { client, server } = yield* setup({ answers: [{ content: [{ text: 3 }], write_bytes: 1 }] });
          const seen = yield* attempt(client, protocols[id], { url: server.endpoint(id) });
          assert.strictEqual(seen.error, undefined);
          assert.deepStrictEqual(serialsOf(seen.parts), (yield* server.ended(1)).text);
        }),
      );

      for (const kind of ["rst", "fin", "end"] satisfies ReadonlyArray<BreakKind>) {
        const places = inBody.filter(([at]) => at !== "tool_arguments" || hasCalls(id));
        for (const [at, n] of kind === "end" ? places : [...beforeBody, ...places]) {
          it.live(`fails with a typed failure after ${kind} at ${at} ${n}, never with a clean end`, () =>
            Effect.gen(function* () {
              const { client, server } = yield* setup({ answers: [{ content, break: { kind, at, n } }] });
              const seen = yield* attempt(client, protocols[id], { url: server.endpoint(id) });
              const row = yield* server.ended(1);
              assert.strictEqual(row.outcome, "broken");
              assert.isDefined(seen.error);
              assert.strictEqual(seen.error?.reason.kind, kind === "end" ? "truncated" : "transport");
              const sent = [...row.reasoning, ...row.text];
              const got = serialsOf(seen.parts);
              assert.deepStrictEqual(got, sent.slice(0, got.length));
              // A reset may discard bytes in flight; a FIN and a clean end may not.
              if (kind !== "rst") assert.strictEqual(got.length, sent.length);
              assert.strictEqual(seen.deliveries.at(-1), seen.error?.delivery);
              if (inBody.some(([place]) => place === at) && kind !== "rst")
                assert.strictEqual(seen.error?.delivery, "accepted");
              assert.isFalse(
                seen.parts.some((part) => part.observation.calls.some((call) => call.phase === "ready")) &&
                  row.calls.length === 0,
              );
            }),
          );
        }
      }

      it.live("fails if the finish never comes and the body ends properly", () =>
        Effect.gen(function* () {
          const { client, server } = yield* setup({ answers: [{ content, finish: "none" }] });
          const seen = yield* attempt(client, protocols[id], { url: server.endpoint(id) });
          assert.strictEqual(seen.error?.reason.kind, "truncated");
        }),
      );

      it.live(
        "returns an error inside the stream as a part and then fails with the provider's words as the cause",
        () =>
          Effect.gen(function* () {
            const { client, server } = yield* setup({ answers: [{ content: [{ text: 2 }, { error: "overloaded" }] }] });
            const seen = yield* attempt(client, protocols[id], { url: server.endpoint(id) });
            assert.deepStrictEqual(serialsOf(seen.parts), (yield* server.ended(1)).text);
            assert.isDefined(seen.parts.at(-1)?.observation.failure);
            assert.include(["overloaded", "server_error"], seen.error?.reason.kind);
            assert.strictEqual(seen.error?.cause, seen.parts.at(-1)?.json);
          }),
      );

      it.live("classifies error answers by status and keeps the answer as the cause", () =>
        Effect.gen(function* () {
          const statuses = {
            400: "rejected",
            401: "rejected",
            429: "rate_limited",
            500: "server_error",
            529: "overloaded",
          };
          for (const [status, kind] of Object.entries(statuses)) {
            const { client, server } = yield* setup({
              answers: [{ status: Number(status), headers: { "retry-after": "7" } }],
            });
            const seen = yield* attempt(client, protocols[id], { url: server.endpoint(id) });
            assert.strictEqual(seen.error?.reason.kind, kind, status);
            assert.strictEqual(seen.error?.reason.status, Number(status));
            assert.strictEqual(seen.error?.delivery, "accepted");
            assert.deepInclude(seen.error?.cause, { status: Number(status) });
            if (kind === "rate_limited") assert.strictEqual(seen.error?.reason.retry_after_ms, 7000);
          }
        }),
      );
    });
  }

  it.live("reports not_a_stream for a page and for JSON with status 200", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({
        answers: [{ body: "<html>Sign in</html>" }, { body: { choices: [] } }],
      });
      for (let n = 0; n < 2; n++) {
        const seen = yield* attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
        assert.deepInclude(seen.error?.reason, { kind: "protocol", reason: "not_a_stream" });
        assert.deepStrictEqual(seen.parts, []);
      }
    }),
  );

  it.live("reads a stream with any content type that is not a document's", () =>
    Effect.gen(function* () {
      const stream = 'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
      const types = [
        "text/event-stream;charset=UTF-8",
        "text/plain; charset=utf-8",
        "application/octet-stream",
        "application/stream+json",
        "application/x-ndjson",
      ];
      const { client, server } = yield* setup({
        answers: types.map((type) => ({ raw: stream, headers: { "content-type": type } })),
      });
      for (const type of types) {
        const seen = yield* attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
        assert.deepStrictEqual([seen.error, seen.parts.length], [undefined, 2], type);
      }
    }),
  );

  it.live("classifies a body that is not a stream, whatever its content type says", () =>
    Effect.gen(function* () {
      const plain = { "content-type": "text/event-stream" };
      const error = '{"error":{"message":"no","type":"invalid_request_error","code":"context_length_exceeded"}}';
      const { client, server } = yield* setup({
        answers: [
          { raw: error, headers: plain },
          { raw: '{"code":401,"msg":"token expired","success":false}', headers: plain, write_bytes: 5 },
          { raw: "upstream unavailable", headers: { "content-type": "text/plain" } },
          { raw: "", headers: plain },
          { raw: "", status: 204 },
          { raw: "", status: 307, headers: { location: "/elsewhere" } },
        ],
      });
      const expected = [
        "rejected context_overflow",
        "rejected auth 401",
        "protocol not_a_stream",
        "truncated",
        "protocol not_a_stream",
        "rejected invalid_request 307",
      ];
      for (const failure of expected) {
        const seen = yield* attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
        const { reason } = seen.error ?? {};
        const said = [reason?.kind, reason && "reason" in reason ? reason.reason : undefined, reason?.status];
        assert.strictEqual(said.filter((word) => word !== undefined).join(" "), failure);
        assert.deepStrictEqual(seen.parts, []);
      }
      assert.strictEqual((yield* server.log).length, expected.length);
    }),
  );

  it.live("reads an error body only up to its limit and closes the connection", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({ answers: [{ status: 500, body: "x".repeat(8 * 1024 * 1024) }] });
      const seen = yield* attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
      assert.strictEqual(seen.error?.reason.kind, "server_error");
      assert.deepInclude(seen.error?.cause, { status: 500, body: "x".repeat(64 * 1024) });
      assert.strictEqual((yield* server.ended(1)).outcome, "client_closed");
    }),
  );

  it.live("keeps the request's secrets out of the error's own text", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({
        answers: [
          { status: 401 },
          { break: { kind: "rst", at: "before_head" } },
          { break: { kind: "end", at: "event", n: 2 } },
          { body: "<p>" },
        ],
      });
      const url = `${server.url}/v1/chat/completions?key=PLANTED-QUERY`;
      const headers = { authorization: "Bearer PLANTED-HEADER" };
      const calls: Array<Call> = Array.from({ length: 4 }, () => ({ url, headers, body: "PLANTED-BODY" }));
      calls.push({ url: "http://PLANTED HOST/", headers }, { url, headers: { "x-a": "PLANTED\u0000" } });
      for (const call of calls) {
        const seen = yield* attempt(client, protocols["openai-chat"], call);
        assert.isDefined(seen.error);
        const { message, reason } = seen.error ?? {};
        assert.notInclude(JSON.stringify({ message, reason }), "PLANTED");
      }
    }),
  );

  it.live("reuses a connection after a complete answer", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({ answers: [{ content: [{ text: 1 }] }] }, { connections: 1 });
      for (let n = 0; n < 3; n++)
        yield* attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat") });
      assert.deepStrictEqual(
        (yield* server.log).map((row) => row.reused),
        [false, true, true],
      );
    }),
  );

  it.live("keeps the responses of simultaneous requests apart", () =>
    Effect.gen(function* () {
      const { client, server } = yield* setup({ scripts: { a: [{ content: [{ text: 1 }] }], b: [{ status: 503 }] } });
      const seen = yield* Effect.all(
        [
          attempt(client, protocols["anthropic-messages"], { url: server.endpoint("anthropic-messages", "a") }),
          attempt(client, protocols["google-gemini"], { url: server.endpoint("google-gemini", "b") }),
        ],
        { concurrency: 2 },
      );
      assert.strictEqual(seen[0].error, undefined);
      assert.strictEqual(seen[1].error?.reason.status, 503);
    }),
  );
});
