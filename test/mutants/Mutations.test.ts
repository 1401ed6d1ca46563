/**
 * Holds the operators behind `npm run mutants -- --sample` to the changes that they promise, and to the places that they leave alone, and
 * its report to the survivors that are explained.
 */
import { assert, describe, it } from "@effect/vitest";
import { withoutOverlaps } from "../../scripts/mutants/sample/Apply.ts";
import { type Mutation, mutationsOf, sampleOf } from "../../scripts/mutants/sample/Mutations.ts";
import { NearTests } from "../../scripts/mutants/sample/NearTests.ts";
import {
  allMutations,
  explains,
  explanations,
  reportSample,
  type Sampled,
} from "../../scripts/mutants/sample/Survivors.ts";
import { seeded } from "../Seeded.ts";
import { long } from "../Suites.ts";

const root = new URL("../..", import.meta.url).pathname;

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
    "const x = a.toString();",
  ])("leave `%s` alone: it is a type, an import or text", (text) => {
    assert.deepStrictEqual(changed(text), []);
  });

  it("name their line, and count offsets in UTF-16 units", () => {
    const [first] = mutationsOf("a.ts", 'const é = "😀";\nconst x = a < b;\n');
    assert.deepInclude(first, { line: 2, on: "const x = a < b;", find: "a < b", replace: "a <= b" });
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

const mutation = (path: string, start: number, end: number): Mutation => ({
  path,
  line: 1,
  on: "a < b",
  operator: "comparison",
  find: "a < b",
  start,
  end,
  replace: "a <= b",
});

it("mutations of the same text are tried apart", () => {
  const [outer, inner, later] = [mutation("a.ts", 0, 9), mutation("a.ts", 4, 9), mutation("a.ts", 9, 12)] as const;
  const elsewhere = mutation("b.ts", 0, 9);
  assert.deepStrictEqual(withoutOverlaps([outer, inner, later, elsewhere]), [[outer, later, elsewhere], [inner]]);
});

describe("the tests of a source file", () => {
  const near = new NearTests(root).of("src/facts/Facts.ts");

  it("begin with the file of the same name, then its folder", () => {
    assert.strictEqual(near[0], "test/facts/Facts.test.ts");
    assert.isTrue(near.slice(0, 4).includes("test/facts/Growth.test.ts"), near.slice(0, 4).join());
  });

  it("have recorded behaviour of the room before other tests", () => {
    const [first] = new NearTests(root).of("src/runtime/recovery/Asking.ts");
    assert.strictEqual(first, "test/simulation/Simulation.test.ts");
  });

  it("are quick ones that load it, and none that reads the sources as text", () => {
    assert.include(near, "test/runtime/Entrance.test.ts");
    assert.notInclude(near, "test/seam/OddTexts.test.ts");
    assert.deepStrictEqual(
      near.filter((path) => long.includes(path) || path.startsWith("test/mutants/") || path === "test/tidy.test.ts"),
      [],
    );
  });
});

describe("the report of a sample", () => {
  const sampled = (state: Sampled["state"], path: string): Sampled => ({
    mutation: mutation(path, 0, 5),
    state,
    seconds: 1,
  });
  const results = [
    sampled("killed", "src/seam/a.ts"),
    sampled("killed", "src/seam/b.ts"),
    sampled("survived", "src/seam/c.ts"),
    sampled("survived", "src/facts/d.ts"),
    sampled("ill-typed", "src/facts/e.ts"),
  ];
  const known = [{ path: "src/seam/c.ts", on: "a < b", find: "a < b", replace: "a <= b", why: "a is never b" }];

  it("counts an explained survivor as survived, and tells the others", () => {
    const { killedShare, text, unexplained } = reportSample(results, 99, known);
    assert.strictEqual(killedShare, 50);
    assert.strictEqual(unexplained, 1);
    assert.match(text, /EXPLAINED {2}src\/seam\/c\.ts.*\n {4}a is never b/);
    assert.match(text, /SURVIVED {2}src\/facts\/d\.ts.*\n {4}not explained/);
    assert.match(
      text,
      /5 of 99 mutations, 1 of them do not compile\n4 tried: 2 killed \(50\.0 %\), 2 survived, 1 without/,
    );
  });

  it("does not take the explanation of another line", () => {
    const elsewhere = known.map((it) => ({ ...it, on: "while (a < b)" }));
    assert.strictEqual(reportSample(results, 99, elsewhere).unexplained, 2);
  });

  it("counts a mutation that could not be tried as survived", () => {
    const { killedShare, unexplained } = reportSample([sampled("error", "src/seam/c.ts")], 99, known);
    assert.deepStrictEqual([killedShare, unexplained], [0, 1]);
  });
});

it("every explained survivor is still a mutation of the sources", () => {
  const all = allMutations(root);
  assert.deepStrictEqual(
    explanations(root).filter((known) => !all.some((it) => explains(known, it))),
    [],
  );
});
