/**
 * Holds the meaning of every error status, alone and with each form of a body.
 */
import { assert, describe, it } from "@effect/vitest";
import { flags, permanentStatuses } from "../../../src/domain/Failure.ts";
import { canRetryStatus, failureOf, isBelievable, isError } from "../../../src/failure/tables/HttpStatus.ts";

/** Statuses that are not simply an invalid request (4xx) or a server error (5xx). */
const meanings: Readonly<Record<number, string>> = {
  401: "rejected auth",
  402: "rejected quota",
  403: "rejected permission",
  404: "rejected not_found",
  407: "rejected permission",
  408: "server_error",
  409: "server_error",
  410: "rejected not_found",
  413: "rejected payload_too_large",
  425: "server_error",
  429: "rate_limited",
  451: "rejected permission",
  499: "cancelled provider",
  529: "overloaded",
};
const permanent = [501, 505, 506, 508, 510, 511, 525, 526];
const all = Array.from({ length: 200 }, (_, at) => 400 + at);

describe("an HTTP status", () => {
  it("of 400 to 599 is an error, and nothing else is", () => {
    assert.isTrue(all.every(isError));
    for (const other of [399, 600, 400.5, "400", Number.NaN, undefined]) assert.isFalse(isError(other), String(other));
  });

  it("means what the table says, else an invalid request or a server error", () => {
    for (const status of all) {
      const { kind, ...more } = failureOf(status);
      const expected = meanings[status] ?? (status < 500 ? "rejected invalid_request" : "server_error");
      assert.strictEqual([kind, ...Object.values(more)].join(" "), expected, String(status));
    }
  });

  it("is final only if the same request would get it again", () => {
    for (const status of all) {
      assert.strictEqual(canRetryStatus(status), permanent.includes(status) ? false : undefined, String(status));
      assert.strictEqual(permanentStatuses.has(status), permanent.includes(status));
      const own = flags({ kind: "server_error", status });
      assert.deepStrictEqual(own, {
        retryable: !permanent.includes(status),
        not_processed: status === 503,
        in_band: false,
      });
    }
  });

  it("proves by itself that nothing was processed, unless a proxy may have sent it", () => {
    for (const status of all) {
      const isProxied = status === 503 || status === 529;
      const believed = (["schema", "json", "text", "absent"] as const).map((body) => isBelievable(status, body));
      assert.deepStrictEqual(believed, [true, !isProxied, false, !isProxied], String(status));
    }
  });
});
