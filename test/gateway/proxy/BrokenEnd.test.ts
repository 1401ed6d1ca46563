import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect, type Socket } from "node:net";
import { connect as tlsConnect } from "node:tls";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { Access } from "../../../src/gateway/log/AccessRecord.ts";
import { ClientResponse } from "../../../src/gateway/proxy/ClientResponse.ts";
import { keyOf, linesOf } from "../../../src/gateway/proxy/KernelSockets.ts";
import { turns } from "../../client/Attempt.ts";
import { key, localhost } from "../../failure/provoked/Certificates.ts";
import { listening, serverOf } from "../../Servers.ts";
import { front, post } from "../GatewayCases.ts";

/** More bytes than both sockets of a local connection can buffer. */
const many = 24 * 1024 * 1024;

/** Fewer bytes than the system accepts on one connection, and more than its client's system buffers unread. */
const few = 1024 * 1024;

/** The end of a connection for its client. */
interface Read {
  readonly bytes: number;
  readonly text: string;
  readonly end: string;
}

/** Reads a connection to its end, and keeps only the last bytes as text. */
const readAll = (socket: Socket, kept = 4096): Effect.Effect<Read> =>
  Effect.callback((resume) => {
    let [bytes, text, end] = [0, "", "closed"];
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.byteLength;
      text = (text + chunk.toString("latin1")).slice(-kept);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      end = error.code ?? "error";
    });
    socket.on("end", () => {
      end = "FIN";
    });
    socket.on("close", () => resume(Effect.succeed({ bytes, text, end })));
    socket.resume();
  });

const ask = (version: string, path = "/") => `GET ${path} HTTP/${version}\r\nHost: localhost\r\n\r\n`;

/** A server that exposes each request and its response. */
const asked = () => {
  const waiting: Array<(served: Served) => void> = [];
  const came: Array<Served> = [];
  const listener: RequestListener = (request, response) => {
    const served = { request, response };
    const next = waiting.shift();
    if (next === undefined) came.push(served);
    else next(served);
  };
  const next = Effect.promise(
    () =>
      new Promise<Served>((resolve) => {
        const served = came.shift();
        if (served === undefined) waiting.push(resolve);
        else resolve(served);
      }),
  );
  return { listener, next, came };
};

interface Served {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const clientOf = ({ response }: Served, slowMs = 60_000) => new ClientResponse(response, slowMs, new Access(() => 0));

/** A response with a head, to a client that does not read yet. */
const opened = (version: string, wire: "http" | "https" = "http", slowMs?: number) =>
  Effect.gen(function* () {
    const { listener, next } = asked();
    const port = wire === "http" ? yield* plainPort(listener) : yield* tlsPort(listener);
    const socket =
      wire === "http" ? connect(port, "127.0.0.1") : tlsConnect({ port, host: "127.0.0.1", rejectUnauthorized: false });
    socket.on("error", () => undefined);
    socket.pause().write(ask(version));
    const client = clientOf(yield* next, slowMs);
    client.head({ status: 200, statusText: "OK", headers: [] });
    return { client, socket };
  });

const plainPort = (listener: RequestListener) => listening(createServer(listener));

const tlsPort = (listener: RequestListener) => listening(createTlsServer({ key, cert: localhost }, listener));

/** Writes in pieces, so that no array holds all of it twice. */
const writeMany = (client: ClientResponse) => {
  const piece = new Uint8Array(64 * 1024).fill(120);
  for (let left = many; left > 0; left -= piece.byteLength) client.writeNow([piece]);
};

describe("A broken response", () => {
  for (const wire of ["http", "https"] as const) {
    it.live(`ends inside an open chunk and loses no byte of a slow reader (${wire})`, () =>
      Effect.gen(function* () {
        const { client, socket } = yield* opened("1.1", wire);
        writeMany(client);
        const breaking = yield* Effect.forkChild(client.break, { startImmediately: true });
        yield* turns(30);
        assert.isUndefined(breaking.pollUnsafe(), "bytes wait for the client");
        const read = yield* readAll(socket);
        yield* Fiber.join(breaking);
        assert.deepStrictEqual([read.end, read.text.slice(-6)], ["FIN", "x\r\n1\r\n"]);
        assert.isAbove(read.bytes, many);
      }),
    );

    it.live(`without chunks is reset once its client has everything (HTTP/1.0, ${wire})`, () =>
      Effect.gen(function* () {
        const { client, socket } = yield* opened("1.0", wire);
        writeMany(client);
        const breaking = yield* Effect.forkChild(client.break, { startImmediately: true });
        yield* turns(30);
        const read = yield* readAll(socket);
        yield* Fiber.join(breaking);
        assert.deepStrictEqual([read.end, read.text.slice(-1)], ["ECONNRESET", "x"]);
        assert.isAbove(read.bytes, many);
      }),
    );

    const linux = process.platform === "linux" ? it.live : it.live.skip;
    linux(`without chunks is not reset while the system still holds bytes of it (HTTP/1.0, ${wire})`, () =>
      Effect.gen(function* () {
        const { client, socket } = yield* opened("1.0", wire);
        client.writeNow([new Uint8Array(few).fill(120)]);
        yield* client.drained;
        const breaking = yield* Effect.forkChild(client.break, { startImmediately: true });
        yield* turns(30);
        assert.isUndefined(breaking.pollUnsafe(), "the system holds bytes");
        const read = yield* readAll(socket);
        yield* Fiber.join(breaking);
        assert.strictEqual(read.end, "ECONNRESET");
        assert.isAbove(read.bytes, few);
      }),
    );

    it.live(`is reset if its client reads nothing for the limit (${wire})`, () =>
      Effect.gen(function* () {
        const { client, socket } = yield* opened("1.1", wire, 100);
        writeMany(client);
        yield* client.break;
        const read = yield* readAll(socket);
        assert.strictEqual(read.end, "ECONNRESET");
        assert.isBelow(read.bytes, many);
      }),
    );
  }

  it.live("is reset before its end, too, if its client reads nothing", () =>
    Effect.gen(function* () {
      const { client, socket } = yield* opened("1.1", "http", 100);
      writeMany(client);
      yield* client.drained;
      assert.strictEqual((yield* readAll(socket)).end, "ECONNRESET");
    }),
  );

  it.live("loses nothing if it is broken again while bytes are pending", () =>
    Effect.gen(function* () {
      const { client, socket } = yield* opened("1.1");
      writeMany(client);
      const breaking = yield* Effect.forkChild(client.break, { startImmediately: true });
      yield* Fiber.interrupt(breaking);
      const again = yield* Effect.forkChild(client.break, { startImmediately: true });
      const read = yield* readAll(socket);
      yield* Fiber.join(again);
      assert.deepStrictEqual([read.end, read.text.slice(-6)], ["FIN", "x\r\n1\r\n"]);
      assert.isAbove(read.bytes, many);
    }),
  );

  it.live("that has already ended stays whole", () =>
    Effect.gen(function* () {
      const { client, socket } = yield* opened("1.1");
      writeMany(client);
      const ending = yield* Effect.forkChild(client.end, { startImmediately: true });
      yield* Fiber.interrupt(ending);
      const breaking = yield* Effect.forkChild(client.break, { startImmediately: true });
      const reading = yield* Effect.forkChild(readAll(socket), { startImmediately: true });
      yield* Fiber.join(breaking);
      // The connection stays open after a whole response.
      socket.end();
      const read = yield* Fiber.join(reading);
      assert.strictEqual(read.text.slice(-8), "x\r\n0\r\n\r\n");
    }),
  );

  it.live("waits for its turn after another one on its connection", () =>
    Effect.gen(function* () {
      const { listener, next } = asked();
      const socket = connect(yield* plainPort(listener), "127.0.0.1");
      socket.write(ask("1.1") + ask("1.1"));
      const [first, second] = [clientOf(yield* next), clientOf(yield* next)];
      second.head({ status: 200, statusText: "OK", headers: [] });
      second.writeNow([Buffer.from("second")]);
      const breaking = yield* Effect.forkChild(second.break, { startImmediately: true });
      yield* turns(30);
      first.head({ status: 200, statusText: "OK", headers: [["content-length", "5"]] });
      first.writeNow([Buffer.from("first")]);
      yield* first.end;
      const read = yield* readAll(socket);
      yield* Fiber.join(breaking);
      assert.strictEqual(read.end, "FIN");
      assert.match(read.text, /first.*\r\n6\r\nsecond\r\n1\r\n$/s);
    }),
  );

  it.live("that waits for its turn ends with its connection", () =>
    Effect.gen(function* () {
      const { listener, next } = asked();
      const socket = connect(yield* plainPort(listener), "127.0.0.1");
      socket.on("error", () => undefined).write(ask("1.1") + ask("1.1"));
      yield* next;
      const second = clientOf(yield* next);
      const breaking = yield* Effect.forkChild(second.break, { startImmediately: true });
      socket.resetAndDestroy();
      yield* Fiber.join(breaking);
    }),
  );

  it.live("without a head closes its connection, and resets nothing", () =>
    Effect.gen(function* () {
      const { listener, next } = asked();
      const socket = connect(yield* plainPort(listener), "127.0.0.1");
      socket.write(ask("1.1"));
      yield* clientOf(yield* next).break;
      assert.deepStrictEqual(yield* readAll(socket), { bytes: 0, text: "", end: "FIN" });
    }),
  );
});

/** The error event before the end. */
const brokenStream = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: null }] })}\n\n`;

const chat = JSON.stringify({ model: "m", messages: [], stream: true });

const chatRequest = (version: string, agent = "some-script/1") =>
  `POST /v1/chat/completions HTTP/${version}\r\nHost: localhost\r\nUser-Agent: ${agent}\r\nContent-Type: application/json\r\nContent-Length: ${chat.length}\r\n\r\n${chat}`;

/** A provider whose response stops after its first text. */
const stopping: RequestListener = (request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(brokenStream, () => response.destroy());
  });
};

describe("The end of a broken response in the gateway", () => {
  for (const [agent, last] of [
    ["some-script/1", /invalid_request_error.*\r\n1\r\n$/s],
    ["OurAgent/1 (with @ai-sdk/openai)", /invalid_request_error.*\r\n0\r\n\r\n$/s],
  ] as const) {
    it.live(`gives a client the reason, and ends in a way that it reads correctly: ${agent}`, () =>
      Effect.gen(function* () {
        const { gateway } = yield* front(yield* serverOf(stopping));
        const socket = connect(gateway.port, "127.0.0.1");
        socket.write(chatRequest("1.1", agent).replace("Host", "Connection: close\r\nHost"));
        const read = yield* readAll(socket);
        assert.strictEqual(read.end, "FIN");
        assert.match(read.text, last);
      }),
    );
  }

  it.live("gives a client of HTTP/1.0 the reason, and then resets the connection", () =>
    Effect.gen(function* () {
      const { gateway } = yield* front(yield* serverOf(stopping));
      const socket = connect(gateway.port, "127.0.0.1");
      socket.write(chatRequest("1.0"));
      const read = yield* readAll(socket);
      assert.strictEqual(read.end, "ECONNRESET");
      assert.include(read.text, "invalid_request_error");
    }),
  );

  it.live("serves no request that comes after a broken response", () =>
    Effect.gen(function* () {
      let requests = 0;
      const upstream = yield* serverOf((request, response) => {
        requests += 1;
        stopping(request, response);
      });
      const { gateway } = yield* front(upstream, { onBreak: "abort" });
      // Half open, because otherwise Node answers FIN with FIN, and the second request would never leave.
      const socket = connect({ port: gateway.port, host: "127.0.0.1", allowHalfOpen: true });
      socket.write(chatRequest("1.1"));
      yield* Effect.callback<void>((resume) => void socket.resume().once("end", () => resume(Effect.void)));
      yield* Effect.callback<void>(
        (resume) => void socket.write(chatRequest("1.1").repeat(2), () => resume(Effect.void)),
      );
      // A later request on another connection is served, and broken, too.
      yield* post(gateway.url, "openai-chat");
      yield* turns(30);
      assert.strictEqual(requests, 2);
      socket.destroy();
    }),
  );

  it.live("breaks a body that passes through inside an open chunk if its provider breaks it", () =>
    Effect.gen(function* () {
      const upstream = yield* serverOf((_, response) => void response.write("{", () => response.destroy()));
      const { gateway } = yield* front(upstream);
      const socket = connect(gateway.port, "127.0.0.1");
      socket.write(ask("1.1", "/v1/files"));
      const read = yield* readAll(socket);
      assert.deepStrictEqual([read.end, read.text.slice(-7)], ["FIN", "\n{\r\n1\r\n"]);
    }),
  );

  it.live("breaks a body that still passes through at a shutdown inside an open chunk", () =>
    Effect.gen(function* () {
      let socket: Socket | undefined;
      const upstream = yield* serverOf((_, response) => void response.write("{"));
      const reading = yield* Effect.scoped(
        Effect.gen(function* () {
          const { gateway } = yield* front(upstream, { limits: { drainMs: 1 } });
          socket = connect(gateway.port, "127.0.0.1");
          socket.write(ask("1.1", "/v1/files"));
          yield* Effect.callback<void>((resume) => void socket?.once("data", () => resume(Effect.void)));
          return yield* Effect.forkDetach(readAll(socket), { startImmediately: true });
        }),
      );
      const read = yield* Fiber.join(reading);
      assert.deepStrictEqual([read.end, read.text.slice(-3)], ["FIN", "1\r\n"]);
    }).pipe(Effect.scoped),
  );
});

describe("The system's table of sockets", () => {
  const line = (remote: string, queues: string) =>
    `   0: 0100007F:1F90 ${remote}:C350 01 ${queues} 01:00000014 00000003     0        0 1 1`;
  for (const [remoteAddress, remote] of [
    ["127.0.0.1", "0100007F"],
    ["::ffff:127.0.0.1", "0000000000000000FFFF00000100007F"],
    ["::1", "00000000000000000000000001000000"],
    ["2001:db8::a", "B80D01200000000000000000" + "0A000000"],
  ] as const) {
    it(`is read for ${remoteAddress}`, () => {
      const found = linesOf(`  sl  local_address rem_address\n${line(remote, "00000A00:00000007")}\n`);
      const ends = { localPort: 0x1f90, remoteAddress, remotePort: 0xc350 };
      assert.deepStrictEqual(found.get(keyOf(ends) ?? ""), { unsent: 0xa00, retransmits: 3 });
      assert.isUndefined(found.get(keyOf({ ...ends, remotePort: 1 }) ?? ""));
    });
  }
});
