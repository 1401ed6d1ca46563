import { assert, describe, it } from "@effect/vitest";
import { toldBodyCharactersMax } from "../../../src/adapters/relay/RelayRepeats.ts";
import type { RelayRefusal } from "../../../src/adapters/relay/RelayTransport.ts";
import { finalFailureOf, type GivenUp, sentenceOf } from "../../../src/gateway/clients/GivenUp.ts";
import { isTransientText, withoutPassing } from "../../../src/gateway/clients/PassingWords.ts";
import { quoteCharactersMax, redact } from "../../../src/gateway/clients/ProviderWords.ts";
import { eventStreamMessage } from "../../../src/testing/answers/Bedrock.ts";
import { seeded } from "../../Seeded.ts";
import { interruptedRun } from "./InterruptedRun.ts";

const refusal = (body: string, status = 429): RelayRefusal => ({
  head: { status, statusText: "", headers: [] },
  body: [new TextEncoder().encode(body)],
  whole: true,
});
const givenUpBy = (body: string): GivenUp =>
  finalFailureOf(interruptedRun({ failure: { kind: "rate_limited" } }, refusal(body)));
const told = (message: string, code?: string) => givenUpBy(JSON.stringify({ error: { message, code } }));
const verbatim = { asksByWords: false };
const careful = { asksByWords: true };

describe("a provider's words", () => {
  it("come first, followed by the gateway's own", () => {
    assert.strictEqual(
      sentenceOf(told("Weekly limit reached, resets 12am (UTC)", "weekly_limit"), verbatim),
      `stream-recovery gateway: the model provider says "Weekly limit reached, resets 12am (UTC)" (weekly_limit): the model provider accepts no more requests for now. 4 attempts were made. There are no further attempts.`,
    );
  });

  it("are kept except for the words by which a client asks again", () => {
    const text = sentenceOf(
      told("Rate limit reached for org blue: 12 of 12 per minute. Please try again in 20s.", "429"),
      careful,
    );
    assert.include(text, 'says "[…] reached for org blue: 12 of 12 per minute. Please […] in 20s."');
    assert.isFalse(isTransientText(text));
    const all = sentenceOf(told("Overloaded", "overloaded_error"), careful);
    assert.strictEqual(all, givenUpBy("").message);
  });

  it("make no client ask again, for any text", () => {
    const words =
      "overloaded rate limit try again 429 15030 timeout connection lost econnreset blue reached a . : […] _".split(
        " ",
      );
    const random = seeded(20261129);
    for (let times = 0; times < 5_000; times += 1) {
      const text = Array.from({ length: 8 }, () => words[Math.floor(random() * words.length)]).join(
        random() < 0.3 ? "" : " ",
      );
      assert.isFalse(isTransientText(sentenceOf(told(text, text), careful)), text);
      assert.isFalse(isTransientText(withoutPassing(text) ?? ""), text);
    }
  });

  it("are one line of a bounded length", () => {
    const text = sentenceOf(told(`a\n\tb\u0000 "c" ${"x ".repeat(5_000)}`), verbatim);
    assert.include(text, `says "a b 'c' x x`);
    assert.isBelow(text.length, quoteCharactersMax + 300);
  });

  it("are those of the upstream that a router quotes, and never a page", () => {
    const raw = JSON.stringify({ error: { message: "blue team is full", code: "x" } });
    const routed = givenUpBy(
      JSON.stringify({ error: { message: "Provider returned error", code: 429, metadata: { raw } } }),
    );
    assert.include(sentenceOf(routed, verbatim), 'says "blue team is full"');
    assert.notInclude(sentenceOf(givenUpBy("<html>nginx</html>"), verbatim), "nginx");
    assert.include(sentenceOf(givenUpBy("no healthy upstream"), verbatim), 'says "no healthy upstream"');
  });

  it("are those inside a binary message of Amazon's", () => {
    const bytes = eventStreamMessage(
      { ":message-type": "exception", ":exception-type": "throttlingException" },
      JSON.stringify({ message: "Too many tokens for blue" }),
    );
    const text = sentenceOf(finalFailureOf(interruptedRun({ cause: { bytes } })), verbatim);
    assert.include(text, 'says "Too many tokens for blue"');
  });

  it("contain the title of a web page, which the gateway's own message does not", () => {
    const page: RelayRefusal = {
      head: { status: 200, statusText: "", headers: [["content-type", "text/html"]] },
      body: [new TextEncoder().encode("<html><title>Sign in as blue</title></html>")],
      whole: true,
    };
    const given = finalFailureOf(interruptedRun({ failure: { kind: "protocol", reason: "not_a_stream" } }, page));
    const { said, ...own } = given;
    assert.notInclude(JSON.stringify(own), "blue");
    for (const words of [verbatim, careful])
      assert.include(
        sentenceOf(given, words),
        '(text/html) arrived instead of the model provider\'s response, with the title "Sign in as blue"',
      );
  });

  it("are absent if the provider sent none", () => {
    for (const body of ["", "{}", '{"error":{"message":"…"}}'])
      assert.strictEqual(sentenceOf(givenUpBy(body), verbatim), givenUpBy(body).message);
  });

  it("contain no credential", () => {
    const keys = [
      "sk-ant-REDACTED",
      "sk-ab***xyz9",
      "AIzaSyA1234567890abcdefghijklmnopqrstuv",
      "9a1b2c3d4e5f60718293a4b5c6d7e8f9",
      "gsk_abcDEF1234567",
    ];
    for (const key of keys) {
      const text = sentenceOf(told(`Key ${key} is not good, Bearer ${key}, api_key: "${key}"`), verbatim);
      assert.notInclude(text, key);
      assert.include(text, "is not good");
    }
    assert.strictEqual(redact("no hunter-2 here", ["hunter-2"]), "no [redacted] here");
    for (const kept of [
      "claude-sonnet-4-5-20250929",
      "req_011CQabcdefghijk1234567890",
      "resets at 2026-11-30 00:00",
      "max_tokens: 128000",
    ])
      assert.strictEqual(redact(kept, []), kept);
    const json = JSON.stringify({ error: { message: "no", token: "abcdefgh12345678", password: "abcdefgh12345678" } });
    assert.doesNotThrow(() => JSON.parse(redact(json, [])));
  });

  it("are remembered only up to their limit", () => {
    assert.isBelow(toldBodyCharactersMax, 65_536);
    assert.strictEqual(givenUpBy("x".repeat(10_000)).said?.response?.body.length, 10_000);
  });
});
