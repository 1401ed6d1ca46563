import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { valuesMax } from "../../../src/adapters/relay/form/CanonicalBody.ts";
import * as Json from "../../../src/domain/Json.ts";
import { readKnownBody, wholeBytesMax } from "../../../src/gateway/body/BodyOutline.ts";
import { itemBytesMax, markBytesMax, search, searchBody } from "../../../src/gateway/routes/Bound.ts";
import { seeded } from "../../Seeded.ts";
import { boundBodies, chat, free, item, said } from "./BoundBodies.ts";

const long = "word ".repeat(wholeBytesMax / 5);

/** What is found in a body that is large by a text which stands before all else of it, in a conversation of its own. */
const foundIn = Effect.fnUntraced(function* (body: object, protocol: string) {
  const known = yield* readKnownBody(Buffer.from(JSON.stringify({ system: [{ text: long }], ...body })));
  if (typeof known === "string") throw new Error(known);
  assert.isTrue(known.isOutline);
  return yield* searchBody(known, protocol);
});

describe("The search of a large body", () => {
  it.effect("finds every binding field that the search of a whole body finds, in each protocol", () =>
    Effect.gen(function* () {
      const all = [...boundBodies.map(([, protocol, body]) => [protocol, body] as const), ...Object.entries(free)];
      // A conversation in an envelope is not searched, so such a body is bound by its size.
      for (const [protocol, body] of all.filter(([of]) => of !== "google-code-assist"))
        assert.deepStrictEqual(yield* foundIn(body, protocol), search({ ...body }, protocol), JSON.stringify(body));
    }),
  );

  it.effect("finds the same in conversations of many items, in the same order", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= 20; seed += 1) {
        const random = seeded(seed);
        const items = Array.from({ length: 100 }, () => itemOf(random, 4));
        const body = { model: "m", store: false, input: items };
        const found = yield* foundIn(body, "openai-responses");
        assert.deepStrictEqual(found, search(body, "openai-responses"), `seed ${seed}`);
        assert.isAbove(found.marks.length, 0, `seed ${seed}`);
      }
    }),
  );

  it.effect("never mistakes the instructions for the conversation, whichever member comes first", () =>
    Effect.gen(function* () {
      const input = { file_id: "x", deep: [{ signature: "s", thinking: "t" }] };
      const call = { role: "assistant", content: [{ input, type: "tool_use", id: "t", name: "f" }] };
      assert.deepInclude(yield* foundIn({ messages: [call] }, "anthropic-messages"), { bound: undefined, marks: [] });
    }),
  );

  it.effect("reads a long mark whole, and of other long texts that there is one", () =>
    Effect.gen(function* () {
      const mark = "E".repeat(markBytesMax - 2);
      const more = item({ type: "reasoning", text: long, encrypted_content: mark });
      assert.deepStrictEqual((yield* foundIn(more, "openai-responses")).marks, [mark]);
      const beyond = item({ type: "reasoning", encrypted_content: `${mark}E` });
      assert.deepInclude(yield* foundIn(beyond, "openai-responses"), { bound: "encrypted_content" });
    }),
  );

  it.effect("treats a body as bound if it cannot be searched completely", () =>
    Effect.gen(function* () {
      const nested = (levels: number) => Json.parse(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`)?.json;
      assert.strictEqual((yield* foundIn(chat({ messages: [nested(300)] }), "openai-chat")).bound, "size");
      assert.isUndefined((yield* foundIn(chat({ messages: [nested(100)] }), "openai-chat")).bound);
      const many = (count: number) => chat({ messages: Array.from({ length: count }, () => ({})) });
      assert.strictEqual((yield* foundIn(many(valuesMax + 1), "openai-chat")).bound, "size");
      assert.isUndefined((yield* foundIn(many(valuesMax - 99), "openai-chat")).bound);
      const wide = said({ content: Array.from({ length: itemBytesMax / 1_000 + 99 }, () => "x".repeat(1_000)) });
      assert.strictEqual((yield* foundIn(wide, "openai-chat")).bound, "size");
      const wrapped = { model: "m", request: { contents: [{ role: "user", parts: [{ text: "hi" }] }] } };
      assert.strictEqual((yield* foundIn(wrapped, "google-code-assist")).bound, "size");
      // What was found before that binds by its own name.
      assert.strictEqual((yield* foundIn({ ...wide, store: true }, "openai-chat")).bound, "store");
    }),
  );
});

const keys = [
  "id",
  "type",
  "file_id",
  "signature",
  "thinking",
  "data",
  "encrypted_content",
  "name",
  "args",
  "content",
  "a",
];

const itemOf = (random: () => number, depth: number): object => {
  const entries = Array.from({ length: Math.floor(random() * 4) }, () => {
    const key = keys[Math.floor(random() * keys.length)] ?? "";
    const kind = random();
    const value =
      kind < 0.5
        ? `t${Math.floor(random() * 99)}`
        : depth === 0
          ? null
          : kind < 0.8
            ? itemOf(random, depth - 1)
            : [itemOf(random, depth - 1)];
    return [key, value] as const;
  });
  return Object.fromEntries(entries);
};
