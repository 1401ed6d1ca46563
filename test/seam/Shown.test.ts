/** Holds what a continuation keeps of the shown text, removes from the new text and finds again, against plain definitions. */
import { assert, describe, it } from "@effect/vitest";
import { anchorMax } from "../../src/seam/Anchor.ts";
import { AnchorAgain } from "../../src/seam/AnchorAgain.ts";
import { codeFences, fenceAt } from "../../src/seam/CodeFences.ts";
import { foldText } from "../../src/seam/Folding.ts";
import { ShownTail } from "../../src/seam/ShownTail.ts";
import { type ShownResponse, ShownText } from "../../src/seam/ShownText.ts";
import { shownCharactersMax } from "../../src/seam/TextSeam.ts";

describe("the shown text of a response", () => {
  const rows: ReadonlyArray<readonly [string, (it: ShownText) => unknown, ShownResponse]> = [
    ["nothing", () => undefined, { run: "", characters: 0, refusal: undefined }],
    ["text", (it) => [it.say("ab"), it.say("c")], { run: "abc", characters: 3, refusal: undefined }],
    [
      "text before another block",
      (it) => [it.say("ab"), it.endRun()],
      { run: "", characters: 2, refusal: "not_text_last" },
    ],
    [
      "text after another block",
      (it) => [it.say("ab"), it.endRun(), it.say("c")],
      { run: "c", characters: 3, refusal: undefined },
    ],
    [
      "a refusal",
      (it) => [it.say("a"), it.refuse("refusal_shown")],
      { run: "a", characters: 1, refusal: "refusal_shown" },
    ],
    [
      "a picture",
      (it) => [it.say("a"), it.refuse("not_text_last")],
      { run: "a", characters: 1, refusal: "not_text_last" },
    ],
    [
      "a hosted call without a result",
      (it) => [it.recordHostedTool("k", false), it.say("a")],
      { run: "a", characters: 1, refusal: "not_text_last" },
    ],
    [
      "a hosted call with its result",
      (it) => [it.recordHostedTool("k", false), it.recordHostedTool("k", true), it.say("a")],
      { run: "a", characters: 1, refusal: undefined },
    ],
    ["one choice", (it) => [it.recordChoice(1), it.recordChoice(1)], { run: "", characters: 0, refusal: undefined }],
    [
      "several choices, of which one refuses",
      (it) => [it.recordChoice(0), it.recordChoice(1), it.recordChoice(0), it.refuse("refusal_shown")],
      { run: "", characters: 0, refusal: "several_choices" },
    ],
  ];
  for (const [name, use, expected] of rows)
    it(`is kept with ${name}`, () => {
      const shown = new ShownText();
      use(shown);
      assert.deepStrictEqual(shown.response(), expected);
      assert.strictEqual(shown.characters, expected.characters);
    });

  it("names the choice of its first event", () => {
    const shown = new ShownText();
    assert.strictEqual(shown.choice, 0);
    shown.recordChoice(2);
    shown.recordChoice(3);
    assert.strictEqual(shown.choice, 2);
  });

  it("is continued up to 64 Ki characters, and is not kept above that", () => {
    assert.strictEqual(shownCharactersMax, 65_536);
    const shown = new ShownText();
    shown.say("x".repeat(shownCharactersMax));
    assert.isUndefined(shown.response().refusal);
    shown.say("y");
    assert.deepInclude(shown.response(), { refusal: "too_long", characters: shownCharactersMax + 1 });
    assert.strictEqual(shown.response().run.length, shownCharactersMax);
  });

  it("waits for at most 1,024 hosted calls", () => {
    for (const count of [1_024, 1_025]) {
      const shown = new ShownText();
      for (let each = 0; each < count; each += 1) shown.recordHostedTool(`${each}`, false);
      for (let each = 0; each < count; each += 1) shown.recordHostedTool(`${each}`, true);
      assert.strictEqual(shown.response().refusal, count > 1_024 ? "not_text_last" : undefined);
    }
  });
});

describe("the end of the shown text", () => {
  const rows: ReadonlyArray<readonly [run: string, unsent: boolean, said: string, left: string]> = [
    ["a", false, "b", "b"],
    ["a ", false, " b", " b"],
    ["a ", true, " b", "b"],
    ["a ", true, "  b", " b"],
    ["a \n", true, " \nb", "b"],
    ["a \n", true, "\nb", "\nb"],
    ["a \n", true, " b", "b"],
    ["a \n", true, " \r\nb", "b"],
    ["a \n", true, " \rb", "\rb"],
    ["a \n", true, " \r\r", "\r\r"],
    ["a\r", true, "\rb", "b"],
    ["a\r", false, "\r\rb", "\rb"],
    ["a\r\r", false, "\r\r\rb", "\rb"],
    ["a\r\n", true, "\nb", "b"],
    ["a", true, "\rb", "\rb"],
    [" ", true, " ", ""],
    ["a ", true, "", ""],
  ];
  it("is removed from the new text as far as the new text repeats it, in pieces of any size", () => {
    for (const [run, unsent, said, left] of rows)
      for (const size of [1, 2, 9]) {
        const tail = new ShownTail(run, unsent);
        let found = "";
        for (let at = 0; at < said.length; at += size) {
          found += tail.take(said.slice(at, at + size));
          assert.isAtMost(found.length + tail.heldLength, at + size);
        }
        found += tail.end();
        assert.strictEqual(found, left, JSON.stringify([run, unsent, said, size]));
        assert.deepStrictEqual([tail.heldLength, tail.end(), tail.take("\r x")], [0, "", "\r x"]);
      }
  });

  it("holds the carriage returns that may belong to it", () => {
    const tail = new ShownTail("a \n", true);
    assert.deepStrictEqual([tail.take(" \r\r"), tail.heldLength, tail.take("\n"), tail.heldLength], ["", 2, "", 0]);
  });
});

describe("the anchor in new text", () => {
  const anchor = "He said ababab and then “ababac” to the others, who left.";
  /** Offset of the unit that completes the anchor; undefined if it is not found. */
  const find = (said: string, wanted = anchor): number | undefined => {
    const again = new AnchorAgain(wanted);
    for (let at = 0; at < said.length; at += 1) if (again.take(said.charCodeAt(at), at)) return at;
    return undefined;
  };

  it("is found wherever it begins, like a plain search finds it", () => {
    const before = [
      "",
      "x",
      "He said ",
      "He said ab",
      anchor.slice(0, -1),
      `${anchor.slice(0, 20)}${anchor.slice(0, 30)}`,
    ];
    for (const text of before)
      for (const copy of [anchor, anchor.replaceAll(" ", " \r\n "), anchor.replaceAll(/[“”]/g, '"')]) {
        const said = `${text}${copy} And more.`;
        const end = [...said].findIndex((_, at) => foldText(said.slice(0, at + 1)).endsWith(foldText(anchor)));
        assert.strictEqual(find(said), end, JSON.stringify(said));
      }
    for (const text of before) assert.isUndefined(find(`${text} He said abababab and then more`));
  });

  it("is looked for at most two anchors behind the seam, and not if it is short", () => {
    const padded = (length: number) => find(`${"x".repeat(length)}${anchor}`);
    assert.strictEqual(padded(2 * anchor.length), 3 * anchor.length - 1);
    assert.isUndefined(padded(2 * anchor.length + 1));
    assert.strictEqual(find("y".repeat(20), "y".repeat(20)), 19);
    assert.isUndefined(find("y".repeat(19), "y".repeat(19)));
    assert.isTrue(new AnchorAgain("y".repeat(19)).isOver);
  });

  it("holds text from where it may begin, with white space before it, up to a limit", () => {
    const again = new AnchorAgain(anchor);
    const held = [..."xy  He  sx"].map((char, at) => {
      again.take(char.charCodeAt(0), at);
      return again.heldFrom;
    });
    assert.deepStrictEqual(held, [undefined, undefined, 2, 2, 2, 2, 2, 2, 2, undefined]);
    const max = 4 * anchor.length + anchorMax;
    for (const spaces of [max - 1, max + 1]) {
      const endless = new AnchorAgain(anchor);
      endless.take("H".charCodeAt(0), 0);
      endless.take("e".charCodeAt(0), 1);
      for (let at = 2; at < spaces + 2; at += 1) endless.take(0x20, at);
      assert.strictEqual(endless.isOver, spaces > max);
    }
  });
});

describe("code fences", () => {
  const long = "x".repeat(252);
  const rows: ReadonlyArray<readonly [string, ReadonlyArray<readonly [string, string]>]> = [
    ["", []],
    ["```", []],
    ["```ts\n", [["```ts", ""]]],
    ["```ts\na", [["```ts", "a"]]],
    ["```ts\na\n```", [["```ts", "a\n"]]],
    ["```ts\na\n```\nb", [["```ts", "a\n"]]],
    ["```ts\na\n``\nb", [["```ts", "a\n``\nb"]]],
    ["````\na\n```\nb\n````\n", [["````", "a\n```\nb\n"]]],
    ["```\na\n````\nb", [["```", "a\n"]]],
    ["~~~ `x`\na\n~~~\n", [["~~~ `x`", "a\n"]]],
    ["~~~\na\n```\n~~~\n", [["~~~", "a\n```\n"]]],
    ["``` `x`\na", []],
    ["  \t```ts\r\na\r\n \t``` \t\r\nb", [["```ts", "a\r\n"]]],
    ["```\na\n``` x\n", [["```", "a\n``` x\n"]]],
    [
      "\n```a\n1\n```\n```b\n2\n```\n",
      [
        ["```a", "1\n"],
        ["```b", "2\n"],
      ],
    ],
    [`\`\`\`${long}\na`, [[`\`\`\`${long}`, "a"]]],
    [`\`\`\`${long}x\na`, []],
  ];
  it("are found with their openers and their content", () => {
    for (const [text, expected] of rows) {
      const fences = codeFences(text);
      assert.deepStrictEqual<unknown>(
        fences.map(({ from, opener, to }) => [opener, text.slice(from, to)]),
        expected,
        JSON.stringify(text),
      );
      for (let at = 0; at <= text.length; at += 1)
        assert.strictEqual(
          fenceAt(fences, at),
          fences.find(({ from, to }) => from <= at && at < to),
        );
    }
  });
});
