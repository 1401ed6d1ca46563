import { assert, describe, it } from "@effect/vitest";
import { headerOf, type RelayRefusal } from "../../../src/adapters/relay/RelayTransport.ts";
import { Rule } from "../../../src/domain/Decision.ts";
import { ClockName, type Failure, kinds, RejectedReason, TransportOperation } from "../../../src/domain/Failure.ts";
import * as Http2Errors from "../../../src/domain/Http2Errors.ts";
import * as TransportCodes from "../../../src/domain/TransportCodes.ts";
import {
  finalFailureOf,
  type GivenUp,
  isGivenUp,
  recallFailure,
  refusalOf,
} from "../../../src/gateway/clients/GivenUp.ts";
import { isTransientText } from "../../../src/gateway/clients/PassingWords.ts";
import { rules } from "../../../src/policy/Rules.ts";
import { protocols } from "../../../src/provider/Protocols.ts";
import { interruptedRun } from "./InterruptedRun.ts";

/** The words that pi 0.73 looks for in a message, copied from pi. The sources have a different guard. */
const pi =
  /overloaded|provider.?returned.?error|rate.?limit|too many requests|429|500|502|503|504|service.?unavailable|server.?error|internal.?error|network.?error|connection.?error|connection.?refused|connection.?lost|websocket.?closed|websocket.?error|other side closed|fetch failed|upstream.?connect|reset before headers|socket hang up|ended without|stream ended before message_stop|http2 request did not get a response|timed? out|timeout|terminated|retry delay/i;

const kindsOf = (): ReadonlyArray<Failure> =>
  Object.keys(kinds).flatMap((kind): ReadonlyArray<Failure> => {
    switch (kind) {
      case "transport":
        return [{ kind }, ...TransportOperation.literals.map((operation) => ({ kind, operation }) as const)];
      case "stalled":
        return ClockName.literals.map((clock) => ({ kind, clock }));
      case "rejected":
        return RejectedReason.literals.map((reason) => ({ kind, reason }));
      case "protocol":
        return [{ kind, reason: "damaged_frame" }];
      case "cancelled":
        return [{ kind, by: "provider" }];
      default:
        return [{ kind: kind as "unknown" }]; // all other kinds need no further field
    }
  });

const strange = ["", "429", "503 Service Unavailable", "a\r\nx-evil: 1", "é", "x".repeat(128), "rate_limit_exceeded"];
const codes = [undefined, ...TransportCodes.codes, ...Http2Errors.nodeCodes, ...strange];

/** Some clients read a whole document as the message. */
const documentsOf = (told: GivenUp): ReadonlyArray<string> =>
  protocols.ids.map((id) =>
    JSON.stringify(refusalOf(told, protocols.get(id), { status: 424, asksByWords: true }).document),
  );

const refusal: RelayRefusal = { head: { status: 503, statusText: "", headers: [] }, body: [], whole: true };

describe("the message of a failed run", () => {
  it("contains no word by which a client asks again, for any failure", () => {
    const all = new Set<string>();
    const documents = new Set<string>();
    for (const kind of kindsOf()) {
      for (const [index, code] of codes.entries()) {
        const failure = { ...kind, ...(code === undefined ? {} : { code }) };
        // Each code meets every third rule, and each rule every third code.
        for (const rule of Rule.literals.filter((_, of) => (of + index) % 3 === 0))
          all.add(finalFailureOf(interruptedRun({ failure, rule })).message);
        for (const text of documentsOf(finalFailureOf(interruptedRun({ failure })))) documents.add(text);
      }
    }
    assert.isAbove(all.size, 500);
    for (const text of [...all, ...documents]) assert.isFalse(pi.test(text) || isTransientText(text), text);
    for (const message of all) assert.match(message, /^stream-recovery gateway: [\w ():',.;-]+\.$/);
  });

  it("distinguishes an outage that lasted too long from a wait that is too long", () => {
    const told = (failure: Failure) =>
      finalFailureOf(interruptedRun({ failure, rule: "outage_too_long", attempts: 1 }));
    const away = told({ kind: "transport", operation: "connect", code: "path_down" });
    assert.strictEqual(
      away.message,
      "stream-recovery gateway: the model provider could not be reached (path_down). The gateway waited as long as the limit allows. There are no further attempts.",
    );
    const cooling = told({ kind: "rate_limited", code: "announced_cooldown" });
    assert.include(cooling.message, "accepts no more requests for now (announced_cooldown). It asks for a longer wait");
    for (const { code, headers } of [away, cooling]) assert.strictEqual(headerOf(headers, "x-recovery-code"), code);
  });

  it("contains no number of attempts that reads as a status", () => {
    for (let attempts = 1; attempts < 6_000; attempts++) {
      const { message } = finalFailureOf(interruptedRun({ attempts }));
      assert.isFalse(pi.test(message), message);
    }
    assert.include(finalFailureOf(interruptedRun({ attempts: 4 })).message, "4 attempts were made.");
    assert.notInclude(finalFailureOf(interruptedRun({ attempts: 503 })).message, "503");
    assert.notMatch(finalFailureOf(interruptedRun({ attempts: 1 })).message, /attempts? w/);
  });

  it("contains the code on the screen, in the document and in a header", () => {
    for (const code of ["EPROTO", "CERT_HAS_EXPIRED"]) {
      const told = finalFailureOf(interruptedRun({ failure: { kind: "transport", operation: "connect", code } }));
      assert.include(told.message, `the model provider could not be reached (${code}).`);
      assert.strictEqual(headerOf(told.headers, "x-recovery-code"), code);
      const { document } = refusalOf(told, protocols.get("openai-chat"), { status: 400, asksByWords: true });
      assert.deepInclude(document, {
        error: {
          message: told.message,
          type: "gateway_upstream_failed",
          param: null,
          code: "gateway_upstream_failed",
          recovery_code: code,
        },
      });
    }
  });

  it("contains a code that is such a word only in the header, and text of unknown origin nowhere", () => {
    const named = finalFailureOf(interruptedRun({ failure: { kind: "transport", code: "UND_ERR_CONNECT_TIMEOUT" } }));
    assert.strictEqual(headerOf(named.headers, "x-recovery-code"), "UND_ERR_CONNECT_TIMEOUT");
    assert.notInclude(named.message, "TIMEOUT");
    // opencode searches a whole refusal for Node's codes, and retries without end.
    const refused = finalFailureOf(
      interruptedRun({ failure: { kind: "transport", operation: "connect", code: "ECONNREFUSED" } }),
    );
    const { document } = refusalOf(refused, protocols.get("openai-responses"), { status: 400, asksByWords: true });
    assert.strictEqual(headerOf(refused.headers, "x-recovery-code"), "ECONNREFUSED");
    assert.notInclude(JSON.stringify(document), "ECONNREFUSED");
    assert.include(refused.message, "nothing listens at its address.");
    const foreign = finalFailureOf(interruptedRun({ failure: { kind: "transport", code: "a\r\nx-evil: 1" } }));
    assert.strictEqual(headerOf(foreign.headers, "x-recovery-code"), "transport");
    assert.notInclude(foreign.message, "evil");
    const deep = { kind: "unknown", fingerprint: { name: "E", code: "EX", depth: 1 } } as const;
    assert.include(finalFailureOf(interruptedRun({ failure: deep })).message, "(EX)");
  });

  it("states its age if it comes from memory", () => {
    const told = finalFailureOf(interruptedRun());
    const { headers, message } = recallFailure({ told, ageMs: 4_999 });
    assert.include(message, "4 s ago");
    assert.strictEqual(headerOf(headers, "x-recovery-age"), "4");
    assert.strictEqual(headerOf(headers, "x-should-retry"), "false");
    for (let ageMs = 0; ageMs <= 60_000; ageMs += 500) assert.isFalse(pi.test(recallFailure({ told, ageMs }).message));
  });

  it("is checked by a guard that knows the words of the run's own sentences", () => {
    // Sentences of rules and failures reach people elsewhere; a client would retry because of them.
    assert.isTrue(isTransientText("The model provider is overloaded"));
    assert.isTrue(isTransientText("The model provider had an internal error (status 502)"));
    assert.isTrue(isTransientText("the connection lost its way: connection lost"));
    assert.isFalse(isTransientText("the model provider could not be reached (CERT_HAS_EXPIRED)."));
    for (const code of ["ECONNRESET", "ECONNREFUSED", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"])
      assert.isTrue(isTransientText(code), code);
  });
});

describe("isGivenUp", () => {
  it("is true for a retried failure, a repeated exhausted budget, and a break without a response", () => {
    assert.isTrue(isGivenUp(interruptedRun({ attempts: 4 }, refusal), false));
    assert.isTrue(isGivenUp(interruptedRun({ attempts: 1 }, refusal), true));
    assert.isTrue(isGivenUp(interruptedRun({ attempts: 1, failure: { kind: "truncated" } }), false));
    // The gateway itself had no file descriptor for a connection.
    const own = { kind: "transport", code: "EMFILE", operation: "connect" } as const;
    assert.isFalse(isGivenUp(interruptedRun({ attempts: 1, failure: own }), false));
    assert.isTrue(isGivenUp(interruptedRun({ attempts: 1, rule: "not_retryable" }), false));
  });

  it("is false for a provider's refusal that was not retried, and for one that would be repeated", () => {
    assert.isFalse(isGivenUp(interruptedRun({ attempts: 1 }, refusal), false));
    assert.isFalse(isGivenUp(interruptedRun({ attempts: 1, rule: "retry_after_too_long" }, refusal), true));
    assert.isFalse(isGivenUp(interruptedRun({ attempts: 3, rule: "not_retryable" }, refusal), true));
  });

  it("is false for a gateway that closes or cannot record, and for a client that left", () => {
    for (const reason of ["refused", "record_failed"] as const)
      assert.isFalse(isGivenUp(interruptedRun({ reason }), false));
    for (const rule of ["lifecycle_closed", "user_cancelled", "caller_interrupted"] as const)
      assert.isFalse(isGivenUp(interruptedRun({ rule }), true));
  });

  it("every rule that can end a run states its reason, or the number of tries", () => {
    for (const rule of Rule.literals) {
      if (rules[rule].action === "auto_retry_once") continue;
      assert.match(
        finalFailureOf(interruptedRun({ rule, attempts: 2 })).message,
        /2 attempts were made\. There are no further attempts\.$/,
      );
    }
  });
});
