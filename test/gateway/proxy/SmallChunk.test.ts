/**
 * The gateway's own chunk framing equals Node's, for any sizes, in any turns, and for clients that read at any speed.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Schema } from "effect";
import { smallBytesMax, wroteChunk } from "../../../src/gateway/proxy/SmallChunk.ts";
import type { Bytes } from "../../../src/gateway/upstream/ContentDecoding.ts";

type Respond = (response: ServerResponse) => Promise<void>;

/** The bytes that a client reads until the server closes its connection. */
const read = (
  respond: Respond,
  request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
  reads: (socket: Socket) => void = () => undefined,
): Effect.Effect<string> =>
  Effect.promise(async () => {
    const responded: Array<Promise<void>> = [];
    const server = createServer((_, response) => {
      response.sendDate = false;
      responded.push(
        respond(response).catch((error: unknown) => {
          response.destroy();
          throw error;
        }),
      );
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const all: Array<Buffer> = [];
    socket.on("data", (bytes) => all.push(bytes));
    reads(socket);
    socket.write(request);
    await once(socket, "close");
    await Promise.all(responded);
    server.close();
    return Buffer.concat(all).toString("latin1");
  });

const bytesOf = (size: number, fill = "x"): Bytes => new Uint8Array(size).fill(fill.charCodeAt(0));

/** The body of a response, and true if it has all of its chunks. */
const unframed = (response: string): { readonly body: string; readonly isWhole: boolean } => {
  let at = response.indexOf("\r\n\r\n") + 4;
  let body = "";
  for (;;) {
    const line = response.indexOf("\r\n", at);
    const size = Number.parseInt(response.slice(at, line), 16);
    if (line < 0 || Number.isNaN(size)) return { body, isWhole: false };
    if (size === 0) return { body, isWhole: response.slice(line) === "\r\n\r\n" };
    const chunk = response.slice(line + 2, line + 2 + size);
    assert.strictEqual(response.slice(line + 2 + size, line + 4 + size), "\r\n");
    body += chunk;
    at = line + 4 + size;
  }
};

/** Writes like `ClientResponse`, and waits for a drain if needed. Returns true if the chunk was framed here. */
const written = async (response: ServerResponse, parts: ReadonlyArray<Bytes>): Promise<boolean> => {
  const framed = wroteChunk(response, parts);
  if (!framed) for (const part of parts) response.write(part);
  if (response.writableNeedDrain) await once(response, "drain");
  return framed;
};

const sizes = Schema.Literals([0, 1, 15, 16, 200, 4095, smallBytesMax - 1, smallBytesMax, smallBytesMax + 1, 100_000]);

/** More bytes than the system accepts for a client that does not read. */
const readNothingMax = 64 * 1024 * 1024;

/** Writes of some parts, each with or without a turn after it. */
const writes = Schema.Array(
  Schema.Struct({ parts: Schema.Array(sizes).check(Schema.isMaxLength(3)), turns: Schema.Boolean }),
).check(Schema.isMaxLength(30));

describe("a small chunk", () => {
  it.live.prop(
    "is read as it was written, in its place, whatever is written around it",
    [writes, Schema.Boolean],
    ([given, isSlow]) =>
      Effect.gen(function* () {
        let expected = "";
        const respond: Respond = async (response) => {
          response.writeHead(200);
          response.write("");
          for (const [index, { parts, turns }] of given.entries()) {
            const bytes = parts.map((size) => bytesOf(size, String.fromCharCode(97 + (index % 26))));
            for (const part of bytes) expected += Buffer.from(part).toString("latin1");
            await written(response, bytes);
            if (turns) await turn();
          }
          response.end();
        };
        const slowly = (socket: Socket) => {
          socket.pause();
          const reads = (): void => {
            if (socket.destroyed) return;
            socket.resume();
            setImmediate(() => {
              if (!socket.readableEnded) socket.pause();
              setImmediate(reads);
            });
          };
          reads();
        };
        const { body, isWhole } = unframed(yield* read(respond, undefined, isSlow ? slowly : undefined));
        assert.isTrue(isWhole);
        assert.strictEqual(body.length, expected.length);
        assert.isTrue(body === expected);
      }),
  );

  it.live("is written after the head, in a separate turn, if it is small", () =>
    Effect.gen(function* () {
      const framed: Array<boolean> = [];
      const response = yield* read(async (out) => {
        out.writeHead(200);
        out.write("");
        // Head and first content leave together.
        framed.push(wroteChunk(out, [bytesOf(2, "a")]));
        out.write("aa");
        await turn();
        framed.push(wroteChunk(out, [bytesOf(smallBytesMax), bytesOf(1)]));
        framed.push(wroteChunk(out, [bytesOf(2, "b"), bytesOf(3, "c")]));
        out.end("d");
      });
      assert.deepStrictEqual(framed, [false, false, true]);
      assert.match(response, /\r\n\r\n2\r\naa\r\n5\r\nbbccc\r\n1\r\nd\r\n0\r\n\r\n$/s);
    }),
  );

  it.live("is not framed in a response with a length, in one of HTTP/1.0, and in one to HEAD", () =>
    Effect.gen(function* () {
      const plain =
        (headers: Record<string, string>): Respond =>
        async (out) => {
          out.writeHead(200, headers);
          out.write("");
          await turn();
          assert.isFalse(wroteChunk(out, [bytesOf(2, "a")]));
          out.end("aa");
        };
      assert.match(yield* read(plain({ "content-length": "2" })), /\r\n\r\naa$/);
      assert.match(yield* read(plain({}), "GET / HTTP/1.0\r\n\r\n"), /\r\n\r\naa$/);
      const head = "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
      assert.match(yield* read(plain({}), head), /\r\n\r\n$/);
    }),
  );

  it.live("waits for its turn after the response to an earlier request of the connection", () =>
    Effect.gen(function* () {
      let asked = 0;
      const first = Promise.withResolvers<void>();
      const both = yield* read(async (out) => {
        asked += 1;
        const isSecond = asked === 2;
        out.writeHead(200);
        out.write("");
        await turn();
        // The second one has no socket yet.
        assert.strictEqual(wroteChunk(out, [bytesOf(1, isSecond ? "2" : "1")]), !isSecond);
        if (isSecond) {
          out.end("2");
          first.resolve();
        } else {
          await first.promise;
          assert.isTrue(wroteChunk(out, [bytesOf(1, "1")]));
          out.end();
        }
      }, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      assert.match(both, /^HTTP.+\r\n\r\n1\r\n1\r\n1\r\n1\r\n0\r\n\r\nHTTP.+\r\n\r\n1\r\n2\r\n0\r\n\r\n$/s);
    }),
  );

  it.live(
    "leaves it to Node to ask for a drain if the client reads nothing, and is framed here once it reads again",
    () =>
      Effect.gen(function* () {
        let expected = 0;
        let reads = (): void => undefined;
        const response = yield* read(
          async (out) => {
            out.writeHead(200);
            out.write("");
            await turn();
            assert.isBelow(smallBytesMax + 100, out.socket?.writableHighWaterMark ?? 0);
            while (!out.writableNeedDrain && expected < readNothingMax) {
              const part = bytesOf(smallBytesMax - (expected % 7));
              if (!wroteChunk(out, [part])) out.write(part);
              expected += part.byteLength;
              await turn();
            }
            assert.isBelow(expected, readNothingMax);
            reads();
            out.end();
          },
          undefined,
          (socket) => {
            socket.pause();
            reads = () => void socket.resume();
          },
        );
        const { body, isWhole } = unframed(response);
        assert.isTrue(isWhole);
        assert.strictEqual(body.length, expected);
      }),
  );

  it.live("is not framed after the end, nor if the client has left", () =>
    Effect.gen(function* () {
      const ended = yield* read(async (out) => {
        out.writeHead(200);
        out.end("a");
        assert.isFalse(wroteChunk(out, [bytesOf(2)]));
        await turn();
        assert.isFalse(wroteChunk(out, [bytesOf(2)]));
      });
      assert.match(ended, /\r\n\r\n1\r\na\r\n0\r\n\r\n$/);
      yield* read(async (out) => {
        out.writeHead(200);
        out.write("");
        await turn();
        out.socket?.destroy();
        assert.isFalse(wroteChunk(out, [bytesOf(1)]));
      });
    }),
  );
});
