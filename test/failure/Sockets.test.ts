/**
 * Errors that this Node throws from real sockets: names, codes and causes of fetch and node:http2 change between versions.
 */
import * as http2 from "node:http2";
import * as net from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { classify } from "../../src/failure/FailureClassifier.ts";
import { expectFailure } from "./ExpectFailure.ts";

const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

/** Serves one raw behaviour and returns the error of a fetch. */
const thrownBy = async (
  serve: (socket: net.Socket) => void,
  use: (url: string) => Promise<unknown> = async (url) => (await fetch(url)).text(),
): Promise<unknown> => {
  const server = net.createServer((socket) => {
    socket.on("error", () => undefined); // the client may leave first
    socket.once("data", () => serve(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  try {
    await use(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`);
  } catch (error) {
    return error;
  } finally {
    server.close();
  }
  return assert.fail("the fetch did not throw");
};

const chunk = `${head}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`;

describe("fetch of this Node", () => {
  const rows: ReadonlyArray<readonly [string, (socket: net.Socket) => void, object]> = [
    ["a reset before the head", (socket) => void socket.resetAndDestroy(), { kind: "transport", retryable: true }],
    ["a close before the head", (socket) => void socket.end(), { kind: "transport", retryable: true }],
    ["a close inside chunks", (socket) => void socket.end(chunk), { kind: "transport", retryable: true }],
    [
      "a reset inside chunks",
      (socket) => void socket.write(chunk, () => socket.resetAndDestroy()),
      { kind: "transport", retryable: true },
    ],
    [
      "a close inside a length",
      (socket) => void socket.end(`${head}content-length: 50\r\n\r\nhello`),
      { kind: "transport", retryable: true },
    ],
    ["other bytes than HTTP", (socket) => void socket.end("garbage\r\n\r\n"), { kind: "protocol", retryable: true }],
    [
      "a broken chunk size",
      (socket) => void socket.end(`${head}transfer-encoding: chunked\r\n\r\nZZZ\r\n`),
      { kind: "protocol", reason: "damaged_frame" },
    ],
  ];
  for (const [name, serve, expected] of rows)
    it(`gives ${name}`, async () => expectFailure(classify(await thrownBy(serve)), { ...expected }));

  it("distinguishes an abort of a signal from its timeout", async () => {
    const silent = () => undefined;
    const abort = await thrownBy(silent, (url) => {
      const controller = new AbortController();
      const pending = fetch(url, { signal: controller.signal });
      controller.abort();
      return pending;
    });
    expectFailure(classify(abort), { kind: "cancelled", by: "provider" });
    const timeout = await thrownBy(silent, (url) => fetch(url, { signal: AbortSignal.timeout(5) }));
    expectFailure(classify(timeout), { kind: "transport", retryable: true });
  });

  it("gives a port without a listener, and a wrong use of fetch", async () => {
    const refused = await thrownBy(
      () => undefined,
      async () => {
        const server = net.createServer();
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
        const address = server.address();
        await new Promise((resolve) => server.close(resolve));
        return fetch(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`);
      },
    );
    expectFailure(classify(refused), {
      kind: "transport",
      code: "ECONNREFUSED",
      operation: "connect",
      retryable: true,
    });
    const misuse = await thrownBy(
      () => undefined,
      (url) => fetch(url, { body: "a GET has none" }),
    );
    expectFailure(classify(misuse), { kind: "unknown", retryable: false });
    const invalid = await thrownBy(
      () => undefined,
      () => fetch("no url"),
    );
    expectFailure(classify(invalid), { kind: "rejected", reason: "invalid_request", retryable: false });
  });
});

describe("node:http2 of this Node", () => {
  const endedBy = (code: number): Promise<{ readonly error: unknown; readonly rstCode: number | undefined }> =>
    new Promise((resolve) => {
      const server = http2.createServer();
      server.on("stream", (stream) => {
        stream.on("error", () => undefined); // we cause the reset
        stream.close(code);
      });
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        const client = http2.connect(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
        const request = client.request({ ":path": "/" });
        let thrown: unknown;
        request.on("error", (error) => {
          thrown = error;
        });
        request.on("close", () => {
          client.destroy();
          server.close();
          resolve({ error: thrown, rstCode: request.rstCode });
        });
        request.resume();
      });
    });

  it("gives REFUSED_STREAM, INTERNAL_ERROR and PROTOCOL_ERROR of the peer", async () => {
    const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_PROTOCOL_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants;
    const refused = await endedBy(NGHTTP2_REFUSED_STREAM);
    expectFailure(classify(refused.error), { http2_code: "REFUSED_STREAM", retryable: true, not_processed: true });
    const internal = await endedBy(NGHTTP2_INTERNAL_ERROR);
    expectFailure(classify(internal.error), { http2_code: "INTERNAL_ERROR", retryable: true, not_processed: false });
    const protocol = await endedBy(NGHTTP2_PROTOCOL_ERROR);
    expectFailure(classify(protocol.error), { http2_code: "PROTOCOL_ERROR", retryable: false });
  });

  it("gives no error at all for CANCEL, so a client has to report the stream's rstCode", async () => {
    const { error, rstCode } = await endedBy(http2.constants.NGHTTP2_CANCEL);
    assert.isUndefined(error);
    expectFailure(classify({ rstCode }), { kind: "transport", http2_code: "CANCEL", retryable: true });
  });
});
