import { createHash } from "node:crypto";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import OpenAI from "openai";
import { type FormDigest, partsOf } from "../../../src/adapters/relay/form/RequestForm.ts";
import {
  RelayRepeats,
  remainingBudget,
  repeatMs,
  repeatsMax,
  toldBodyCharactersMax,
  unmarkedRepeatMs,
  unmarkedRepeatsMax,
} from "../../../src/adapters/relay/RelayRepeats.ts";
import { skewed } from "../../runtime/attempt/SkewedClock.ts";
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

  const digests: Readonly<Record<string, FormDigest | undefined>> = {
    "a digest that every runtime has": undefined,
    "one that is there at once": (form) =>
      partsOf(form)
        .reduce((hash, part) => hash.update(part), createHash("sha256"))
        .digest("hex"),
  };

  for (const [what, digest] of Object.entries(digests))
    it.effect(`knows a repeat however its JSON is spelt, and without streaming, by ${what}`, () =>
      Effect.gen(function* () {
        const first = '{"model":"m","stream":true,"input":"x","client_metadata":{"session":"s","turn":"t"}}';
        const repeated = [
          '{"model":"m","stream":true,"input":"x","client_metadata":{"turn":"t","session":"s"}}',
          '{ "input": "x", "model": "m", "client_metadata": {"session":"s","turn":"t"} }',
          '{"model":"m","stream":false,"stream_options":{"include_usage":true},"input":"x","client_metadata":{"session":"s","turn":"t"}}',
        ];
        for (const body of repeated) {
          const repeats = new RelayRepeats(digest);
          yield* repeats.put(request(first), failed);
          assert.strictEqual((yield* repeats.take(request(body)))?.run_id, "run_1", body);
        }
        const other = [first.replace('"x"', '"y"'), first.replace('"t"}', '"t","n":1}'), `${first} `.replace("m", "n")];
        for (const body of other) {
          const repeats = new RelayRepeats(digest);
          yield* repeats.put(request(first), failed);
          assert.isUndefined(yield* repeats.take(request(body)), body);
        }
      }),
    );

  it.effect("knows a repeat with other max_tokens of claude-code, and of no other client", () =>
    Effect.gen(function* () {
      const asked = (most: number, stream: boolean) =>
        JSON.stringify({ model: "m", max_tokens: most, stream, input: "x" });
      const found = (headers: Record<string, string>) =>
        Effect.gen(function* () {
          const repeats = new RelayRepeats();
          yield* repeats.put(request(asked(128_000, true), headers), failed);
          return (yield* repeats.take(request(asked(64_000, false), headers))) !== undefined;
        });
      assert.isTrue(yield* found({ "user-agent": "claude-cli/2.1.332 (external, sdk-cli)" }));
      assert.isTrue(yield* found({ "x-app": "cli" }));
      assert.isFalse(yield* found({ "user-agent": "OpenAI/JS 7.57.0" }), "it raises its limit after a cut response");
    }),
  );

  it.effect("tells a body without a canonical form by its bytes, and never from a form with the same bytes", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      yield* repeats.put(request('{"a":1,"a":2}'), failed);
      assert.isUndefined(yield* repeats.take(request('{"a":2,"a":1}')));
      assert.isUndefined(yield* repeats.take(request('{"a":2}')));
      assert.isDefined(yield* repeats.take(request('{"a":1,"a":2}')));
      yield* repeats.put({ ...request(""), body: new TextEncoder().encode('{"b":[]}') }, failed);
      assert.isDefined(yield* repeats.take(request('{"b":[]}')), "text and bytes are one body");
    }),
  );

  const told = { message: "m", code: "ECONNRESET", headers: [["x-should-retry", "false"]] } as const;

  it.effect(
    "recalls it to so many requests that do not say they repeat one: a program that samples asks the same",
    () =>
      Effect.gen(function* () {
        const repeats = new RelayRepeats();
        yield* repeats.tell(request("{}"), told);
        for (let n = 0; n < unmarkedRepeatsMax; n += 1) assert.isDefined(yield* repeats.recall(request("{}")));
        assert.isUndefined(yield* repeats.recall(request("{}")));
        assert.isDefined(yield* repeats.recall(request("{}", { "x-stainless-retry-count": "1" })));
      }),
  );

  it.effect("recalls nothing once another run of the request has completed", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      yield* repeats.tell(request("{}"), told);
      yield* repeats.forgetResponse(request('{"a":1}'));
      assert.isDefined(yield* repeats.recall(request("{}")));
      yield* repeats.forgetResponse(request("{}"));
      assert.isUndefined(yield* repeats.recall(request("{}", { "x-stainless-retry-count": "1" })));
    }),
  );

  it.effect("recalls what a client was told to a request at its heels, and later to one that says it is a repeat", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      const marked = { "x-stainless-retry-count": "1" };
      yield* repeats.tell(request("{}", { "Idempotency-Key": "k" }), told);
      yield* TestClock.adjust(unmarkedRepeatMs);
      assert.deepStrictEqual(yield* repeats.recall(request("{}")), { told, ageMs: unmarkedRepeatMs });
      assert.isDefined(yield* repeats.recall(request("{}")), "of all repeats, not of the first only");
      yield* TestClock.adjust(1);
      assert.isUndefined(yield* repeats.recall(request("{}")));
      assert.isUndefined(yield* repeats.recall(request("{}", { "idempotency-key": "other" })));
      assert.isUndefined(yield* repeats.recall(request("{}", { "x-stainless-retry-count": "0" })));
      assert.isDefined(yield* repeats.recall(request("{}", { "idempotency-key": "k" })));
      assert.isDefined(yield* repeats.recall(request('{"stream":false}', marked)));
      assert.isUndefined(yield* repeats.recall(request('{"a":1}', marked)));
      assert.isUndefined(yield* repeats.recall(request("{}", { ...marked, authorization: "another" })));
      yield* TestClock.adjust(repeatMs - unmarkedRepeatMs - 1);
      assert.strictEqual((yield* repeats.recall(request("{}", marked)))?.ageMs, repeatMs);
      yield* TestClock.adjust(1);
      assert.isUndefined(yield* repeats.recall(request("{}", marked)));
    }),
  );

  it.effect("no tenant repeats another one's request, whose credential may be the same", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      const of = (tenant?: string) => ({ ...request("{}"), ...(tenant === undefined ? {} : { tenant }) });
      yield* Effect.all([repeats.put(of("red"), failed), repeats.tell(of("red"), told)]);
      for (const other of [of("blue"), of("")]) assert.isUndefined(yield* repeats.recall(other));
      assert.isUndefined(yield* repeats.take(of()));
      assert.isDefined(yield* repeats.recall(of("red")));
      assert.isDefined(yield* repeats.take(of("red")));
    }),
  );

  it.effect("recalls a provider's own refusal too, but no body that is too long to be remembered", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      const response = { status: 429, headers: [["x-own", "1"]] as const, body: "{}" };
      const said = { message: "full", code: undefined, response };
      const told = { message: "gave up", code: undefined, headers: [] };
      yield* repeats.tell(request("a"), { ...told, said });
      assert.deepStrictEqual((yield* repeats.recall(request("a")))?.told.said, said);
      const body = "x".repeat(toldBodyCharactersMax + 1);
      yield* repeats.tell(request("b"), { ...told, said: { ...said, response: { ...response, body } } });
      assert.deepStrictEqual((yield* repeats.recall(request("b")))?.told.said, { ...said, response: undefined });
    }),
  );

  it.effect("forgets what a client was told when a new run begins, which may end otherwise", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      yield* repeats.tell(request("{}"), told);
      assert.isUndefined(yield* repeats.take(request("{}")), "nothing of a budget was put");
      assert.isUndefined(yield* repeats.recall(request("{}")));
    }),
  );

  it.effect("measures by the clock that nothing sets", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      const { layer, skew } = skewed();
      const at = <A>(effect: Effect.Effect<A>) => Effect.provide(effect, layer);
      yield* at(Effect.all([repeats.put(request("{}"), failed), repeats.tell(request("{}"), told)]));
      skew.wall = 10 * repeatMs;
      assert.strictEqual((yield* at(repeats.recall(request("{}"))))?.ageMs, 0, "a set clock ages nothing");
      skew.monotonic = 10 * repeatMs;
      assert.isUndefined(yield* at(repeats.recall(request("{}"))));
      assert.isUndefined(yield* at(repeats.take(request("{}"))));
    }),
  );

  it.effect("recalls a bounded number of requests, and no idempotency key of any length", () =>
    Effect.gen(function* () {
      const repeats = new RelayRepeats();
      for (let index = 0; index <= repeatsMax; index++) yield* repeats.tell(request(String(index)), told);
      assert.isUndefined(yield* repeats.recall(request("0")));
      assert.isDefined(yield* repeats.recall(request("1")));
      const long = { "idempotency-key": "k".repeat(257) };
      yield* repeats.tell(request("{}", long), told);
      yield* TestClock.adjust(unmarkedRepeatMs + 1);
      assert.isUndefined(yield* repeats.recall(request("{}", long)));
    }),
  );

  it("leaves of a budget what was not spent", () => {
    assert.deepStrictEqual(remainingBudget({}, { ...failed, spent: 2 }), { max_auto_retries: 1, max_not_processed: 1 });
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
