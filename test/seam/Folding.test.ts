/**
 * Compares the characters and weights of the seam with plain definitions of them, over every code unit and many texts.
 */
import { assert, describe, it } from "@effect/vitest";
import { fold, foldText, isHighSurrogate, isSpace, weigh, weighAhead, weighBack } from "../../src/seam/Folding.ts";
import { sentenceStarts } from "../../src/seam/SentenceStarts.ts";
import { space, tokenAt, tokensOf } from "../../src/seam/ShownEnd.ts";
import { oneOf, seeded } from "../Seeded.ts";

const units = Array.from({ length: 0x10000 }, (_, unit) => unit);

/** First and last characters of the ranges that weigh 2. */
const wide: ReadonlyArray<readonly [number, number]> = [
  [0x1100, 0x115f],
  [0x2600, 0x27bf],
  [0x2b00, 0x2bff],
  [0x2e80, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe4f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f000, 0x1faff],
  [0x20000, 0x3fffd],
];
const weightOf = (point: number): number => (wide.some(([first, last]) => first <= point && point <= last) ? 2 : 1);

/** Texts of all kinds of characters that are treated differently. */
const texts: ReadonlyArray<string> = (() => {
  const random = seeded(20261130);
  const parts = [
    "a",
    "b",
    " ",
    " ",
    "\n",
    "\r",
    "\t",
    "“",
    "’",
    "–",
    ".",
    "。",
    "!",
    ")",
    "水",
    "😀",
    "\ud83d",
    "\ude00",
    "é",
  ];
  return Array.from({ length: 240 }, (_, at) => Array.from({ length: at % 24 }, () => oneOf(random, parts)).join(""));
})();

/** The units for which two definitions differ. An assertion for each unit would take seconds. */
const differing = (one: (unit: number) => unknown, other: (unit: number) => unknown): ReadonlyArray<number> =>
  units.filter((unit) => one(unit) !== other(unit));

describe("a code unit", () => {
  it("is white space as in a regular expression", () => {
    assert.deepStrictEqual(
      differing(isSpace, (unit) => /\s/.test(String.fromCharCode(unit))),
      [],
    );
  });

  it("folds like a text of it alone", () => {
    assert.deepStrictEqual(
      differing(
        (unit) => isSpace(unit) || String.fromCharCode(fold(unit)),
        (unit) => isSpace(unit) || foldText(String.fromCharCode(unit)),
      ),
      [],
    );
  });

  it("is the first half of a pair from D800 to DBFF", () => {
    assert.deepStrictEqual(
      differing(isHighSurrogate, (unit) => unit >= 0xd800 && unit <= 0xdbff),
      [],
    );
  });

  it("weighs 2 in a range of wide characters, else 1", () => {
    for (const [first, last] of wide)
      for (const point of [first - 1, first, last, last + 1])
        assert.strictEqual(weigh(String.fromCodePoint(point)), weightOf(point), point.toString(16));
  });
});

/** The weights of the characters of a text, by their offsets. A run of white space weighs at the end that is read first. */
const weights = (text: string, backwards: boolean): ReadonlyArray<{ readonly at: number; readonly weight: number }> => {
  const found: Array<{ at: number; weight: number; char: string }> = [];
  let at = 0;
  for (const char of text) {
    found.push({ at, weight: char === "\r" ? 0 : weightOf(char.codePointAt(0) ?? 0), char });
    at += char.length;
  }
  if (backwards) found.reverse();
  let spaced = false;
  for (const it of found) {
    if (it.char === "\r") continue;
    const isBlank = /\s/.test(it.char);
    if (isBlank && spaced) it.weight = 0;
    spaced = isBlank;
  }
  return found;
};

describe("the weight of a text", () => {
  it("is the sum of its characters, and a run of white space counts once", () => {
    for (const text of texts) {
      const expected = weights(text, true).reduce((sum, { weight }) => sum + weight, 0);
      assert.strictEqual(weigh(text), expected, JSON.stringify(text));
    }
  });

  it("from its end stops at the start of the character that reaches it", () => {
    for (const text of texts)
      for (const enough of [0, 1, 2, 3, 7]) {
        let weight = 0;
        let at = text.length;
        for (const it of weights(text, true)) {
          if (weight >= enough) break;
          weight += it.weight;
          at = it.at;
        }
        assert.deepStrictEqual(weighBack(text, 0, enough), { weight, at }, JSON.stringify([text, enough]));
      }
  });

  it("from a start stops after the character that reaches it", () => {
    for (const text of texts)
      for (const enough of [0, 1, 2, 3, 7]) {
        const all = weights(text, false);
        let weight = 0;
        let index = 0;
        while (index < all.length && weight < enough) weight += all[index++]?.weight ?? 0;
        assert.strictEqual(weighAhead(text, 0, enough), all[index]?.at ?? text.length, JSON.stringify([text, enough]));
      }
  });

  it("does not look before its start", () => {
    assert.deepStrictEqual(weighBack("ab", 1, 9), { weight: 1, at: 1 });
    assert.deepStrictEqual(weighBack("a😀", 2, 9), { weight: 1, at: 2 });
    assert.strictEqual(weighAhead("abc", 1, 1), 2);
  });
});

describe("the tokens of a text", () => {
  it("are its characters without carriage returns, folded, with one token for a run of white space", () => {
    for (const text of texts) {
      const tokens = tokensOf(text, 0);
      const { exact, places, spaces, units } = tokens;
      const plain = [...text.matchAll(/(?:[^\S\r]\r*)+|[^\r]/g)];
      const spelled = plain.map(([it]) => (/\S/.test(it) ? it : " "));
      assert.deepStrictEqual(
        units.map((unit) => (unit === space ? " " : String.fromCharCode(unit))),
        // A pair is two tokens.
        spelled.map((it) => (it === " " ? it : foldText(it))),
        JSON.stringify(text),
      );
      assert.deepStrictEqual(
        places,
        plain.map(({ index }) => index),
      );
      assert.deepStrictEqual(
        [...spaces.values()],
        plain.flatMap(([it]) => (/\S/.test(it) ? [] : [it.replaceAll("\r", "")])),
      );
      assert.deepStrictEqual(
        [...spaces.keys()],
        spelled.flatMap((it, at) => (it === " " ? [at] : [])),
      );
      assert.isFalse(exact.includes(true));
      for (let place = 0; place <= text.length + 1; place += 1) {
        const first = places.findIndex((it) => it >= place);
        assert.strictEqual(tokenAt(tokens, place), first < 0 ? places.length : first);
      }
    }
  });

  it("in code are exact, from the fence's start to its end, and white space belongs to what follows", () => {
    const text = "a “b”\n  c “d”\n e “f”\n\ng “h”";
    const from = text.indexOf("\n") + 1;
    const to = text.lastIndexOf("\n");
    const { exact, places, units } = tokensOf(text, 0, [
      { from: 0, to: 0, opener: "```" },
      { from, to, opener: "```" },
    ]);
    places.forEach((place, at) => {
      const char = text.charAt(place);
      const last = /\s/.test(char) ? place + (/^\s+/.exec(text.slice(place))?.[0].length ?? 1) - 1 : place;
      assert.strictEqual(exact[at], last >= from && last < to, `${place}`);
      const own = /\s/.test(char) ? space : exact[at] ? char.charCodeAt(0) : fold(char.charCodeAt(0));
      assert.strictEqual(units[at], own, `${place}`);
    });
    assert.deepStrictEqual(tokensOf(text, from).places[0], from);
  });
});

describe("the starts of sentences", () => {
  const starts = (text: string, from = 0) => sentenceStarts(text, from).map((at) => text.slice(at, at + 1));
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["", ""],
    ["  a", "a"],
    ["a b", "a"],
    ["a. b", "ab"],
    ["a.b", "a"],
    ["a.) b", "ab"],
    ["a.x) b", "a"],
    ["a.) ) b", "a)"],
    ["a\nb", "ab"],
    ["a\n\n  b", "ab"],
    ["a\tb", "a"],
    ["a. \n.b", "a."],
    ["a。b", "ab"],
    ["a。」b", "ab"],
    ["a。！b", "ab"],
    ["a。x。y", "axy"],
    ["a。. b", "ab"],
    ["a.。b", "ab"],
    ["a? b! c… d", "abcd"],
    ["a. b c", "ab"],
    [". a", ".a"],
  ];
  for (const [text, expected] of rows)
    it(`of ${JSON.stringify(text)} are at ${JSON.stringify(expected)}`, () =>
      assert.strictEqual(starts(text).join(""), expected));

  it("are those at or after an offset, and depend on the 64 characters before it at most", () => {
    for (const text of texts)
      for (const from of [0, 1, 5, 12])
        assert.deepStrictEqual(
          sentenceStarts(text, from),
          sentenceStarts(text, 0).filter((at) => at >= from),
        );
    assert.deepStrictEqual(sentenceStarts(`a.${" ".repeat(62)}b`, 64), [64]);
    assert.deepStrictEqual(sentenceStarts(`aa.${" ".repeat(63)}b`, 66), [66]);
    assert.deepStrictEqual(sentenceStarts(`aa.${" ".repeat(64)}b`, 67), []);
  });
});
