import { assert, describe, it } from "@effect/vitest";
import { canonical, canonicalValue, depthMax, valuesMax } from "../../../../src/adapters/relay/form/CanonicalBody.ts";
import { seeded } from "../../../Seeded.ts";
import { anyTree, type Random, reference, spelt, type Tree } from "./Spellings.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

const form = (text: string | Uint8Array, leftOut: ReadonlyArray<string> = []): string | undefined => {
  const made = canonical(typeof text === "string" ? bytes(text) : text, new Set(leftOut));
  return made === undefined ? undefined : Buffer.from(made).toString("latin1");
};

describe("a body's canonical form", () => {
  it("is the same for every order of keys, at every level, and for every spacing", () => {
    const one = '{"model":"m","meta":{"session":"s","turn":["t",{"b":1,"a":2}]},"input":"x"}';
    const other = '\n{ "input" : "x", "meta": {"turn":[ "t" , {"a":2,"b":1}],\t"session":"s" }, "model":"m" }\r\n';
    assert.isDefined(form(one));
    assert.strictEqual(form(one), form(other));
    assert.strictEqual(form("{}"), "{}");
    assert.strictEqual(form('{"a":[],"b":{}}'), '{"a":[],"b":{}}');
  });

  it("leaves out members of the outermost object only", () => {
    assert.strictEqual(form('{"stream":true,"a":1}', ["stream"]), '{"a":1}');
    assert.strictEqual(form('{"a":{"stream":true}}', ["stream"]), '{"a":{"stream":true}}');
    assert.strictEqual(form('{"stream":true}', ["stream"]), "{}");
  });

  it("of two requests that a provider may read differently is not the same", () => {
    const different = [
      '{"a":1}',
      '{"a":1.0}',
      '{"a":1e0}',
      '{"a":-0}',
      '{"a":0}',
      '{"a":9007199254740992}',
      '{"a":9007199254740993}',
      '{"a":"1"}',
      '{"a":[1]}',
      '{"a":{"1":1}}',
      '{"a":null}',
      '{"a":true}',
      '{"a":"/"}',
      '{"a":"\\/"}',
      '{"a":"\\u002f"}',
      '{"a":"\\ud800"}',
      '{"a":"\ufffd"}',
      '{"a":"é"}',
      '{"a":"e\u0301"}',
      '{"a":""}',
      '{"a":" "}',
      '{"a":"b,c"}',
      '{"a":"b\\",\\"c"}',
      '{"a":["b","c"]}',
      '{"a":["c","b"]}',
      '{"__proto__":{"a":1}}',
      '{"constructor":{"a":1}}',
      '{"b":1}',
      "{}",
    ];
    const forms = different.map((text) => form(text));
    assert.notInclude(forms, undefined);
    assert.strictEqual(new Set(forms).size, different.length);
    const damaged = (byte: number) => new Uint8Array([...bytes('{"a":"'), byte, ...bytes('"}')]);
    assert.strictEqual(new Set([0xff, 0xfe, 0xc0].map((byte) => form(damaged(byte)))).size, 3);
  });

  it("is none where a body could be read in two ways, or is no JSON", () => {
    const none = [
      '{"a":1,"a":2}',
      '{"a":1,"\\u0061":2}',
      '{"x":[{"b":1,"b":1}]}',
      '{"\\"":1}',
      "",
      " ",
      "x",
      "null",
      "1",
      '"text"',
      "[1]",
      "\ufeff{}",
      "{} {}",
      "{}x",
      '{"a":1,}',
      '{,"a":1}',
      '{"a" 1}',
      '{"a":}',
      '{"a":[1 2]}',
      '{"a":[1,]}',
      '{"a":01}',
      '{"a":+1}',
      '{"a":1.}',
      '{"a":.5}',
      '{"a":1e}',
      '{"a":NaN}',
      '{"a":tru}',
      '{"a":truefalse}',
      '{"a":"unfinished',
      '{"a":"unfinished\\"}',
      '{"a":1',
      "{a:1}",
      "{'a':1}",
      "model=m&stream=true",
      '{"a":"\n"}',
      '{"a":"\\x41"}',
    ];
    for (const text of none) assert.isUndefined(form(text), text);
  });

  it("ends within its limits: deep, long and wide bodies have none", () => {
    const nested = (levels: number) => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    assert.isDefined(form(nested(depthMax - 1)));
    assert.isUndefined(form(nested(depthMax)));
    assert.isUndefined(form("[".repeat(1_000_000)));
    assert.isUndefined(form('{"a":'.repeat(1_000_000)));
    const wide = (values: number) => `[${"1,".repeat(values - 2)}1]`;
    assert.isDefined(canonicalValue(bytes(wide(valuesMax))));
    assert.isUndefined(canonicalValue(bytes(wide(valuesMax + 1))));
    assert.isUndefined(form(`{"${"k".repeat(1_000)}":1}`));
    assert.isUndefined(form(`{"a":${"1".repeat(10_000)}}`));
    // A text counts once, whatever its length.
    assert.isDefined(form(`{"a":"${'A\\"'.repeat(valuesMax)}"}`));
  });

  it("of any JSON is JSON of the same value, in one form for all its spellings", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = seeded(seed);
      const value = { top: anything(random, 4), stream: true };
      const spelt = form(JSON.stringify(value));
      const shuffled = JSON.stringify(inAnotherOrder(value, random), null, seed % 4);
      if (spelt === undefined) return assert.fail(`seed ${seed}: ${JSON.stringify(value)}`);
      assert.strictEqual(form(shuffled), spelt, `seed ${seed}`);
      assert.deepStrictEqual(JSON.parse(Buffer.from(spelt, "latin1").toString("utf8")), value, `seed ${seed}`);
      assert.strictEqual(form(Buffer.from(spelt, "latin1")), spelt, `seed ${seed}: it is its own form`);
    }
  });

  it("is the value's own for each of its spellings, and for no other value", () => {
    const forms = new Set<string>();
    const made = (text: string) => Buffer.from(form(text) ?? assert.fail(text), "latin1").toString();
    for (let seed = 1; seed <= 3_000; seed += 1) {
      const random = seeded(seed);
      const tree: Tree = { kind: "object", members: new Map([["top", anyTree(random, 4)]]) };
      const expected = reference(tree);
      for (let spelling = 0; spelling < 3; spelling += 1)
        assert.strictEqual(made(spelt(tree, random)), expected, `seed ${seed}`);
      const changed: Tree = { kind: "object", members: new Map([["top", mutated(tree.members.get("top"), random)]]) };
      if (reference(changed) !== expected)
        assert.notStrictEqual(made(spelt(changed, random)), expected, `seed ${seed}`);
      forms.add(expected);
    }
    assert.isAbove(forms.size, 1_500);
  });

  it("of a value that is no object is made in the same way", () => {
    const value = (text: string) => {
      const made = canonicalValue(bytes(text));
      return made && Buffer.from(made).toString();
    };
    assert.strictEqual(value(' [ {"b":1, "a":2}, "\\u0041", -1.0 ] '), '[{"a":2,"b":1},"\\u0041",-1.0]');
    for (const same of ["7", '"text"', "null", "[]", "{}"]) assert.strictEqual(value(same), same);
    for (const none of ["", "[1] 2", '{"a":1,"a":1}', "truex"]) assert.isUndefined(value(none), none);
  });
});

/** A value with one difference somewhere in it. */
const mutated = (tree: Tree | undefined, random: Random): Tree => {
  if (tree === undefined || random() < 0.2) return anyTree(random, 2);
  if (tree.kind === "text") return { kind: "text", text: `${tree.text}\u0000` };
  if (tree.kind === "word") return { kind: "word", word: tree.word === "0" ? "-0" : "0" };
  if (tree.kind === "list") {
    const at = Math.floor(random() * tree.items.length);
    return { kind: "list", items: tree.items.map((item, index) => (index === at ? mutated(item, random) : item)) };
  }
  const at = Math.floor(random() * tree.members.size);
  const members = [...tree.members].map(([key, item], index) =>
    index === at ? ([random() < 0.3 ? `${key}!` : key, mutated(item, random)] as const) : ([key, item] as const),
  );
  return { kind: "object", members: new Map(members) };
};

const anything = (random: Random, depth: number): unknown => {
  const kind = Math.floor(random() * (depth > 0 ? 7 : 5));
  if (kind === 0) return Math.floor(random() * 1e6) / 100;
  if (kind === 1) return ["", 'say "hi"\\', "é\n\u0000", "{[,]}:", "𝒳"][Math.floor(random() * 5)];
  if (kind === 2) return random() < 0.5;
  if (kind === 3) return null;
  if (kind === 4) return -random() * 1e-9;
  const parts = Array.from({ length: Math.floor(random() * 5) }, () => anything(random, depth - 1));
  return kind === 5 ? parts : Object.fromEntries(parts.map((part, n) => [`${["k", "é", "a b", ""][n % 4]}${n}`, part]));
};

const inAnotherOrder = (value: unknown, random: Random): unknown => {
  if (Array.isArray(value)) return value.map((item) => inAnotherOrder(item, random));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, inAnotherOrder(item, random)] as const);
  return Object.fromEntries(
    entries
      .map((entry) => ({ entry, at: random() }))
      .sort((a, b) => a.at - b.at)
      .map((it) => it.entry),
  );
};
