import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../../src/testing/index.ts";
import { dial, ending, post, reading } from "./Dial.ts";

const chat = "/v1/chat/completions";
const content = [{ text: 4 }];

describe("FaultProvider's breaks", () => {
  const endings = [
    { at: "accept", kind: "rst", how: "reset", head: false },
    { at: "request", kind: "rst", how: "reset", head: false },
    { at: "before_head", kind: "rst", how: "reset", head: false },
    { at: "before_head", kind: "fin", how: "fin", head: false },
    { at: "after_head", kind: "fin", how: "fin", head: true },
    { at: "event", kind: "rst", how: "reset", head: true },
    { at: "event", kind: "fin", how: "fin", head: true },
    { at: "utf8", kind: "fin", how: "fin", head: true },
  ] as const;
  for (const { at, head, how, kind } of endings) {
    it.live(`ends the connection with ${how} for ${kind} at ${at}`, () =>
      Effect.gen(function* () {
        const server = yield* FaultProvider.make({ script: { answers: [{ content, break: { kind, at, n: 2 } }] } });
        const socket = yield* dial(server.port);
        if (socket.writable) socket.write(post(chat));
        const end = yield* ending(socket);
        assert.strictEqual(end.how, how);
        assert.strictEqual(end.text.startsWith("HTTP/1.1 200"), head);
        assert.notInclude(end.text, "\r\n0\r\n\r\n");
        assert.notInclude(end.text, "[DONE]");
        if (at === "utf8") assert.isTrue(end.text.trimEnd().endsWith("\uFFFD"), end.text.slice(-20));
        if (at === "event") assert.strictEqual(end.text.match(/data: /g)?.length, 2);
        const row = yield* server.ended(1);
        assert.deepInclude(row, { outcome: "broken", break: { kind, at, n: 2 }, terminal: false });
      }),
    );
  }

  it.live("ends the body properly and keeps the connection for `end`", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ content, break: { kind: "end", at: "terminal" } }] },
      });
      const socket = yield* dial(server.port);
      for (let n = 1; n <= 2; n++) {
        socket.write(post(chat));
        const text = yield* reading(socket, "\r\n0\r\n\r\n");
        assert.notInclude(text, 'finish_reason":"stop');
        assert.deepInclude(yield* server.ended(n), { connection: 1, outcome: "broken", terminal: false });
      }
    }),
  );

  it.live("cuts a call's arguments in the middle", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: {
          answers: [
            {
              content: [{ tool: "bash", input: { cmd: "x".repeat(40) } }],
              break: { kind: "fin", at: "tool_arguments" },
            },
          ],
        },
      });
      for (const path of [chat, "/v1/responses", "/v1/messages", "/v1beta/models/m:streamGenerateContent?alt=sse"]) {
        const socket = yield* dial(server.port);
        socket.write(post(path));
        const { text } = yield* ending(socket);
        assert.include(text, "serial");
        assert.notInclude(text, "t1·");
        assert.deepStrictEqual((yield* server.log).at(-1)?.calls, []);
      }
    }),
  );

  it.live("sends keep-alives for ever and says when the client goes", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: {
          answers: [{ break: { kind: "keep_alive", at: "after_head" }, keep_alive: { every_ms: 1, style: "event" } }],
        },
      });
      const socket = yield* dial(server.port);
      socket.write(post("/v1/messages"));
      const pings = yield* reading(socket, 'event: ping\ndata: {"type":"ping"}\n\n\r\n');
      assert.include(pings, "200");
      socket.destroy();
      assert.strictEqual((yield* server.ended(1)).outcome, "client_closed");
    }),
  );

  it.live("is silent for a stall until the client goes", () =>
    Effect.gen(function* () {
      for (const at of ["accept", "request", "before_head", "after_head", "event"] as const) {
        const server = yield* FaultProvider.make({ script: { answers: [{ break: { kind: "stall", at } }] } });
        const socket = yield* dial(server.port);
        socket.write(post(chat));
        yield* server.until((rows) => rows[0]);
        socket.destroy();
        assert.deepInclude(yield* server.ended(1), { outcome: "client_closed", terminal: false });
      }
    }),
  );

  it.live("resets the next request on a kept connection", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ content, break: { kind: "rst", at: "next_request" } }, { content }] },
      });
      const socket = yield* dial(server.port);
      socket.write(post(chat));
      yield* reading(socket, "0\r\n\r\n");
      socket.write(post(chat));
      assert.strictEqual((yield* ending(socket)).how, "reset");
      assert.deepInclude(yield* server.ended(1), { outcome: "complete", terminal: true });
      assert.deepInclude(yield* server.ended(2), { outcome: "broken", reused: true, bytes_sent: 0 });
    }),
  );
});
