import { assert, describe, it } from "@effect/vitest";
import { resolve } from "../../src/domain/Failure.ts";
import * as TransportCodes from "../../src/domain/TransportCodes.ts";
import { classify } from "../../src/failure/FailureClassifier.ts";
import { codeLabel } from "../../src/failure/thrown/ErrorLabel.ts";

describe("a code of an egress proxy", () => {
  const retried: ReadonlyArray<readonly [string, boolean]> = [
    ["PROXY_407", false],
    ["PROXY_403", false],
    ["PROXY_302", false],
    ["PROXY_501", false],
    ["PROXY_511", false],
    ["PROXY_408", true],
    ["PROXY_429", true],
    ["PROXY_502", true],
    ["PROXY_504", true],
    ["PROXY_CLOSED", true],
    ["PROXY_STALLED", true],
    ["PROXY_BAD_RESPONSE", false],
    ["PROXY_HEAD_OVERFLOW", false],
    ["PROXY_ECONNREFUSED", true],
    ["PROXY_ENOTFOUND", false],
    ["PROXY_CERT_HAS_EXPIRED", false],
    ["PROXY_ERR_SSL_WRONG_VERSION_NUMBER", false],
  ];
  for (const [code, retryable] of retried) {
    it(`${code} is ${retryable ? "retried" : "not retried"}, both from the error and from the stored failure`, () => {
      const failure = classify(Object.assign(new Error("no tunnel"), { code }), { operation: "connect" });
      assert.deepInclude(failure, { kind: "transport", operation: "connect", code, retryable });
      assert.strictEqual(resolve({ kind: "transport", code }).retryable, retryable);
      assert.strictEqual(codeLabel(code), code);
    });
  }

  it("keeps no other text that has the same prefix", () => {
    for (const code of ["PROXY_sk-ant-1234567890", "PROXY_4070123", "PROXY_ERR_SSL_AKIA99XYZ", "PROXY_hunter2"])
      assert.isUndefined(codeLabel(code), code);
    assert.isUndefined(TransportCodes.lookup("PROXY_HUNTER"));
    assert.isUndefined(TransportCodes.lookup("PROXY_999"));
  });
});

describe("a code of TLS", () => {
  for (const code of [
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "ERR_SSL_PACKET_LENGTH_TOO_LONG",
    "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
    "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA",
    "ERR_SSL_TLSV1_UNRECOGNIZED_NAME",
    "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE",
    "ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE",
    "ERR_SSL_NO_PROTOCOLS_AVAILABLE",
    "ERR_SSL_UNSUPPORTED_PROTOCOL",
    "ERR_SSL_UNEXPECTED_MESSAGE",
    "ERR_SSL_DH_KEY_TOO_SMALL",
    "ERR_SSL_EE_KEY_TOO_SMALL",
    "ERR_SSL_CA_MD_TOO_WEAK",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "CERT_HAS_EXPIRED",
  ]) {
    it(`${code} is named by the failure, which is not retried`, () => {
      const failure = classify(Object.assign(new Error("handshake"), { code }), { operation: "connect" });
      assert.deepInclude(failure, { kind: "transport", operation: "connect", code, retryable: false });
    });
  }
});
