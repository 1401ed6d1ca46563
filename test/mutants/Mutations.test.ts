/** Holds the operators behind `npm run mutants -- --sample` to the changes that they promise, and to the places that they leave alone. */
import { assert, describe, it } from "@effect/vitest";
import { mutationsOf, sampleOf } from "../../scripts/mutants/sample/Mutations.ts";
import { seeded } from "../Seeded.ts";

/** Each mutation as the whole source after it. */
const changed = (text: string): ReadonlyArray<string> =>
  mutationsOf("a.ts", text).map(({ end, replace, start }) => text.slice(0, start) + replace + text.slice(end));

describe("mutations of a source", () => {
  it.each([
    ["if (a) b();", ["if (true) b();", "if (false) b();", "if (a) ;"]],
    ["const x = a ? 1 : 2;", ["const x = !(a) ? 1 : 2;", "const x = a ? 2 : 2;", "const x = a ? 1 : 3;"]],
    ["const x = a < b;", ["const x = a <= b;"]],
    ["const x = a === b;", ["const x = a !== b;"]],
    ["const x = a && b;", ["const x = ((a) || (b));"]],
    ["const x = a ?? b;", ["const x = (b);"]],
    ["const x = a + b;", ["const x = a - b;"]],
    ["const x = !a;", ["const x = a;"]],
    ["const x = true;", ["const x = false;"]],
    ["const x = list.filter(f);", ["const x = list;"]],
    ["const x = list.some(f);", ["const x = list.every(f);"]],
    ["total += n;", [";", "total -= n;"]],
    ["count++;", [";", "count--;"]],
  ])("of `%s` are all that its operators make", (text, expected) => {
    assert.sameMembers([...changed(text)], expected);
  });

  it.each([
    'import { a } from "b";',
    "type A = 1 | 2;",
    "type A<T = 1> = T;",
    "interface A { readonly of: 1 }",
    "const x: Array<1> = y as Array<2>;",
    "const x = `a` + b;",
    'const x = "1";',
  ])("leave `%s` alone: it is a type, an import or text", (text) => {
    assert.deepStrictEqual(changed(text), []);
  });

  it("name their line, and count offsets in UTF-16 units", () => {
    const [first] = mutationsOf("a.ts", 'const é = "😀";\nconst x = a < b;\n');
    assert.deepInclude(first, { line: 2, find: "a < b", replace: "a <= b" });
  });

  it("of a source that does not parse name the file", () => {
    assert.throws(() => mutationsOf("a.ts", "const = ;"), /^a\.ts: /);
  });

  it("are drawn by a seed, none of them twice", () => {
    const all = mutationsOf("a.ts", Array.from({ length: 50 }, (_, n) => `f${n}();`).join("\n"));
    const sample = sampleOf(all, 20, seeded(7));
    assert.deepStrictEqual(sample, sampleOf(all, 20, seeded(7)));
    assert.strictEqual(new Set(sample.map(({ start }) => start)).size, 20);
    assert.lengthOf(sampleOf(all, 99, seeded(7)), 50);
  });
});
