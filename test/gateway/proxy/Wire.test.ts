import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Json from "../../../src/domain/Json.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import { bytesOf, folder, recordings } from "../../Recordings.ts";
import { serverOf } from "../../Servers.ts";
import { bodies, front, post, protocols, send } from "../GatewayCases.ts";

const chat = JSON.stringify(bodies["openai-chat"]);
const event = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;
const whole = `${event("a")}event: x-unknown\ndata: {"of":"others"}\n\n: a comment\n\n${event("b", "stop")}data: [DONE]\n\n`;

/** A request as the server saw it. */
interface Seen {
  readonly url: string;
  readonly rawHeaders: ReadonlyArray<string>;
  readonly body: Buffer;
}

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
};

/** A server that records its requests and answers with a flat list of headers and a body. */
const answering = (flat: ReadonlyArray<string>, body: string | Buffer, statusText = "OK") => {
  const seen: Array<Seen> = [];
  const url = serverOf((request, response) => {
    void bodyOf(request).then((all) => {
      seen.push({ url: request.url ?? "", rawHeaders: request.rawHeaders, body: all });
      response.writeHead(200, statusText, [...flat]);
      response.end(Buffer.from(body));
    });
  });
  return Effect.map(url, (at) => ({ at, seen }));
};

const own = ["host", "127.0.0.1"];

const role = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] })}\n\n`;

/** Turns of the event loop in which everything in flight between this process's sockets arrives. */
const turns = async (count = 30): Promise<void> => {
  for (let left = count; left > 0; left -= 1) await new Promise((next) => setImmediate(next));
};

/** The chunks that a client reads of a response, each at most the bytes of one write. */
const writesOf = (url: string, body: string, came?: () => void): Promise<ReadonlyArray<string>> =>
  new Promise((resolve, reject) => {
    const seen: Array<string> = [];
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", reject).on("data", (bytes: Buffer) => {
      seen.push(bytes.toString());
      came?.();
      if (bytes.toString().endsWith("\r\n0\r\n\r\n")) resolve(seen);
      if (bytes.toString().endsWith("\r\n0\r\n\r\n")) socket.destroy();
    });
    const head = ["POST /v1/chat/completions HTTP/1.1", "Host: localhost", `Content-Length: ${body.length}`];
    socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  });

describe("Gateway, the bytes that it leaves unchanged", () => {
  it.live("forwards a request with its query, its body, and its headers in their spelling and order", () =>
    Effect.gen(function* () {
      const { at, seen } = yield* answering(["Content-Type", "text/event-stream"], whole);
      const { url } = yield* front(at);
      const headers = [
        ...own,
        ...["X-B", "1", "authorization", "Bearer key", "X-b", "2", "Accept-Encoding", "gzip, br"],
        ...["Connection", "keep-alive, X-Hop", "X-Hop", "h", "Keep-Alive", "timeout=5", "TE", "trailers"],
        ...["Content-Length", String(Buffer.byteLength(chat)), "x-stainless-retry-count", "0", "X-Recovery-Token", "t"],
      ];
      const path = "/v1/chat/completions?api-version=2026-01-01&x=%2Fy";
      yield* Effect.promise(() => send(`${url}${path}`, { headers, body: chat }));
      const [request] = seen;
      assert.strictEqual(request?.url, path);
      assert.strictEqual(request?.body.toString(), chat);
      const passed = ["X-B", "1", "authorization", "Bearer key", "X-b", "2", "x-stainless-retry-count", "0"];
      const sent = request?.rawHeaders.join("\n") ?? "";
      assert.include(sent, [...passed, "accept-encoding", "identity"].join("\n"));
      assert.notMatch(sent, /x-hop|keep-alive: |^te$|x-recovery|gzip/im);
      assert.include(sent.toLowerCase(), `host\n${at.slice("http://".length)}`);
    }),
  );

  it.live(
    "returns an answer with its status text, its headers in their spelling, repeated ones too, and its bytes",
    () =>
      Effect.gen(function* () {
        const flat = [
          ...["Content-Type", "text/event-stream", "X-Request-ID", "r1", "Link", "<a>; rel=next", "link", "<b>"],
          ...["X-RateLimit-Remaining", "7", "Date", "Sun, 22 Nov 2026 00:00:00 GMT", "X-Byte", "\u00e9"],
        ];
        const { at } = yield* answering(flat, whole, "Fine By Me");
        const { url } = yield* front(at);
        for (const path of ["/v1/chat/completions", "/v1/unknown/path"]) {
          const got = yield* Effect.promise(() => send(`${url}${path}`, { body: chat }));
          assert.strictEqual(got.statusText, "Fine By Me");
          assert.strictEqual(got.text, whole);
          const direct = yield* Effect.promise(() => send(`${at}${path}`, { body: chat }));
          const own = direct.rawHeaders.slice(0, direct.rawHeaders.indexOf("Connection"));
          assert.strictEqual(own.length, flat.length);
          assert.deepStrictEqual(got.rawHeaders.slice(0, own.length), own);
        }
      }),
  );

  it.live(
    "decodes an answer that is compressed although a plain one was requested, and passes others on unchanged",
    () =>
      Effect.gen(function* () {
        const zipped = gzipSync(whole);
        const { at } = yield* answering(["Content-Type", "text/event-stream", "Content-Encoding", "gzip"], zipped);
        const { url } = yield* front(at);
        const relayed = yield* Effect.promise(() => send(`${url}/v1/chat/completions`, { body: chat }));
        assert.strictEqual(relayed.text, whole);
        assert.notProperty(relayed.headers, "content-encoding");
        const passed = yield* Effect.promise(() => send(`${url}/v1/files`, { body: chat }));
        assert.strictEqual(passed.headers["content-encoding"], "gzip");
        assert.isTrue(passed.body.equals(zipped));
      }),
  );

  it.live("asks once for an answer in an encoding that it cannot read, and passes a refusal in one on unchanged", () =>
    Effect.gen(function* () {
      for (const [encoding, status] of [
        ["gzip, br", 200],
        ["aws-chunked", 400],
      ] as const) {
        const seen: Array<string> = [];
        const at = yield* serverOf((request, response) => {
          seen.push(request.url ?? "");
          response.writeHead(status, ["Content-Type", "application/json", "Content-Encoding", encoding]).end("{}");
        });
        const { url } = yield* front(at);
        const got = yield* Effect.promise(() => send(`${url}/v1/chat/completions`, { body: chat }));
        assert.strictEqual(got.status, status === 200 ? 400 : status);
        assert.strictEqual(got.headers["content-encoding"], status === 200 ? undefined : encoding);
        if (status !== 200) assert.strictEqual(got.text, "{}");
        assert.strictEqual(seen.length, 1, encoding);
      }
    }),
  );

  it.live("says by its own headers what it did, and removes an upstream's headers of the same names", () =>
    Effect.gen(function* () {
      const spoken = [
        "Content-Type",
        "text/event-stream",
        "X-Recovery-Run",
        "gw_upstream",
        "x-recovery-refused",
        "token",
      ];
      const { at } = yield* answering(spoken, whole);
      const { url } = yield* front(at);
      for (const path of ["/v1/chat/completions", "/v1/files"]) {
        const got = yield* Effect.promise(() => send(`${url}${path}`, { body: chat }));
        assert.notInclude(got.rawHeaders.join("\n"), "gw_upstream");
        assert.notProperty(got.headers, "x-recovery-refused");
      }
    }),
  );

  it.live("treats a truncated compressed answer as cut", () =>
    Effect.gen(function* () {
      const zipped = gzipSync(whole);
      const cut = zipped.subarray(0, zipped.length / 2);
      const { at, seen } = yield* answering(["Content-Type", "text/event-stream", "Content-Encoding", "gzip"], cut);
      const { url } = yield* front(at, { reveal: "on_complete" });
      const got = yield* Effect.promise(() => send(`${url}/v1/chat/completions`, { body: chat }));
      assert.strictEqual(got.status, 400);
      assert.notInclude(got.text, "choices");
      assert.isAbove(seen.length, 1);
    }),
  );

  it.live("recognises a request that its client compressed, and forwards it unchanged", () =>
    Effect.gen(function* () {
      const { at, seen } = yield* answering(["Content-Type", "text/event-stream"], whole);
      const { runs, url } = yield* front(at);
      const body = zstdCompressSync(chat);
      const headers = { "content-type": "application/json", "content-encoding": "zstd" };
      const got = yield* Effect.promise(() => send(`${url}/v1/chat/completions`, { headers, body }));
      assert.strictEqual(got.text, whole);
      assert.isTrue(seen[0]?.body.equals(body));
      assert.strictEqual((yield* runs)[0]?.provider.model, "m");
    }),
  );

  it.live("passes requests without a model through, with any method and unchanged", () =>
    Effect.gen(function* () {
      const { at, seen } = yield* answering(["Content-Type", "application/json", "Content-Length", "2"], "{}");
      const { runs, url } = yield* front(at);
      const asked = [
        { method: "GET", path: "/v1/files?limit=2" },
        { method: "DELETE", path: "/v1/files/1" },
        { method: "POST", path: "/v1/moderations", body: '{"input":"x"}' },
        { method: "PUT", path: "/anything/else", body: "no json" },
        { method: "POST", path: "/v1/chat/completions", body: "no json" },
        { method: "POST", path: "/v1/files", body: Buffer.alloc(300_000, 7) },
      ];
      for (const { body, method, path } of asked) {
        const got = yield* Effect.promise(() =>
          send(`${url}${path}`, { method, ...(body === undefined ? {} : { body }) }),
        );
        assert.strictEqual(got.text, "{}", path);
        assert.strictEqual(got.headers["content-length"], "2");
        assert.isTrue(seen.at(-1)?.body.equals(Buffer.from(body ?? "")), path);
      }
      assert.deepStrictEqual(
        seen.map((request) => request.url),
        asked.map(({ path }) => (path.startsWith("/v1") ? path : `/v1${path}`)),
      );
      const head = yield* Effect.promise(() => send(`${url}/v1/models`, { method: "HEAD" }));
      assert.strictEqual(head.headers["content-length"], "2");
      assert.lengthOf(yield* runs, 0);
    }),
  );

  it.live("breaks an answer that passes through where it broke", () =>
    Effect.gen(function* () {
      const at = yield* serverOf((_, response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.write("{", () => response.destroy());
      });
      const { url } = yield* front(at);
      const got = yield* Effect.promise(() => send(`${url}/v1/files`));
      assert.isTrue(got.broken);
      const gone = yield* front("http://127.0.0.1:1");
      assert.strictEqual((yield* Effect.promise(() => send(`${gone.url}/v1/files`))).status, 502);
    }),
  );

  for (const lingerMs of [0, 60_000]) {
    it.live(
      `sends the head with the first content, and the end with the last, in one write each, linger ${lingerMs}`,
      () =>
        Effect.gen(function* () {
          let came = (): void => undefined;
          const read = new Promise<void>((resolve) => {
            came = resolve;
          });
          const at = yield* serverOf((request, response) => {
            const play = async () => {
              await bodyOf(request);
              response.writeHead(200, { "content-type": "text/event-stream" }).write(role);
              // The gateway has the head, and withholds it, because no content has come that could be shown.
              await turns();
              response.write(event("a"));
              await read;
              response.end(`${event("b", "stop")}data: [DONE]\n\n`);
            };
            void play();
          });
          const { url } = yield* front(at, { lingerMs, continueText: "auto" });
          const writes = yield* Effect.promise(() => writesOf(url, chat, came));
          assert.lengthOf(writes, 2, "more writes than two");
          assert.match(writes[0] ?? "", /^HTTP\/1\.1 200 OK\r\n.*"role".*"a"/s);
          assert.match(writes[1] ?? "", /"b".*\[DONE\].*\r\n0\r\n\r\n$/s);
        }),
    );

    it.live(`sends a response that comes in one piece in one write, linger ${lingerMs}`, () =>
      Effect.gen(function* () {
        const { at } = yield* answering(["Content-Type", "text/event-stream"], role + whole);
        const { url } = yield* front(at, { lingerMs, continueText: "auto" });
        const [first = "", ...others] = yield* Effect.promise(() => writesOf(url, chat));
        assert.lengthOf(others, 0);
        assert.match(first, /^HTTP\/1\.1 200 OK\r\n.*\r\n0\r\n\r\n$/s);
      }),
    );
  }

  it.live("resets a client that otherwise cannot distinguish a break from an end (HTTP/1.0)", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ content: [{ text: 3 }], break: { kind: "end", at: "terminal" } }] },
      });
      const { gateway } = yield* front(server.url);
      const error = yield* Effect.promise(
        () =>
          new Promise<string>((resolve) => {
            const socket = connect(gateway.port, "127.0.0.1");
            socket.on("error", (failed: NodeJS.ErrnoException) => resolve(failed.code ?? ""));
            socket.on("end", () => resolve("a clean end"));
            socket.resume();
            const head = `POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nContent-Length: ${chat.length}\r\n\r\n`;
            socket.write(head + chat);
          }),
      );
      assert.strictEqual(error, "ECONNRESET");
    }),
  );

  if (recordings.length === 0) it.skip("no recordings are present", () => undefined);
  for (const reveal of ["live", "on_complete"] as const) {
    for (const protocol of protocols) {
      const recorded = recordings.filter((recording) => recording.protocol === protocol);
      if (recorded.length === 0) continue;
      const play = Effect.gen(function* () {
        const scripts = Object.fromEntries(
          recorded.map(({ file }, index) => [
            String(index),
            [{ protocol, raw_file: file, write_bytes: [7, 100, 5000][index % 3] ?? 100 }],
          ]),
        );
        const server = yield* FaultProvider.make({ script: { scripts }, directory: folder });
        const budget = { max_auto_retries: 0, max_not_processed: 0 };
        const { url } = yield* front(server.url, { reveal, budget });
        for (const [index, recording] of recorded.entries()) {
          const { file, row } = recording;
          const bytes = Buffer.from(bytesOf(recording));
          const got = yield* post(url, protocol, { headers: { "x-script": String(index) } });
          // A recording that failed is followed by an event of the gateway, which replaces its error event, and then the body breaks.
          const failed = Json.list(row.features).includes("error-event");
          const same = [...got.body.entries()].find(([at, byte]) => byte !== bytes[at])?.[0] ?? got.body.length;
          if (got.broken) {
            assert.isTrue(failed, file);
            assert.include(got.body.subarray(same).toString(), "stream-recovery gateway", file);
            const left = bytes.subarray(same).toString();
            assert.isTrue(left === "" || left.includes("error"), file);
          } else assert.isTrue(bytes.equals(got.body), file);
        }
      });
      const name = `hands ${recorded.length} recordings of ${protocol} on byte for byte, ${reveal}`;
      it.live(name, () => play);
    }
  }
});
