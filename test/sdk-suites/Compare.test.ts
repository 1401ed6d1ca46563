/** The comparison of an SDK's suite without and with `recoveringFetch`, with outcomes that are made up. */
import { assert, describe, it } from "@effect/vitest";
import { type Both, differences, filesOf, type Outcomes, reasons } from "../../scripts/sdk-suites/Compare.ts";

const outcomes = (of: Readonly<Record<string, boolean>>): Outcomes =>
  new Map(Object.entries(of).map(([test, passed]) => [test, { passed, message: passed ? undefined : "why" }]));

const both = (without: Readonly<Record<string, boolean>>, below: Readonly<Record<string, boolean>>): Both => ({
  without: outcomes(without),
  below: outcomes(below),
});

const table = [{ reason: "known", passes: "without", tests: ["s: a.ts › breaks"] }] as const;

describe("the comparison of two plays of a suite", () => {
  it("finds the reason of a listed difference, and none for another one", () => {
    const played = both(
      { "a.ts › breaks": true, "a.ts › new": true, "b.ts › better": false, "c.ts › same": true, "c.ts › bad": false },
      { "a.ts › breaks": false, "a.ts › new": false, "b.ts › better": true, "c.ts › same": true, "c.ts › bad": false },
    );
    assert.deepStrictEqual(filesOf(played), ["a.ts", "b.ts"]);
    assert.deepStrictEqual(differences("s", played, played, table), [
      { test: "a.ts › breaks", passes: "without", reason: "known", message: "why" },
      { test: "a.ts › new", passes: "without", reason: undefined, message: "why" },
      { test: "b.ts › better", passes: "with", reason: undefined, message: "why" },
    ]);
  });

  it("finds no reason for a test of another suite, or for one that fails the other way round", () => {
    const worse = both({ "a.ts › breaks": true }, { "a.ts › breaks": false });
    assert.isUndefined(differences("other", worse, worse, table)[0]?.reason);
    const better = both({ "a.ts › breaks": false }, { "a.ts › breaks": true });
    assert.isUndefined(differences("s", better, better, table)[0]?.reason);
  });

  it("drops a difference only if the test ran again and came out the same both ways", () => {
    const first = both({ "a.ts › x": true }, { "a.ts › x": false });
    assert.deepStrictEqual(differences("s", first, both({ "a.ts › x": true }, { "a.ts › x": true }), []), []);
    assert.strictEqual(differences("s", first, both({}, {}), []).length, 1);
    assert.strictEqual(differences("s", first, both({ "a.ts › x": true }, {}), []).length, 1);
  });

  it("counts a test that did not run with us as a difference", () => {
    const lost = both({ "a.ts › x": true }, {});
    assert.strictEqual(differences("s", lost, lost, []).length, 1);
  });
});

describe("the table of reasons", () => {
  it("names each test once, with a reason", () => {
    const named = reasons.flatMap(({ tests }) => tests);
    assert.strictEqual(new Set(named).size, named.length);
    for (const { reason, tests } of reasons) {
      assert.isAbove(reason.length, 20);
      assert.isAbove(tests.length, 0);
    }
    for (const test of named) assert.match(test, /^[^:]+: [^›]+ › /);
  });
});
