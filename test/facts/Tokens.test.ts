/** The cost of a response: the provider's own figure, or an estimate marked as one. */
import { assert, describe, it } from "@effect/vitest";
import { type AttemptFacts, fresh } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { costOf, priceOf } from "../../src/domain/Prices.ts";
import * as Tokens from "../../src/facts/Tokens.ts";
import { seeded } from "../Seeded.ts";

const cut: Failure = { kind: "transport", code: "ECONNRESET" };
const read = (counters: Partial<AttemptFacts["counters"]>, more: Partial<AttemptFacts> = {}): AttemptFacts => ({
  ...fresh,
  delivery: "accepted",
  progress: "output",
  ...more,
  counters: { ...fresh.counters, ...counters },
});

describe("The cost of a response", () => {
  it("is the figure that its provider reports", () => {
    const whole = read({ input_tokens: 900, output_tokens: 30, characters: 4_000 }, { terminal_seen: true });
    assert.deepStrictEqual(Tokens.estimateResponse([whole], undefined, 5), {
      input: 900,
      output: 30,
      estimated: false,
    });
  });

  it("is an estimate without a provider's figure: the caller's count of the request, and a token per four characters", () => {
    assert.deepStrictEqual(Tokens.estimateResponse([read({ characters: 401 })], cut, 250), {
      input: 250,
      output: 101,
      estimated: true,
    });
    assert.deepStrictEqual(Tokens.estimateResponse([read({ characters: 401 })], cut, undefined).input, 0);
  });

  it("treats an output figure before the end as no more than a lower bound: some providers say 1 as they begin", () => {
    const begun = read({ input_tokens: 900, output_tokens: 1, characters: 400 });
    assert.deepStrictEqual(Tokens.estimateResponse([begun], cut, undefined), {
      input: 900,
      output: 100,
      estimated: true,
    });
    const told = read({ input_tokens: 900, output_tokens: 150, characters: 400 });
    assert.deepStrictEqual(Tokens.estimateResponse([told], cut, undefined), {
      input: 900,
      output: 150,
      estimated: false,
    });
  });

  it("is nothing for what was not sent, or what its provider did nothing with", () => {
    const unsent = { ...fresh, delivery: "not_sent" } as const;
    assert.deepStrictEqual(Tokens.estimateResponse([unsent], cut, 250), Tokens.free);
    const limited: Failure = { kind: "rate_limited", status: 429 };
    assert.deepStrictEqual(Tokens.estimateResponse([read({}, { progress: "none" })], limited, 250), Tokens.free);
    assert.deepStrictEqual(
      Tokens.estimateResponse([read({}, { progress: "none" })], { kind: "rejected", reason: "quota" }, 250),
      Tokens.free,
    );
    // After its start the provider has worked, whatever it says.
    assert.strictEqual(Tokens.total(Tokens.estimateResponse([read({ characters: 4 })], limited, 250)), 251);
    // A server error may have been processed.
    assert.strictEqual(
      Tokens.total(
        Tokens.estimateResponse([read({}, { progress: "none" })], { kind: "server_error", status: 500 }, 250),
      ),
      250,
    );
  });

  it("is one sum over all attempts that read the same response: its request is paid once", () => {
    const first = read({ input_tokens: 900, characters: 400 });
    const resumed = read({ characters: 200 });
    assert.deepStrictEqual(Tokens.estimateResponse([first, resumed], cut, 250), {
      input: 900,
      output: 150,
      estimated: true,
    });
    // Only the last attempt was refused, so everything read before is paid for.
    const turnedAway = read({}, { progress: "none" });
    assert.strictEqual(Tokens.total(Tokens.estimateResponse([first, turnedAway], { kind: "overloaded" }, 250)), 1_000);
  });
});

describe("The tokens of a request", () => {
  it("are estimated from its characters, and a file in base64 counts as an image of whatever size", () => {
    assert.strictEqual(Tokens.estimateRequest(undefined), 0);
    const plain = JSON.stringify({ messages: [{ role: "user", content: "word ".repeat(80) }] });
    assert.strictEqual(Tokens.estimateRequest(plain), Math.ceil(plain.length / 4));
    assert.strictEqual(Tokens.estimateRequest(new TextEncoder().encode(plain)), Tokens.estimateRequest(plain));
    const image = (bytes: number) => `data:image/png;base64,${Buffer.alloc(bytes, 7).toString("base64")}`;
    const small = Tokens.estimateRequest(JSON.stringify({ url: image(3_000) }));
    assert.strictEqual(Tokens.estimateRequest(JSON.stringify({ url: image(3_000_000) })), small);
    assert.isAtLeast(small, Tokens.tokensPerImage);
    assert.isAtMost(small, Tokens.tokensPerImage + 20);
  });

  it("equal a count of every character, although few are looked at", () => {
    for (let seed = 1; seed <= 400; seed += 1) {
      const random = seeded(seed);
      const pieces = Array.from({ length: 1 + Math.floor(random() * 6) }, () => {
        const kind = random();
        const length = kind < 0.3 ? random() * 40 : kind < 0.6 ? 1_000 + random() * 50 : random() * 9_000;
        return "aZ09+/-_".charAt(Math.floor(random() * 8)).repeat(Math.floor(length));
      });
      const text = pieces.join('","');
      const counted = text.split(/([\w+/-]{1024,})/);
      const plain = counted.filter((_, n) => n % 2 === 0).join("").length;
      const expected = Math.ceil(plain / 4) + Math.floor(counted.length / 2) * Tokens.tokensPerImage;
      assert.strictEqual(Tokens.estimateRequest(text), expected, `seed ${seed}`);
    }
  });
});

describe("A table of prices", () => {
  const prices = {
    "gpt-5": { input: 1, output: 10 },
    "gpt-5*": { input: 2, output: 20 },
    "gpt-5-mini*": { input: 0.25, output: 2 },
    "*": { input: 9, output: 9 },
  };

  it("finds a model by its whole name, or by the longest prefix it has", () => {
    const inputOf = (model: string | undefined) => priceOf(prices, model)?.input;
    assert.deepStrictEqual(["gpt-5", "gpt-5.2", "gpt-5-mini-2026", "claude", undefined].map(inputOf), [
      1,
      2,
      0.25,
      9,
      undefined,
    ]);
    assert.isUndefined(priceOf({ "gpt-5": prices["gpt-5"] }, "gpt-5.2"));
    assert.isUndefined(priceOf({}, "constructor"));
  });

  it("gives dollars per million tokens", () => {
    assert.strictEqual(costOf({ input: 3, output: 15 }, { input: 1_000_000, output: 100_000 }), 4.5);
  });
});
