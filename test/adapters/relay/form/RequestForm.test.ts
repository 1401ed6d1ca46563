import { assert, describe, it, vi } from "@effect/vitest";
import { Effect } from "effect";
import { canonicalBytesMax } from "../../../../src/adapters/relay/form/CanonicalBody.ts";
import { membersMax } from "../../../../src/adapters/relay/form/JsonMembers.ts";
import { forEachPart, partsOf, pieceBytes } from "../../../../src/adapters/relay/form/RequestForm.ts";
import { seeded } from "../../../Seeded.ts";
import { anyTree, reference, spelt, type Tree } from "./Spellings.ts";

const formOf = Effect.fnUntraced(function* (body: Uint8Array<ArrayBuffer> | string) {
  const taken: Array<string> = [];
  yield* forEachPart({ words: ["w"], body, leftOut: new Set(["stream"]) }, (part) =>
    taken.push(Buffer.from(part).toString("latin1")),
  );
  const [head, ...parts] = taken;
  return { hasForm: head === '[false,"w"]', form: parts.join(""), parts };
});

/** A member that makes a body too long to be read in one turn. */
const padding = `"pad":"${"x".repeat(canonicalBytesMax)}"`;

const large = (members: string): string => `{${members},${padding}}`;

describe("The form of a request", () => {
  it.effect("stands behind its words, and a body without one is another than that of the same bytes", () =>
    Effect.gen(function* () {
      const form = { words: ["w"], body: '{"b":1, "stream":true, "a":2}', leftOut: new Set(["stream"]) };
      const text = partsOf(form).map((part) => (typeof part === "string" ? part : Buffer.from(part).toString()));
      assert.strictEqual(text.join(""), '[false,"w"]{"a":2,"b":1}');
      assert.deepInclude(yield* formOf(form.body), { hasForm: true, form: '{"a":2,"b":1}' });
      assert.deepInclude(yield* formOf('{"b":1,"b":2}'), { hasForm: false, form: '{"b":1,"b":2}' });
      assert.deepInclude(yield* formOf(large('"b":1,"b":2')), { hasForm: false });
    }),
  );

  it.effect("of a large body has its members in one order and spelling, and none that distinguishes nothing", () =>
    Effect.gen(function* () {
      const one = yield* formOf(large('"stream":true, "b" : [ {"d":1, "c":"A"} ],"a":1.0'));
      const other = yield* formOf(`{ ${padding} , "a":1.0,"b":[{"c":"A","d":1}]}`);
      assert.deepInclude(one, { hasForm: true, form: `{"a":1.0,"b":[{"c":"A","d":1}],${padding}}` });
      assert.strictEqual(one.form, other.form);
      const only = `{"stream":"${"x".repeat(canonicalBytesMax)}"}`;
      assert.deepInclude(yield* formOf(only), { hasForm: true, form: "{}" });
    }),
  );

  it.effect("of a large body is that of the value for each spelling of its short members", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= 12; seed += 1) {
        const random = seeded(seed);
        const trees = ["a", "b", "c"].map((key) => [key, anyTree(random, 4)] as const);
        const tree: Tree = { kind: "object", members: new Map(trees) };
        const expected = `${reference(tree).slice(0, -1)},${padding}}`;
        const form = yield* formOf(`{${padding},${spelt(tree, random).trim().slice(1)}`);
        assert.strictEqual(form.form, Buffer.from(expected).toString("latin1"), `seed ${seed}`);
      }
    }),
  );

  it.effect("of a large body has a long member byte for byte, in pieces", () =>
    Effect.gen(function* () {
      const items = `[${'{"b":1, "a":2},'.repeat(pieceBytes / 10)}1]`;
      const { form, hasForm, parts } = yield* formOf(`{"messages": ${items} ,${padding}}`);
      assert.isTrue(hasForm);
      assert.strictEqual(form, `{"messages":${items},${padding}}`);
      assert.isAtMost(Math.max(...parts.map((part) => part.length)), pieceBytes);
    }),
  );

  it.effect("is none for a large body that can be read in two ways, or is no JSON object", () =>
    Effect.gen(function* () {
      const bodies = [
        large('"a":1,"\\u0061":2'),
        large('"a":01'),
        `${large('"a":1')}x`,
        `[${large('"a":1')}]`,
        `\ufeff${large('"a":1')}`,
        large(Array.from({ length: membersMax }, (_, n) => `"k${n}":1`).join(",")),
      ];
      for (const body of bodies) {
        const { form, hasForm } = yield* formOf(body);
        assert.isFalse(hasForm, body.slice(0, 30));
        assert.strictEqual(form, Buffer.from(body).toString("latin1"), body.slice(0, 30));
      }
      const damaged = Buffer.concat([Buffer.from('{"'), Buffer.of(0xff), Buffer.from(`":1,${padding}}`)]);
      assert.isFalse((yield* formOf(damaged)).hasForm);
    }),
  );

  it.effect("of a large body is made in turns", () =>
    Effect.gen(function* () {
      const turns = vi.spyOn(globalThis, "setImmediate");
      yield* formOf(large('"a":1'));
      assert.isAtLeast(turns.mock.calls.length, (2 * canonicalBytesMax) / pieceBytes - 8);
      turns.mockRestore();
    }),
  );
});
