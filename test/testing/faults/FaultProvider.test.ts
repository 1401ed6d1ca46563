import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultListenError, FaultProvider } from "../../../src/testing/index.ts";

import { dial, dialForLater, ending, post, reading } from "./Dial.ts";

const chat = "/v1/chat/completions";
const content = [{ text: 4 }];

describe("FaultProvider", () => {
  it.live("answers in the protocol of the path and logs what it sent", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make();
      const socket = yield* dial(server.port);
      socket.write(post("/v1/messages", '{"a":1}', "x-api-key: secret\r\n"));
      const text = yield* reading(socket, "0\r\n\r\n");
      assert.include(text, "event: message_start");
      const row = yield* server.ended(1);
      assert.deepInclude(row, {
        method: "POST",
        path: "/v1/messages",
        protocol: "anthropic-messages",
        outcome: "complete",
        terminal: true,
        body_bytes: 7,
      });
      assert.strictEqual(row.body_hash, createHash("sha256").update('{"a":1}').digest("hex"));
      assert.strictEqual(row.bytes_sent, Buffer.byteLength(text));
      assert.include(row.header_names, "x-api-key");
      assert.notInclude(JSON.stringify(row), "secret");
      assert.deepStrictEqual(row.text, ["r1.2·", "r1.3·", "r1.4·", "r1.5·", "r1.6·"]);
    }),
  );

  it.live("plays answers in order, repeats the last and counts on", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers: [{ status: 500 }, { content }] } });
      const socket = yield* dial(server.port);
      for (const status of ["500", "200", "200"]) {
        socket.write(post(chat));
        const text = yield* reading(socket, status === "500" ? "null}}" : "0\r\n\r\n");
        assert.include(text, `HTTP/1.1 ${status}`);
      }
      assert.deepStrictEqual(
        (yield* server.log).map((row) => [row.number, row.connection, row.reused]),
        [
          [1, 1, false],
          [2, 1, true],
          [3, 1, true],
        ],
      );
    }),
  );

  it.live("marks a request that the script did not foresee", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ content }], after: "error", scripts: { b: [{ content }] } },
      });
      for (const request of [post(chat), post(chat), post(`/s/nobody${chat}`), post("/v1/embeddings")]) {
        const socket = yield* dial(server.port);
        socket.write(request);
        yield* reading(socket, "\r\n\r\n");
      }
      assert.strictEqual((yield* server.ended(2)).outcome, "unscripted");
      assert.strictEqual((yield* server.ended(3)).outcome, "unscripted");
      assert.strictEqual((yield* server.ended(4)).outcome, "unscripted");
    }),
  );

  it.live("chooses a conversation by path prefix and by header", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { scripts: { "a b": [{ status: 503 }, { status: 529 }], c: [{ status: 418 }] } },
      });
      const statuses: Array<number | undefined> = [];
      for (const request of [
        post(`/s/a%20b${chat}`),
        post(chat, "{}", "x-script: c\r\n"),
        post(`/s/a%20b${chat}`),
        post(chat),
      ]) {
        const socket = yield* dial(server.port);
        socket.write(request);
        yield* reading(socket, "\r\n\r\n");
        statuses.push((yield* server.ended(statuses.length + 1)).status);
      }
      assert.deepStrictEqual(statuses, [503, 418, 529, 200]);
    }),
  );

  it.live("keeps the script's pace between events", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: {
          answers: [{ content, head_delay_ms: 5, first_delay_ms: 5, delay_ms: 5, keep_alive: { every_ms: 2 } }],
        },
      });
      const socket = yield* dial(server.port);
      socket.write(post(chat));
      const text = yield* reading(socket, "\r\n0\r\n\r\n");
      assert.isAbove(text.match(/: keep-alive/g)?.length ?? 0, 8);
      const row = yield* server.ended(1);
      assert.isAtLeast((row.ended_ms ?? 0) - row.started_ms, 35);
    }),
  );

  it.live("plays recorded bytes as they are, from the script and from a file", () =>
    Effect.gen(function* () {
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "fault-"))),
        (path) => Effect.promise(() => rm(path, { recursive: true })),
      );
      const bytes = Buffer.concat([
        Buffer.from("data: one\r\n\r\ndata: two\r\n\r\ndata: thr"),
        Buffer.from([0xff, 0xfe]),
      ]);
      yield* Effect.promise(() => writeFile(join(directory, "a.sse"), bytes));
      const answers = [
        { raw_file: "a.sse", framing: "eof" as const },
        { raw_file: "a.sse", break: { kind: "fin" as const, at: "event" as const, n: 1 } },
        { raw: "data: ü\n\n", break: { kind: "fin" as const, at: "byte" as const, n: 7 } },
      ];
      const server = yield* FaultProvider.make({ script: { answers }, directory });
      const hashes = [bytes, Buffer.from("data: one\r\n\r\n"), Buffer.from("data: ü").subarray(0, 7)].map((sent) =>
        createHash("sha256").update(sent).digest("hex"),
      );
      for (const [index, hash] of hashes.entries()) {
        const socket = yield* dial(server.port);
        socket.write(post(chat));
        yield* ending(socket);
        assert.strictEqual((yield* server.ended(index + 1)).sent_hash, hash);
      }
    }),
  );

  it.live("reads chunked requests and requests that come in pieces", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers: [{ content }] } });
      const socket = yield* dial(server.port);
      const request = `POST ${chat} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n`;
      for (const byte of Buffer.from(request)) socket.write(Buffer.from([byte]));
      yield* reading(socket, "0\r\n\r\n");
      assert.deepInclude(yield* server.ended(1), {
        body_bytes: 5,
        body_hash: createHash("sha256").update("abcde").digest("hex"),
      });
    }),
  );

  it.live("refuses what is no request", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make();
      for (const bytes of [
        "\u0016\u0003\u0001",
        "hello\r\n\r\n",
        `GET /${"x".repeat(70_000)}`,
        "POST / HTTP/1.1\r\ncontent-length: -4\r\n\r\n",
      ]) {
        const socket = yield* dial(server.port);
        socket.write(bytes);
        assert.include(yield* reading(socket, "\r\n\r\n"), "HTTP/1.1 400");
      }
      assert.deepStrictEqual(
        (yield* server.until((rows) => (rows.every((row) => row.outcome !== "open") ? rows : undefined))).map(
          (row) => row.outcome,
        ),
        ["refused", "refused", "refused", "refused"],
      );
    }),
  );

  it.live("names an invalid script or port", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make();
      const taken = yield* Effect.flip(FaultProvider.make({ port: server.port }));
      assert.instanceOf(taken, FaultListenError);
      const none = yield* Effect.flip(FaultProvider.make({ port: 99_999 }));
      assert.strictEqual(none.message, "port: expected 0 to 65535, got 99999");
      const missing = yield* Effect.flip(FaultProvider.make({ script: { answers: [{ raw_file: "no/such.sse" }] } }));
      assert.include(missing.message, "answers[0].raw_file: ");
    }),
  );

  it.live("leaves no connection behind when its scope closes", () =>
    Effect.gen(function* () {
      const socket = yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* FaultProvider.make({
            script: { answers: [{ break: { kind: "stall", at: "after_head" } }] },
          });
          const open = yield* dialForLater(server.port);
          open.write(post(chat));
          yield* server.until((rows) => rows.find((row) => row.bytes_sent > 0));
          assert.strictEqual(yield* server.connections, 1);
          return open;
        }),
      );
      yield* ending(socket);
      assert.isTrue(socket.destroyed);
    }),
  );
});
