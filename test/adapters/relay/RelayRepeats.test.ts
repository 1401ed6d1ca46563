import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import OpenAI from "openai";
import { RelayRepeats, remainingBudget, repeatMs, repeatsMax } from "../../../src/adapters/relay/RelayRepeats.ts";
import { setup } from "../fetch/Cases.ts";

const request = (body: string, headers: Record<string, string> = {}) => ({
  method: "POST",
  url: "https://api.example/v1/responses",
  headers: Object.entries(headers),
  body,
});
const failed = { run_id: "run_1", spent: 2, cancelled: false };

describe("RelayRepeats", () => {
  it.effect("gives what a request repeats once, and only for the same credential, address and body", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      yield* repeats.put(request("a", { authorization: "k" }), failed);
      assert.isUndefined(yield* repeats.take(request("b", { authorization: "k" })));
      assert.isUndefined(yield* repeats.take(request("a", { authorization: "other" })));
      assert.strictEqual((yield* repeats.take(request("a", { Authorization: "k" })))?.run_id, "run_1");
      assert.isUndefined(yield* repeats.take(request("a", { authorization: "k" })));
    }),
  );

  it.effect("forgets after a minute", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      yield* repeats.put(request("a"), failed);
      yield* TestClock.adjust(repeatMs + 1);
      assert.isUndefined(yield* repeats.take(request("a")));
    }),
  );

  it.effect("takes a request that was given up for a repeat only where it says so", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      yield* repeats.put(request("a"), { ...failed, cancelled: true });
      assert.isUndefined(yield* repeats.take(request("a")));
      assert.isDefined(yield* repeats.take(request("a", { "x-stainless-retry-count": "1" })));
    }),
  );

  it.effect("remembers a bounded number of requests", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      for (let index = 0; index <= repeatsMax; index++) yield* repeats.put(request(String(index)), failed);
      assert.isUndefined(yield* repeats.take(request("0")));
      assert.isDefined(yield* repeats.take(request("1")));
    }),
  );

  it("leaves of a budget what was not spent", () => {
    assert.deepStrictEqual(remainingBudget({}, { ...failed, spent: 4 }), { max_auto_retries: 0, max_not_processed: 1 });
    assert.deepStrictEqual(remainingBudget({ max_elapsed_ms: 1 }, undefined), { max_elapsed_ms: 1 });
  });

  it.live("a client's own retries share the budget of the first: they are not multiplied", () =>
    Effect.gen(function* () {
      const retryOf: Array<string | undefined> = [];
      const { fetch: made, server } = yield* setup(
        { answers: [{ content: [{ text: 1 }], break: { kind: "rst", at: "before_head" } }] },
        { onEvent: (event, run) => void (event._tag === "RunInterrupted" && retryOf.push(run.retry_of)) },
      );
      const client = new OpenAI({ apiKey: "k", baseURL: `${server.url}/v1`, fetch: made, maxRetries: 2 });
      const asked = client.chat.completions.create({ model: "m", messages: [], stream: true });
      yield* Effect.promise(() => asked.then(() => undefined).catch(() => undefined));
      // Four of the first run, and one of each that repeats it.
      assert.strictEqual((yield* server.log).length, 6);
      assert.strictEqual(retryOf.length, 3);
      assert.isUndefined(retryOf[0]);
      assert.isDefined(retryOf[2]);
    }),
  );
});
