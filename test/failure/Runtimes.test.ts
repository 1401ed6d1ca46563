/**
 * Messages of runtimes and browsers about a broken connection, each with the class of its error.
 */
import { assert, describe, it } from "@effect/vitest";
import { classify } from "../../src/failure/FailureClassifier.ts";

const lost = { kind: "transport", retryable: true };
const never = { kind: "transport", retryable: false, operation: "connect" };

/** [runtime, thrown error, expected failure]. */
const rows: ReadonlyArray<readonly [string, Error, Readonly<Record<string, unknown>>]> = [
  ["Deno", new TypeError("error reading a body from connection"), { ...lost, operation: "body" }],
  [
    "Deno",
    new TypeError("error reading a body from connection: unexpected EOF during chunk size line"),
    { ...lost, operation: "body" },
  ],
  [
    "Deno",
    new Error("request or response body error: error reading a body from connection: unexpected end of file"),
    { ...lost, operation: "body" },
  ],
  ["Deno", new TypeError("connection closed before message completed"), { ...lost, operation: "body" }],
  [
    "Deno",
    new TypeError(
      "error sending request for url (https://api.example/v1): client error (SendRequest): connection closed before message completed",
    ),
    lost,
  ],
  [
    "Deno",
    new TypeError(
      "error sending request from 127.0.0.1:5 for http://localhost:1/ (127.0.0.1:1): client error (Connect): tcp connect error: Connection refused (os error 111)",
    ),
    { ...lost, operation: "connect" },
  ],
  [
    "Deno",
    new TypeError(
      "error sending request for url (https://api.example/): client error (Connect): invalid peer certificate: Expired",
    ),
    never,
  ],
  [
    "Deno",
    new TypeError(
      "error sending request for url (https://api.example/): client error (Connect): dns error: failed to lookup address information: Name or service not known",
    ),
    never,
  ],
  ["Firefox", new TypeError("NetworkError when attempting to fetch resource."), lost],
  ["Firefox", new TypeError("Error in input stream"), { ...lost, operation: "body" }],
  ["Firefox", new TypeError("Error in body stream"), { ...lost, operation: "body" }],
  ["Safari", new TypeError("Load failed"), lost],
  ["Safari", new TypeError("Load failed (api.example)"), lost],
  ["Safari", new TypeError("The network connection was lost."), lost],
  ["Safari", new TypeError("The request timed out."), lost],
  ["Safari", new TypeError("The Internet connection appears to be offline."), { ...lost, operation: "connect" }],
  ["Safari", new TypeError("A server with the specified hostname could not be found."), never],
  ["Chromium", new TypeError("Failed to fetch"), lost],
  ["Chromium", new TypeError("Failed to fetch (api.example)"), lost],
  ["Chromium", new TypeError("network error"), lost],
  ["Cloudflare Workers", new Error("Network connection lost."), lost],
  ["Cloudflare Workers", new TypeError("Network connection lost"), lost],
  [
    "Bun",
    new TypeError(
      "The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()",
    ),
    lost,
  ],
  ["Bun", Object.assign(new TypeError("The socket connection was closed"), { code: "ConnectionClosed" }), lost],
  [
    "Bun",
    Object.assign(new Error("Unable to connect. Is the computer able to access the url?"), {
      code: "ConnectionRefused",
    }),
    { ...lost, operation: "connect" },
  ],
  [
    "Bun",
    new TypeError("Unable to connect. Is the computer able to access the url?"),
    { ...lost, operation: "connect" },
  ],
  [
    "Bun",
    Object.assign(new Error("InvalidHTTPResponse fetching https://api.example/"), { code: "InvalidHTTPResponse" }),
    { kind: "protocol", reason: "not_a_stream" },
  ],
  [
    "Bun",
    Object.assign(new Error("ZlibError fetching https://api.example/"), { code: "ZlibError" }),
    { kind: "protocol", reason: "damaged_frame" },
  ],
];

describe("a broken connection in a runtime's own words", () => {
  for (const [runtime, error, expected] of rows) {
    it(`${runtime}: ${error.message.slice(0, 90)}`, () => {
      const failure: Readonly<Record<string, unknown>> = { ...classify(error) };
      for (const [field, value] of Object.entries(expected)) assert.strictEqual(failure[field], value, field);
    });
  }

  it("a failed lookup of a name that was reached before is a lost network", () => {
    const error = new TypeError("A server with the specified hostname could not be found.");
    assert.isTrue(classify(error, { reachedHostBefore: true }).retryable);
  });

  const bugs = [
    "Cannot read properties of undefined (reading 'error reading a body from connection')",
    "x is not a function: load failed",
    "Failed to fetch: request body stream errored",
    "the sentence 'Error in input stream' stands in another",
    "could not connect to the server of my own that I forgot",
  ];
  for (const message of bugs) {
    it(`is unknown in a TypeError thrown by a program's own code: ${message.slice(0, 60)}`, () => {
      assert.strictEqual(classify(new TypeError(message)).kind, "unknown");
    });
  }
});
