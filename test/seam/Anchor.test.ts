/** The anchor: where it begins, what of it is quoted, and when there is none. */
import { assert, describe, it } from "@effect/vitest";
import { type Anchor, anchorOf } from "../../src/seam/Anchor.ts";

const found = (run: string): Anchor => {
  const anchor = anchorOf(run);
  if (typeof anchor === "string") throw new Error(anchor);
  assert.strictEqual(anchor.text, run.slice(anchor.at));
  return anchor;
};

const numbers = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, index) => String(from + index)).join(" ");

describe("the anchor of a shown text", () => {
  it("begins at the latest sentence that leaves 40 characters, and ends with the last one, cut word included", () => {
    const run = "One sentence. The second one is long enough to be quoted whole. And a th";
    assert.strictEqual(found(run).text, "The second one is long enough to be quoted whole. And a th");
    assert.strictEqual(found(run).quote, found(run).text);
  });

  it("begins at the cut sentence where that alone weighs enough", () => {
    const cut = "And this sentence is cut behind more than forty chara";
    assert.strictEqual(found(`One sentence. ${cut}`).text, cut);
  });

  it("begins at a line as at a sentence, behind its indentation", () => {
    assert.strictEqual(
      found("Steps\n  - the first item of the list is here\n  - the sec").text,
      "- the first item of the list is here\n  - the sec",
    );
  });

  it("counts a Chinese character or a picture twice: twenty are enough", () => {
    const cut = "水山火木金土日月天地风云花草鸟鱼河石答模";
    assert.strictEqual(found(`这是第一句话。${cut}`).text, cut);
    assert.strictEqual(found(`这是第一句话。${cut.slice(1)}`).at, 0);
  });

  it("finds the ends of sentences of other scripts", () => {
    const hindi = "यह दूसरा वाक्य है और यह काफ़ी लंबा होने वाला है ताकि";
    assert.strictEqual(found(`नदी बहती है। ${hindi}`).text, hindi);
    const arabic = "هذه هي الجملة الثانية وهي طويلة بما يكفي لكي تقتبس هنا";
    assert.strictEqual(found(`هل هذا هو؟ ${arabic}`).text, arabic);
  });

  it("is all that was shown where that is less: the model starts over", () => {
    assert.deepStrictEqual(found("S"), { at: 0, text: "S", quote: "S" });
    assert.strictEqual(found("One. Two. Three. Four. Five.").at, 0);
    assert.strictEqual(found("  It is").at, 2);
  });

  it("begins in a sentence of more than 400 characters at a word, 340 from the end or a little more", () => {
    const { at, text } = found(numbers(1_000, 1_400));
    assert.isAtLeast(text.length, 340);
    assert.isAtMost(text.length, 345);
    assert.strictEqual(numbers(1_000, 1_400)[at - 1], " ");
  });

  it("begins at a character as readers see it where there are no words: never in a family, a flag or behind a letter's mark", () => {
    const family = "👨‍👩‍👧‍👦";
    const people = Array.from(
      { length: 120 },
      (_, index) => family + String.fromCodePoint(0x1f600 + (index % 70)) + String.fromCodePoint(0x4e00 + index),
    );
    for (let cut = 0; cut < 30; cut += 1) {
      const text = found(people.join("").slice(0, -cut || undefined)).text;
      assert.match(text, /^(?:👨‍👩‍👧‍👦|[\u{1f600}-\u{1f645}]|[\u4e00-\u4fff])/u);
    }
  });

  it("is quoted without white space at its end and without half a character, and is compared with both", () => {
    assert.deepStrictEqual(found("Well. \n\n"), { at: 0, text: "Well. \n\n", quote: "Well." });
    assert.deepStrictEqual(found("A smile \ud83d"), { at: 0, text: "A smile \ud83d", quote: "A smile" });
  });

  it("grows back to 800 characters where its beginning stands twice in the text", () => {
    const line = "the very same line of more than forty characters";
    const run = `Something at the front that stands there once, and only once.\n${line}\n${line}\n${line}`;
    assert.strictEqual(found(run).at, 0);
  });

  it("ignores the kind of white space, quotes and dashes in its search for a second occurrence", () => {
    const first = "It's the “first” line – of forty characters";
    const second = `It’s   the "first" line - of forty characters`;
    const run = `A beginning that is not to be found anywhere else at all.\n${first}\n${second}`;
    assert.strictEqual(found(run).at, 0);
  });

  it("is none where the text repeats itself further back than 800 characters", () => {
    assert.strictEqual(anchorOf("the very same line of more than forty characters\n".repeat(30)), "repeats_itself");
    assert.strictEqual(anchorOf("x".repeat(5_000)), "repeats_itself");
    assert.strictEqual(anchorOf("ha ".repeat(100)), "repeats_itself");
  });

  it("is none where nothing but white space was shown, or half a character", () => {
    for (const run of ["", " ", "\n\n\t ", "\ud83d"]) assert.strictEqual(anchorOf(run), "blank");
  });

  it("is found in a text of 64 Ki that repeats itself nearly everywhere, each place read a bounded number of times", () => {
    const run = "a b\n".repeat(16 * 1_024);
    assert.strictEqual(anchorOf(run), "repeats_itself");
    assert.notTypeOf(anchorOf(`${run}and this is how it ends, with something that was never said before`), "string");
  });
});
