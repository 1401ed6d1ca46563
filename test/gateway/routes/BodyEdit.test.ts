import { assert, describe, it } from "@effect/vitest";
import { membersOf } from "../../../src/adapters/relay/form/JsonMembers.ts";
import {
  type BodyChanges,
  editBody as editedBytes,
  findUneditableField,
} from "../../../src/gateway/routes/BodyEdit.ts";
import { nearlyJson } from "../../adapters/relay/form/JsonTexts.ts";
import { seeded } from "../../Seeded.ts";

const edited = (text: string, changes: BodyChanges): string => {
  const bytes = Buffer.from(text);
  return editedBytes(bytes, membersOf(bytes) ?? assert.fail(text), changes).toString();
};

const set = (...fields: ReadonlyArray<readonly [string, unknown]>) => ({ set: fields, drop: [] });
const drop = (...fields: ReadonlyArray<string>) => ({ set: [], drop: fields });

describe("edited", () => {
  it("sets a field where it stands and leaves every other byte as it was written", () => {
    const body = '{ "seed": 12345678901234567890,\n "model" : "gpt-4o", "t": 1.0, "x": "\\u0041\\/" }';
    assert.strictEqual(
      edited(body, set(["model", "gpt-4o-eu"])),
      '{ "seed": 12345678901234567890,\n "model" : "gpt-4o-eu", "t": 1.0, "x": "\\u0041\\/" }',
    );
  });

  it("adds what is not there, also to an empty object", () => {
    assert.strictEqual(edited('{"a":1}', set(["b", [1]])), '{"a":1,"b":[1]}');
    assert.strictEqual(edited("{}", set(["b", null])), '{"b":null}');
    assert.strictEqual(edited('{"a":{}}', set(["a.b", 2])), '{"a":{"b":2}}');
    assert.strictEqual(edited('{"c":1}', set(["a.b", 2])), '{"c":1,"a":{"b":2}}');
  });

  it("drops a field with its comma, wherever it stands", () => {
    assert.strictEqual(edited('{"a":1, "b":2, "c":3}', drop("a")), '{"b":2, "c":3}');
    assert.strictEqual(edited('{"a":1, "b":2, "c":3}', drop("b")), '{"a":1, "c":3}');
    assert.strictEqual(edited('{"a":1, "b":2, "c":3}', drop("c")), '{"a":1, "b":2}');
    assert.strictEqual(edited('{"a":1}', drop("a")), "{}");
    assert.strictEqual(edited('{"a":1,"b":{"x":1,"y":2}}', drop("b.x", "a")), '{"b":{"y":2}}');
    assert.strictEqual(edited('{"a":1}', drop("b", "c.d")), '{"a":1}');
  });

  it("sets and drops a key that stands there twice in both places: no reader has the old value", () => {
    assert.strictEqual(edited('{"a":1,"a":2}', set(["a", 3])), '{"a":3,"a":3}');
    assert.strictEqual(edited('{"a":1,"b":0,"a":2,"a":4}', drop("a")), '{"b":0}');
  });

  it("reads texts with brackets, commas and escaped quotes as texts, and escaped keys as what they say", () => {
    const body = '{"t":"}{,\\"a\\":9\\\\","\\u0061":{"b":["]","\\\\"]}, "z":{"a":1}}';
    assert.strictEqual(edited(body, set(["a", 0])), '{"t":"}{,\\"a\\":9\\\\","\\u0061":0, "z":{"a":1}}');
  });

  it("writes in ASCII, so that a body of any bytes stays what it was", () => {
    const changed = edited('{"text":"grüße 😀","model":"a"}', set(["model", "é"]));
    assert.strictEqual(changed, '{"text":"grüße 😀","model":"\\u00e9"}');
    const damaged = Buffer.concat([Buffer.from('\ufeff {"text":"'), Buffer.of(0xff), Buffer.from('","model":"a"}\n')]);
    const members = membersOf(damaged) ?? assert.fail("no members");
    const after = editedBytes(damaged, members, set(["model", "b"])).toString("latin1");
    assert.strictEqual(after, damaged.toString("latin1").replace('"a"', '"b"'));
  });

  it("changes several fields at once, each as if it were the only one", () => {
    const body = '{ "a":1,\n"b": {"x":1 , "y":2}, "c":[ ], "d":{} }';
    const changes = {
      set: [
        ["b.y", 3],
        ["b.z", 4],
        ["e", 5],
        ["f.g", 6],
        ["f.h", 7],
      ] as const,
      drop: ["a", "d", "b.x", "f.i", "i"],
    };
    assert.strictEqual(edited(body, changes), '{ "b": {"y":3,"z":4}, "c":[ ] ,"f":{"g":6,"h":7},"e":5}');
    assert.strictEqual(edited('{"a":1 , "b":2}', drop("a", "b")), "{}");
    assert.strictEqual(edited('{"a":1}', { set: [["b", 2]], drop: ["a"] }), '{"b":2}');
  });

  it("changes only the bytes of the fields that are set", () => {
    for (let seed = 1; seed <= 3_000; seed += 1) {
      const bytes = Buffer.from(nearlyJson(seeded(seed)));
      const object = membersOf(bytes);
      if (object === undefined) continue;
      const latin1 = (from: number, to: number) => bytes.toString("latin1", from, to);
      const said = `seed ${seed}: ${bytes.toString("latin1")}`;
      assert.strictEqual(editedBytes(bytes, object, drop()).toString("latin1"), latin1(0, bytes.length), said);
      const named = object.members.filter(({ key }) => key === "a");
      let at = 0;
      let expected = "";
      for (const { from, to } of named) {
        expected += `${latin1(at, from)}7`;
        at = to;
      }
      if (named.length === 0) continue;
      assert.strictEqual(
        editedBytes(bytes, object, set(["a", 7])).toString("latin1"),
        expected + latin1(at, bytes.length),
        said,
      );
    }
  });

  it("does to any body what the same change does to its value", () => {
    const next = seeded(12);
    const pick = <A>(all: ReadonlyArray<A>): A => all[Math.floor(next() * all.length)] as A; // the index is within
    const names = ["a", "b", "model", "c"];
    const scalars = [0, -1.5e-7, "", 'a"b\\', "}{][,:", "é\ud83d", true, null];
    const anyValue = (depth: number): unknown => {
      const kind = depth === 0 ? 0 : Math.floor(next() * 3);
      if (kind === 0) return pick(scalars);
      const count = Math.floor(next() * 4);
      if (kind === 1) return Array.from({ length: count }, () => anyValue(depth - 1));
      return objectOf(depth - 1, count);
    };
    const objectOf = (depth: number, count: number): Record<string, unknown> =>
      Object.fromEntries(Array.from({ length: count }, () => [pick(names), anyValue(depth)]));
    for (let round = 0; round < 3_000; round += 1) {
      const body = objectOf(3, Math.floor(next() * 4));
      const [outer, inner, given] = [pick(names), pick(names), anyValue(2)];
      const text = JSON.stringify(body, undefined, Math.floor(next() * 3));
      assert.deepStrictEqual(JSON.parse(edited(text, set([outer, given]))), { ...body, [outer]: given }, text);
      const { [outer]: _, ...others } = body;
      assert.deepStrictEqual(JSON.parse(edited(text, drop(outer))), others, text);
      const field = `${outer}.${inner}`;
      if (findUneditableField(body, set([field, given])) !== undefined) continue;
      const held: Record<string, unknown> = { ...(body[outer] ?? {}) };
      const having = { ...body, [outer]: { ...held, [inner]: given } };
      assert.deepStrictEqual(JSON.parse(edited(text, set([field, given]))), having, text);
      delete held[inner];
      const without = outer in body ? { ...body, [outer]: held } : body;
      assert.deepStrictEqual(JSON.parse(edited(text, drop(field))), without, text);
    }
  });
});

describe("obstacle", () => {
  it("is a field that would go into what is no object: what would have to be guessed is not sent", () => {
    assert.strictEqual(findUneditableField({ a: "text" }, set(["a.b", 1])), "a.b");
    assert.strictEqual(findUneditableField({ a: [1] }, drop("a.b")), "a.b");
    assert.strictEqual(findUneditableField({ a: null }, drop("a.b")), "a.b");
    assert.isUndefined(findUneditableField({ a: {} }, set(["a.b", 1], ["c", 1])));
    assert.isUndefined(findUneditableField({}, set(["constructor.b", 1])));
  });
});
