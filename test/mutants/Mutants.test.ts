/** Holds the lists of mutants to the sources: each still finds the one place that it changes, and proofs that exist. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { catalogue } from "../../scripts/mutants/runner/Catalogue.ts";
import { declarationsAround, siteOf, sources } from "../../scripts/mutants/runner/Site.ts";
import { withImports } from "./Imported.ts";

const root = new URL("../..", import.meta.url).pathname;

const all = sources(root);
const listed = catalogue();

describe("every mutant finds the one place that it changes", () => {
  for (const { area, mutant } of listed) {
    it(`${area}: ${mutant.name}`, () => {
      const site = siteOf(mutant, all);
      assert.isObject(site, String(site));
      for (const proof of mutant.proofs) {
        if (!("test" in proof)) continue;
        assert.isTrue(existsSync(`${root}/${proof.test}`), proof.test);
        // A name may be put together by its test, so that only its words can be looked for.
        const words = proof.named?.match(/[\w']+/g) ?? [];
        const written = withImports(join(root, proof.test));
        assert.deepStrictEqual(
          words.filter((word) => !written.includes(word)),
          [],
          `${proof.test} names no test "${proof.named}"`,
        );
      }
    });
  }

  it("and has a name of its own", () => {
    const names = listed.map(({ mutant }) => mutant.name);
    assert.deepStrictEqual(
      names.filter((name, at) => names.indexOf(name) !== at),
      [],
    );
  });
});

describe("a place is found by its text and the declaration around it", () => {
  const text = [
    "export class Door {",
    "  #open = false;",
    "",
    "  /** Opens it. */",
    "  open(",
    "    key: string,",
    "  ): boolean {",
    '    if (key === "right") {',
    "      return true;",
    "    }",
    "    return this.#open;",
    "  }",
    "}",
    "",
    "const knock = (times: number) =>",
    "  times * 2;",
    "",
  ].join("\n");
  const file = [{ path: "src/Door.ts", text }];
  const around = (part: string) => {
    const at = text.indexOf(part);
    return declarationsAround(text, at, at + part.length);
  };

  it("in a method of a class", () => {
    assert.includeMembers([...around("return true")], ["open", "Door"]);
    assert.includeMembers([...around("return this.#open;")], ["open", "Door"]);
  });

  it("in a constant, and in a field", () => {
    assert.includeMembers([...around("times * 2")], ["knock"]);
    assert.includeMembers([...around("= false")], ["#open", "Door"]);
    assert.notInclude([...around("times * 2")], "open");
  });

  it("and is told where it is missing, double or elsewhere", () => {
    const asked = (find: string, within: string) => siteOf({ find, within, replace: "other" }, file);
    assert.match(String(asked("nothing like it", "open")), /nowhere/);
    assert.match(String(asked("return", "open")), /2 times/);
    assert.match(String(asked("times * 2", "open")), /has the text in knock/);
    assert.deepStrictEqual(asked("times * 2", "knock"), {
      path: "src/Door.ts",
      original: text,
      mutated: text.replace("times * 2", "other"),
    });
  });
});
