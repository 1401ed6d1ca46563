import { assert, describe, it } from "@effect/vitest";
import { ConnectResponse, connectHeadBytesMax } from "../../../src/client/connection/Tunnel.ts";

const whole = (text: string) => new ConnectResponse().push(Buffer.from(text, "latin1"));

/** The parser's final state if the bytes arrive one by one. */
const dripped = (text: string) => {
  const response = new ConnectResponse();
  for (const byte of Buffer.from(text, "latin1")) {
    const reading = response.push(Uint8Array.of(byte));
    if (reading.kind !== "more") return reading;
  }
  return { kind: "more" };
};

describe("a proxy's response to CONNECT", () => {
  const long = `x: ${"a".repeat(connectHeadBytesMax)}`;
  const rows: ReadonlyArray<readonly [string, string, object]> = [
    ["opens", "HTTP/1.1 200 Connection established\r\n\r\n", { kind: "status", status: 200 }],
    ["opens by HTTP/1.0 and without a phrase", "HTTP/1.0 200\r\n\r\n", { kind: "status", status: 200 }],
    ["opens with bare line feeds", "HTTP/1.1 204 x\nVia: y\n\n", { kind: "status", status: 204 }],
    [
      "opens behind interim responses",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
      { kind: "status", status: 200 },
    ],
    [
      "refuses",
      "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n",
      { kind: "status", status: 407 },
    ],
    ["is not whole", "HTTP/1.1 200 OK\r\nVia: x\r\n", { kind: "more" }],
    ["is another protocol", "SSH-2.0-OpenSSH_9\r\n", { kind: "bad_response" }],
    ["is HTTP/2", "HTTP/2 200\r\n\r\n", { kind: "bad_response" }],
    ["has no status", "HTTP/1.1 2000 OK\r\n\r\n", { kind: "bad_response" }],
    ["has a status of no class", "HTTP/1.1 600 x\r\n\r\n", { kind: "bad_response" }],
    ["is too long", `HTTP/1.1 200 OK\r\n${long}\r\n\r\n`, { kind: "head_overflow" }],
    ["is interim for ever", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000), { kind: "head_overflow" }],
  ];
  for (const [name, text, expected] of rows) {
    it(`${name}: in a single read and byte by byte`, () => {
      assert.deepStrictEqual(whole(text), expected);
      assert.deepStrictEqual(dripped(text), expected);
    });
  }

  it("opens no tunnel if a successful response has a body", () => {
    assert.deepStrictEqual(whole("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"), { kind: "bad_response" });
  });

  it("is a refusal with a body, too", () => {
    assert.deepStrictEqual(whole("HTTP/1.1 403 No\r\n\r\n<html>"), { kind: "status", status: 403 });
  });
});
