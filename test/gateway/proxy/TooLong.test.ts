/**
 * Refuses bodies that are too long while their clients still send them: each client reads the reason.
 */
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { request as undiciRequest } from "@effect/platform-node/Undici";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { serverOf } from "../../Servers.ts";
import { front, fronted, post, recovery, send } from "../GatewayCases.ts";

const mebibyte = 1024 * 1024;
const upload = 100 * mebibyte;
const piece = Buffer.alloc(mebibyte, "a");

function* pieces(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= piece.byteLength) yield piece.subarray(0, Math.min(left, piece.byteLength));
}

const limits = { maxBodyBytes: mebibyte, maxPassedBytes: mebibyte };
const paths = ["/v1/chat/completions", "/v1/files"] as const;

interface Sent {
  readonly head: string;
  readonly body?: Iterable<Buffer>;
  /** True to read nothing before everything was sent. */
  readonly readsLate?: true;
  /** True to send the body only after `100 Continue`. */
  readonly waits?: true;
}

/** A client without a library: the bytes that it read until the connection closed, including a `100 Continue`. */
const raw = (port: number, { body = [], head, readsLate, waits }: Sent): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = [];
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const source = body[Symbol.iterator]();
    const more = (): void => {
      for (;;) {
        if (socket.destroyed) return;
        const next = source.next();
        if (next.done === true) return void (readsLate === true && socket.resume());
        if (!socket.write(next.value)) return void socket.once("drain", more);
      }
    };
    if (readsLate === true) socket.pause();
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if (waits === true && /^HTTP\/1\.1 100 /.test(chunk.toString())) more();
    });
    // The gateway has ended its response; a polite client then stops sending.
    socket.on("end", () => void socket.destroy());
    socket.on("close", () => resume(Effect.succeed(Buffer.concat(chunks).toString())));
    socket.write(head);
    if (waits !== true) more();
  });

const chunked = function* (bytes: number): Generator<Buffer> {
  for (const part of pieces(bytes)) {
    yield Buffer.from(`${part.byteLength.toString(16)}\r\n`);
    yield part;
    yield Buffer.from("\r\n");
  }
  yield Buffer.from("0\r\n\r\n");
};

const headOf = (path: string, version: "1.0" | "1.1", ...more: ReadonlyArray<string>): string =>
  [`POST ${path} HTTP/${version}`, "Host: localhost", "Content-Type: application/json", ...more, "", ""].join("\r\n");

const refusedBody =
  /^HTTP\/1\.1 413 [\s\S]*x-recovery-refused: body[\s\S]*"message":"stream-recovery gateway: The request's body/;

describe.concurrent("a body that is too long, while its client still sends it", () => {
  for (const path of paths) {
    for (const version of ["1.1", "1.0"] as const) {
      it.live(`is refused so that a bare socket reads the reason: ${path}, HTTP/${version}, with a length`, () =>
        Effect.gen(function* () {
          const { gateway, server } = yield* fronted({}, { limits });
          const head = headOf(path, version, `Content-Length: ${upload}`);
          assert.match(yield* raw(gateway.port, { head, body: pieces(upload) }), refusedBody);
          assert.lengthOf(yield* server.log, 0);
          assert.strictEqual(yield* gateway.keptBytes, 0);
        }),
      );
    }

    it.live(`is refused so that a socket that reads nothing before it has sent all reads it: ${path}`, () =>
      Effect.gen(function* () {
        const { gateway } = yield* fronted({}, { limits });
        const head = headOf(path, "1.1", "Transfer-Encoding: chunked");
        assert.match(yield* raw(gateway.port, { head, body: chunked(upload), readsLate: true }), refusedBody);
      }),
    );

    it.live(`is refused so that fetch, undici and node:http read the reason: ${path}`, () =>
      Effect.gen(function* () {
        const { url } = yield* fronted({}, { limits });
        const fetched = yield* Effect.promise(() =>
          fetch(`${url}${path}`, {
            method: "POST",
            body: Readable.toWeb(Readable.from(pieces(upload))) as ReadableStream,
            duplex: "half",
          } as RequestInit),
        );
        assert.strictEqual(`${fetched.status} ${fetched.headers.get("x-recovery-refused")}`, "413 body");
        assert.include(yield* Effect.promise(() => fetched.text()), "longer than the gateway accepts");
        const got = yield* Effect.promise(() =>
          undiciRequest(`${url}${path}`, { method: "POST", body: Readable.from(pieces(upload)) }),
        );
        assert.strictEqual(got.statusCode, 413);
        assert.include(yield* Effect.promise(() => got.body.text()), "longer than the gateway accepts");
        assert.strictEqual(yield* nodeClient(`${url}${path}`), 413);
      }),
    );
  }

  it.live("is refused by its length before it is requested, and requested if it fits", () =>
    Effect.gen(function* () {
      const { gateway } = yield* fronted({}, { limits });
      const [path] = paths;
      const expect = "Expect: 100-continue";
      const long = yield* raw(gateway.port, {
        head: headOf(path, "1.1", expect, `Content-Length: ${upload}`),
        waits: true,
      });
      assert.match(long, refusedBody);
      const body = Buffer.from(JSON.stringify({ model: "m", messages: [], stream: true }));
      const head = headOf(path, "1.1", expect, `Content-Length: ${body.byteLength}`, "Connection: close");
      assert.match(
        yield* raw(gateway.port, { head, body: [body], waits: true }),
        /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /,
      );
      const growing = headOf(path, "1.1", expect, "Transfer-Encoding: chunked");
      const grown = yield* raw(gateway.port, { head: growing, body: chunked(upload), waits: true });
      assert.match(grown, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 413 /);
    }),
  );

  it.live("is refused by its upstream, and its client reads that, too, and can reuse its connection", () =>
    Effect.gen(function* () {
      const at = yield* serverOf((request, response) => {
        response.writeHead(401, { "content-type": "application/json" }).end('{"error":"no"}');
        request.resume();
      });
      const { gateway } = yield* front(at);
      const head = headOf("/v1/files", "1.1", `Content-Length: ${20 * mebibyte}`);
      const body = [
        ...pieces(20 * mebibyte),
        Buffer.from(headOf("/v1/files", "1.1", "Content-Length: 0", "Connection: close")),
      ];
      const said = yield* raw(gateway.port, { head, body });
      assert.lengthOf(said.match(/HTTP\/1\.1 401 /g) ?? [], 2);
    }),
  );
});

/** Node's plain client, which writes while it reads. */
const nodeClient = (url: string): Effect.Effect<number | undefined> =>
  Effect.callback((resume) => {
    const request = httpRequest(url, { method: "POST", agent: false }, (response) => {
      response.resume();
      response.on("end", () => resume(Effect.succeed(response.statusCode)));
    });
    request.on("error", () => undefined);
    Readable.from(pieces(upload)).pipe(request);
  });

describe.concurrent("a compressed body", () => {
  const plain = Buffer.from(`{"model":"m","stream":true,"messages":["${"a".repeat(8 * mebibyte)}"]}`);
  const compressions = {
    gzip: gzipSync,
    br: brotliCompressSync,
    deflate: deflateSync,
    zstd: zstdCompressSync,
  } as const;

  for (const [encoding, compress] of Object.entries(compressions)) {
    it.live(`counts as what it is decoded to: ${encoding}`, () =>
      Effect.gen(function* () {
        const headers = { "content-type": "application/json", "content-encoding": encoding };
        const { gateway, server, url } = yield* fronted({}, { limits: { maxBodyBytes: 4 * mebibyte } });
        const body = compress(plain);
        const long = yield* post(url, "openai-chat", { body, headers });
        assert.strictEqual(`${long.status} ${recovery(long, "refused")}`, "413 body");
        assert.lengthOf(yield* server.log, 0);
        const fits = yield* post(url, "openai-chat", {
          body: compress(Buffer.from('{"model":"m","stream":true,"messages":[]}')),
          headers,
        });
        assert.strictEqual(fits.status, 200);
        assert.isDefined(recovery(fits, "run"));
        assert.strictEqual(yield* gateway.keptBytes, 0);
      }),
    );
  }

  it.live("counts with all others while it is decoded, and no longer", () =>
    Effect.gen(function* () {
      const headers = { "content-type": "application/json", "content-encoding": "gzip" };
      const body = gzipSync(plain);
      const { gateway, server, url } = yield* fronted(
        { answers: [{ break: { kind: "stall", at: "before_head" } }] },
        { limits: { maxBodiesBytes: plain.byteLength + 2 * body.byteLength } },
      );
      yield* Effect.forkScoped(Effect.ignoreCause(post(url, "openai-chat", { body, headers })));
      yield* server.until((rows) => rows[0]);
      // The first one is still served: its decoded body is no longer held, and the bytes it sent are.
      assert.strictEqual(yield* gateway.keptBytes, body.byteLength);
      yield* Effect.forkScoped(Effect.ignoreCause(post(url, "openai-chat", { body, headers })));
      yield* server.until((rows) => rows[1]);
      const third = yield* post(url, "openai-chat", { body, headers });
      assert.strictEqual(`${third.status} ${recovery(third, "refused")}`, "503 busy");
    }),
  );

  it.live("passes through unchanged if it is not in its declared encoding", () =>
    Effect.gen(function* () {
      const bodies: Array<string> = [];
      const at = yield* serverOf((request, response) => {
        request.on("data", (chunk: Buffer) => bodies.push(chunk.toString()));
        request.on("end", () => response.end("{}"));
      });
      const { url } = yield* front(at);
      const headers = { "content-type": "application/json", "content-encoding": "gzip" };
      const got = yield* Effect.promise(() => send(`${url}/v1/chat/completions`, { body: "no gzip", headers }));
      assert.deepStrictEqual([got.status, bodies.join("")], [200, "no gzip"]);
    }),
  );
});
