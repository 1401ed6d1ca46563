/** What the request of a continuation has of the first one, and what is refused before anything is sent (DESIGN.md, 16). */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { layer } from "../RelayCases.ts";
import { honest, type Replies, written } from "./HonestModel.ts";
import { planOf, played, readAs } from "./SeamCases.ts";

const said = {
  text: "The lock is taken in open() and given back in close(), which is what a caller has to know of it.",
};
const chat = "openai-chat";

const asked = (
  headers: ReadonlyArray<readonly [string, string]>,
  more: object = {},
  model: Replies = honest(chat, said, [6]),
) => Effect.scoped(played(planOf(chat, more, headers), model));

describe("the request of a continuation", () => {
  it.live("goes to the same address with the same credential, and without the first request's idempotency key", () =>
    Effect.gen(function* () {
      const got = yield* asked([
        ["Authorization", "Bearer k"],
        ["Content-Type", "application/json"],
        ["Content-Length", "12"],
        ["Idempotency-Key", "stainless-node-retry-1"],
        ["OpenAI-Organization", "o"],
      ]);
      const [first, next] = got.asked;
      assert.strictEqual(next?.path, first?.path);
      assert.deepStrictEqual(next?.headers, {
        authorization: "Bearer k",
        "content-type": "application/json",
        "openai-organization": "o",
      });
      assert.isDefined(first?.headers["idempotency-key"]);
    }).pipe(Effect.provide(layer)),
  );

  it.live("keeps everything that was asked, and adds what was shown and the words about it", () =>
    Effect.gen(function* () {
      const got = yield* asked([], { temperature: 0.5, stream_options: { include_usage: true } });
      const body = got.asked[1]?.body;
      const { messages, ...rest } = (body ?? {}) as { readonly messages: ReadonlyArray<object> };
      assert.deepStrictEqual(rest, {
        ...{ model: "m", stream: true, temperature: 0.5, stream_options: { include_usage: true } },
      });
      assert.strictEqual(messages.length, 3);
      assert.deepInclude(messages[1] as object, { role: "assistant", content: said.text.slice(0, 35) });
    }).pipe(Effect.provide(layer)),
  );

  const refused: ReadonlyArray<readonly [string, ReadonlyArray<readonly [string, string]>, object]> = [
    ["whose body is signed by its headers", [["Signature", "sig1=:abc:"]], {}],
    ["whose credential signs the body", [["Authorization", "AWS4-HMAC-SHA256 Credential=a"]], {}],
    ["whose body cannot be read here", [["Content-Encoding", "gzip"]], {}],
    ["that asks for JSON", [], { response_format: { type: "json_object" } }],
    ["that its provider stores", [], { store: true }],
  ];

  for (const [name, headers, more] of refused) {
    it.live(`of a request ${name} is never sent, and the response breaks as ever`, () =>
      Effect.gen(function* () {
        const got = yield* asked(headers, more);
        assert.deepStrictEqual([got.end, got.asked.length], ["text_shown", 1]);
        assert.isFalse(readAs(chat, got.text).whole);
      }).pipe(Effect.provide(layer)),
    );
  }

  it.live("is another attempt of the same response: its head and its refusal are none of the client's", () =>
    Effect.gen(function* () {
      const events = written(chat, said, { number: 1, piece: 7 });
      const got = yield* asked([], {}, (_, number) =>
        number === 1
          ? { events, breakAt: 6 }
          : { events: [], refused: { status: 401, body: '{"error":{"message":"no"}}' } },
      );
      assert.strictEqual(got.text, events.slice(0, 6).join(""));
      assert.deepInclude(got.head, ["x-reply", "1"]);
      assert.deepStrictEqual([got.end, got.asked.length], ["recovery_refused", 2]);
    }).pipe(Effect.provide(layer)),
  );

  it.live("that ends with the provider's error event breaks the response: that event is of another one", () =>
    Effect.gen(function* () {
      const events = written(chat, said, { number: 1, piece: 7 });
      const error = 'data: {"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}\n\n';
      for (const reply of [[error], [...written(chat, said, { number: 2, piece: 7 }).slice(0, 3), error]]) {
        const got = yield* asked([], {}, (_, number) => ({
          events: number === 1 ? events : reply,
          ...(number === 1 ? { breakAt: 6 } : {}),
        }));
        assert.strictEqual(got.text, events.slice(0, 6).join(""));
        assert.deepStrictEqual([got.end, got.asked.length], ["recovery_refused", 2]);
      }
    }).pipe(Effect.provide(layer)),
  );

  it.live("as a prefill goes on behind it; where the provider answers 400, the anchor is asked for instead", () =>
    Effect.gen(function* () {
      const prefills = [{ origin: "https://api.example", model: "*", form: "trailing" }] as const;
      const model = honest(chat, said, [6]);
      const options = { prefills };
      const plan = planOf(chat, { model: "taken" });
      const taken = yield* Effect.scoped(played(plan, model, options));
      assert.deepStrictEqual([taken.asked[1]?.prefill, taken.asked[1]?.quote], [said.text.slice(0, 35), undefined]);
      assert.strictEqual(readAs(chat, taken.text).text, said.text);
      const refuses: Replies = (one, number) =>
        one.prefill === undefined
          ? model(one, number)
          : { events: [], refused: { status: 400, body: '{"error":{"message":"no prefill"}}' } };
      const fell = yield* Effect.scoped(played(planOf(chat, { model: "refuses" }), refuses, options));
      assert.deepStrictEqual(
        fell.asked.map(({ prefill, quote }) => [prefill !== undefined, quote !== undefined]),
        [
          [false, false],
          [true, false],
          [false, true],
        ],
      );
      assert.strictEqual(readAs(chat, fell.text).text, said.text);
    }).pipe(Effect.provide(layer)),
  );
});
