import { assert, describe, it } from "@effect/vitest";
import { ConnectStalled } from "../../../src/client/connection/Connector.ts";
import type { ExchangeBreak } from "../../../src/client/connection/Exchange.ts";
import { failureOf } from "../../../src/client/connection/ExchangeFailure.ts";
import { Origin, unreachedMs } from "../../../src/client/connection/Origin.ts";
import { resolve } from "../../../src/domain/Failure.ts";

const refused: ExchangeBreak = {
  error: Object.assign(new Error("connect"), { code: "ECONNREFUSED", syscall: "connect" }),
  operation: "connect",
  unsendable: false,
};

/** The classification of a break at `now` in a request that began at `openedAt`, in monotonic milliseconds. */
const at = (origin: Origin, openedAt: number, now: number, broken = refused) => {
  const times = { openedAt, startedAt: undefined, headAt: undefined, firstByteAt: undefined, carried: undefined };
  return resolve(failureOf(broken, { origin, exchange: { times }, now, nowMs: 0 }));
};

describe("a request without a connection", () => {
  it("may be retried for two seconds if its origin was never reached, and no longer", () => {
    const origin = new Origin();
    assert.isTrue(at(origin, 1_000, 1_001).retryable);
    assert.isTrue(at(origin, 1_500, 1_000 + unreachedMs).retryable);
    const last = at(origin, 3_000, 1_001 + unreachedMs);
    assert.deepInclude(last, { kind: "transport", operation: "connect", code: "ECONNREFUSED", retryable: false });
    // The next request with a wrong address fails at once.
    assert.isFalse(at(origin, 90_000, 90_001).retryable);
  });

  it("may be retried at any time if its origin was reached once, because that is an outage", () => {
    const origin = new Origin();
    assert.isFalse(at(origin, 0, unreachedMs + 1).retryable);
    origin.reached = true;
    assert.isTrue(at(origin, 10_000, 90_000).retryable);
    assert.isTrue(at(origin, 10_000, 90_000, { ...refused, error: new ConnectStalled() }).retryable);
  });

  it("is not retried if the connect timeout expired at an origin that was never reached", () => {
    const stalled = { ...refused, error: new ConnectStalled("PROXY_STALLED") };
    assert.deepInclude(at(new Origin(), 0, 30_000, stalled), {
      kind: "stalled",
      code: "PROXY_STALLED",
      retryable: false,
    });
  });

  for (const code of [
    "ECONNREFUSED ENETUNREACH EHOSTUNREACH EHOSTDOWN EADDRNOTAVAIL ENETDOWN ETIMEDOUT UND_ERR_CONNECT_TIMEOUT EAI_AGAIN",
    "ENOTFOUND PROXY_ECONNREFUSED PROXY_ENOTFOUND PROXY_502",
  ].flatMap((codes) => codes.split(" ")))
    it(`may be retried after ${code} if its origin was reached, and reports that it was not sent`, () => {
      const origin = new Origin();
      origin.reached = true;
      const error = Object.assign(new Error("connect"), { code, syscall: "connect" });
      assert.deepInclude(at(origin, 0, 60_000, { ...refused, error }), {
        kind: "transport",
        operation: "connect",
        code,
        retryable: true,
      });
    });

  for (const code of ["CERT_HAS_EXPIRED", "ERR_TLS_CERT_ALTNAME_INVALID", "PROXY_SELF_SIGNED_CERT_IN_CHAIN", "EPROTO"])
    it(`may be retried after ${code} if its origin was reached, because a captive portal passes`, () => {
      const origin = new Origin();
      const error = Object.assign(new Error("certificate"), { code });
      assert.isFalse(at(origin, 0, 1, { ...refused, error }).retryable);
      origin.reached = true;
      assert.deepInclude(at(origin, 0, 1, { ...refused, error }), { operation: "connect", code, retryable: true });
    });

  for (const code of ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "ERR_OSSL_PEM_NO_START_LINE", "PROXY_407"])
    it(`is not retried after ${code}, which is a fault of this side`, () => {
      const origin = new Origin();
      origin.reached = true;
      assert.isFalse(at(origin, 0, 1, { ...refused, error: Object.assign(new Error("x"), { code }) }).retryable);
    });

  it("has a time limit that does not apply to a written request", () => {
    const origin = new Origin();
    const reset = {
      ...refused,
      operation: "head" as const,
      error: Object.assign(new Error("x"), { code: "ECONNRESET" }),
    };
    assert.isTrue(at(origin, 0, 60_000, reset).retryable);
  });
});
