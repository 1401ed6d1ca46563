import { assert, describe, it } from "@effect/vitest";
import * as RecordChange from "../../../src/recorder/sql/postgres/RecordChange.ts";
import { seeded } from "../../Seeded.ts";

type Json = RecordChange.Json;

const names = ["a", "b", "o", "v", "__proto__", "toString", "0"];

const made = (random: () => number, depth: number): Json => {
  const few = () => Math.floor(random() * 4);
  const kind = depth === 0 ? few() : Math.floor(random() * 7);
  if (kind >= 5) return Array.from({ length: few() }, () => made(random, depth - 1));
  if (kind >= 3 && depth > 0) {
    return Object.fromEntries(names.filter(() => random() < 0.5).map((name) => [name, made(random, depth - 1)]));
  }
  return [null, few(), `text ${few()}`, random() < 0.5, undefined][kind];
};

/** Imitates a fold: unchanged parts are the same objects, changed parts are new ones. */
const grown = (random: () => number, value: Json): Json => {
  if (random() < 0.2) return made(random, 2);
  if (Array.isArray(value)) {
    const items = value.map((item: Json) => (random() < 0.3 ? grown(random, item) : item));
    return random() < 0.3 ? items.slice(1) : [...items, ...(random() < 0.5 ? [made(random, 1)] : [])];
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(() => random() < 0.9)
      .map(([name, field]): [string, Json] => [name, random() < 0.3 ? grown(random, field) : field]),
  );
};

const asText = (value: Json): unknown => JSON.parse(JSON.stringify({ value }));

describe("the change of a record", () => {
  it("turns the first version into the last one, whatever became of it", () => {
    for (let seed = 1; seed <= 2_000; seed += 1) {
      const random = seeded(seed);
      const before = made(random, 4);
      const after = grown(random, before);
      const change = RecordChange.diff({ value: before }, { value: after });
      const kept = change === undefined ? undefined : JSON.parse(JSON.stringify(change));
      assert.deepStrictEqual(RecordChange.apply(asText(before), kept), asText(after), `seed ${seed}`);
    }
  });

  it("is empty if nothing has changed, and minimal otherwise", () => {
    const same = { deep: { list: [1, 2, { x: 1 }] } };
    assert.isUndefined(RecordChange.diff(same, { deep: { list: [1, 2, { x: 1 }] } }));
    assert.deepStrictEqual(RecordChange.diff({ ...same, n: 1 }, { ...same, n: 2 }), { o: { n: { v: 2 } } });
    assert.deepStrictEqual(RecordChange.diff([same, 1], [same, 1, 2]), { i: {}, a: [2] });
  });

  it("of another value is refused", () => {
    assert.throws(() => RecordChange.apply({}, { i: {} }), /a list/);
    assert.throws(() => RecordChange.apply([], { o: {} }), /an object/);
  });
});
