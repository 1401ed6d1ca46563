/**
 * Sends large bodies through a gateway: they are relayed and recovered like small ones, and let other requests have their turns.
 */
import { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { assert, describe, it, vi } from "@effect/vitest";
import { Effect } from "effect";
import { sliceBytes } from "../../../src/adapters/relay/form/JsonScan.ts";
import { outlineBytesMax, partsMax, wholeBytesMax } from "../../../src/gateway/body/BodyOutline.ts";
import { sentBytes } from "../../../src/gateway/upstream/SlicedBody.ts";
import { honest, serveModel } from "../../adapters/relay/seam/HonestModel.ts";
import { requests, targets } from "../../adapters/relay/seam/SeamCases.ts";
import { serverOf } from "../../Servers.ts";
import { front, paths, post, recovery, send } from "../GatewayCases.ts";
import { logging } from "../log/Logged.ts";

const done = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

/** A provider that breaks its first connections and then answers, and the requests that it got. */
const provider = (breaks: number) =>
  Effect.gen(function* () {
    const sent: Array<Buffer> = [];
    const url = yield* serverOf((request, response) => {
      const chunks: Array<Buffer> = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        sent.push(Buffer.concat(chunks));
        if (sent.length <= breaks) response.destroy();
        else response.writeHead(200, { "content-type": "text/event-stream" }).end(done);
      });
    });
    return { sent, url };
  });

/** A body of about this many bytes in an unusual but valid spelling. */
const odd = (bytes: number): Buffer => {
  const text = JSON.stringify('Say "é",\n\u0000\\ or 𝒳?');
  const message = `{ "content" : ${text}, "role":"user", "n":1.50e1, "role":"user" }`;
  const messages = Array.from({ length: Math.ceil(bytes / Buffer.byteLength(message)) }, () => message);
  return Buffer.from(`\n{"messages" : [${messages.join(" ,\t")}],"stream":true,"model":"m"}\r\n`);
};

const json = { "content-type": "application/json" };

describe("A large body", () => {
  for (const [how, headers, encode] of [
    ["with its length", json, (body: Buffer) => body],
    ["in chunks", { ...json, "transfer-encoding": "chunked" }, (body: Buffer) => body],
    ["compressed", { ...json, "content-encoding": "gzip" }, (body: Buffer) => gzipSync(body)],
  ] as const)
    it.live(`is relayed byte for byte, and again if its response breaks: ${how}`, () =>
      Effect.gen(function* () {
        const { sent, url: upstream } = yield* provider(1);
        const { gateway, url } = yield* front(upstream);
        const body = encode(odd(3_000_000));
        const got = yield* Effect.promise(() => send(`${url}${paths["openai-chat"]}`, { headers, body }));
        assert.deepStrictEqual([got.status, recovery(got, "attempts"), got.text], [200, "2", done]);
        assert.lengthOf(sent, 2);
        for (const one of sent) assert.isTrue(one.equals(body));
        assert.strictEqual(yield* gateway.keptBytes, 0);
      }),
    );

  it.live("leaves the others a turn after every slice", () =>
    Effect.gen(function* () {
      const { url: upstream } = yield* provider(0);
      const { url } = yield* front(upstream, { continueText: "auto", lingerMs: 1_000 });
      const turns = vi.spyOn(globalThis, "setImmediate");
      const during = Effect.fnUntraced(function* (body: Buffer) {
        const before = turns.mock.calls.length;
        const got = yield* Effect.promise(() => send(`${url}${paths["openai-chat"]}`, { headers: json, body }));
        assert.strictEqual(got.status, 200);
        return turns.mock.calls.length - before;
      });
      const small = yield* during(odd(1_000));
      const slices = 50;
      const large = yield* during(odd(slices * sliceBytes));
      turns.mockRestore();
      // Once for the outline, and once for the digest that identifies a repeat.
      assert.isAtLeast(large - small, 2 * (slices - 1));
    }),
  );

  it.live("is written to its provider in slices, with its length, whether it is recovered or not", () =>
    Effect.gen(function* () {
      const lengths: Array<string | undefined> = [];
      const upstream = yield* serverOf((request, response) => {
        lengths.push(request.headers["content-length"] ?? request.headers["transfer-encoding"]);
        request.resume().on("end", () => response.writeHead(200, { "content-type": "text/event-stream" }).end(done));
      });
      const { url } = yield* front(upstream);
      const written: Array<number> = [];
      const plain = Socket.prototype.write;
      const writes = vi.spyOn(Socket.prototype, "write").mockImplementation(function (this: Socket, ...args) {
        const [bytes] = args;
        if (`http://127.0.0.1:${this.remotePort}` === upstream && bytes instanceof Uint8Array)
          written.push(bytes.byteLength);
        return Reflect.apply(plain, this, args);
      });
      const body = odd(3_000_000);
      for (const sent of [body, Buffer.concat([body, Buffer.from("x")])]) {
        written.length = 0;
        const got = yield* Effect.promise(() => send(`${url}${paths["openai-chat"]}`, { headers: json, body: sent }));
        assert.strictEqual(got.text, done);
        assert.isAtLeast(written.length, 3_000_000 / sentBytes);
        assert.isAtMost(Math.max(...written), sentBytes);
        assert.strictEqual(lengths.pop(), String(sent.byteLength));
      }
      writes.mockRestore();
    }),
  );

  it.live("is continued if its text breaks, except one with too many parts to be parsed whole", () =>
    Effect.gen(function* () {
      const said = {
        text: "The lock is taken in open() and given back in close(). A second caller waits for it, and goes on.",
      };
      const plain = requests["openai-chat"];
      const own = JSON.stringify(plain).match(/[[{]/g)?.length ?? 0;
      const asked = Effect.fnUntraced(function* (parts: number) {
        const model = yield* serveModel(honest("openai-chat", said, [6]));
        const { url } = yield* front(model.url, { continueText: "auto" });
        const body = JSON.stringify({ ...plain, input: Array.from({ length: parts - own - 1 }, () => ({})) });
        assert.isAbove(body.length, wholeBytesMax);
        yield* Effect.promise(() => send(`${url}${targets["openai-chat"]}`, { headers: json, body }));
        return model.asked.length;
      });
      assert.deepStrictEqual([yield* asked(partsMax), yield* asked(partsMax + 1)], [2, 1]);
    }),
  );

  it.live("passes through with a log line if more stands beside its conversation than is read", () =>
    Effect.gen(function* () {
      const { sent, url: upstream } = yield* provider(0);
      const { accessed, lines, url } = yield* logging(upstream);
      const tools = Array.from({ length: 2 + outlineBytesMax / 1_000 }, () => ({ name: "secret".repeat(200) }));
      const body = Buffer.from(JSON.stringify({ model: "m", messages: [], stream: true, tools }));
      const got = yield* Effect.promise(() => send(`${url}${paths["openai-chat"]}`, { headers: json, body }));
      assert.deepStrictEqual([got.status, recovery(got, "run"), got.text], [200, undefined, done]);
      assert.isTrue(sent[0]?.equals(body));
      const [line] = yield* accessed(1);
      assert.deepInclude<object | undefined>(line, { status: 200, outcome: "completed", unread: true });
      const told = lines.filter(({ level }) => level === "warn");
      assert.lengthOf(told, 1);
      assert.notInclude(JSON.stringify(told), "secret");
    }),
  );

  it.live("that is no JSON passes through, and one at the limit of what is parsed whole does not", () =>
    Effect.gen(function* () {
      const { url: upstream } = yield* provider(0);
      const { url } = yield* front(upstream);
      const ofLength = (bytes: number) => odd(9).toString().padEnd(bytes, " ");
      for (const bytes of [wholeBytesMax - 1, wholeBytesMax, wholeBytesMax + 1]) {
        const body = ofLength(bytes);
        assert.isDefined(recovery(yield* post(url, "openai-chat", { body }), "run"));
        assert.isUndefined(recovery(yield* post(url, "openai-chat", { body: `${body.slice(0, -1)}x` }), "run"));
      }
    }),
  );
});
