/** What must not come again behind a seam, by sentence. */
import { assert, describe, it } from "@effect/vitest";
import { anchorOf } from "../../src/seam/Anchor.ts";
import * as SeamVerifier from "../../src/seam/SeamVerifier.ts";
import { type Played, play } from "./model/Player.ts";

const goOn = (shown: string, behind: string, size = 1): Played => {
  const anchor = anchorOf(shown);
  if (typeof anchor === "string") throw new Error(anchor);
  return play({ shown, anchor, proof: "anchor" }, anchor.text + behind, "stops", () => size);
};

/** Whether text behind the seam is refused before any of it has left. */
const repeats = (shown: string, behind: string): void =>
  assert.deepInclude(goOn(shown, behind), { fault: "repeats", released: "" }, JSON.stringify([shown, behind]));

const passes = (shown: string, behind: string): void =>
  assert.deepInclude(goOn(shown, behind), { verdict: "joined", released: behind }, JSON.stringify([shown, behind]));

const first = "The river was wide and slow that year, as the old men say.";
const second = "Nobody could cross it but the hero";
const text = `Once upon a time there was a town. ${first} ${second}`;

describe("behind a seam", () => {
  it("the cut sentence does not come again: on the same line, behind a space, on a new line", () => {
    for (const gap of ["", " ", "\n", "\n\n", " \r\n "]) repeats(text, `${gap}${second}n and the goat.`);
  });

  it("the end of a sentence does not come again, wherever it begins", () => {
    for (const from of ["could cross it but the hero", "ould cross it but the hero", "s it but the hero"])
      for (const gap of ["", " ", "\n"]) repeats(text, `${gap}${from}n and the goat.`);
    const items = Array.from({ length: 60 }, (_, at) => `item ${at} of it`).join(", ");
    repeats(`${first} It began with ${items} and a hero`, ` with ${items} and a heron and a goat.`);
    passes(text, " it but the heron.");
    passes(text, ` but the hero's horse could.`);
    passes("He said it over and over and", " over and over again.");
  });

  it("an earlier sentence does not come again to the end", () => {
    repeats(text, ` ${first} ${second}n and the goat.`);
    // also where it begins more than two anchors in front of the end
    const tale = `${first} ${"And so it went on, as it does, for a very long time in this town. ".repeat(2)}It was then that`;
    const cut = "a stranger came over the hill with a hero";
    repeats(`Before all that. ${tale} they met. Then ${cut}`, ` ${tale} they met. Then ${cut}n.`);
    passes(text, `n. ${first.replace("river", "lake")} ${second}n.`);
  });

  it("the beginning of the text does not come again, of a long text neither", () => {
    repeats(text, `\n${text}n and the goat.`);
    const long = `${Array.from({ length: 90 }, (_, index) => `Sentence number ${index} of this text.`).join(" ")} ${second}`;
    assert.isAbove(long.length, 2_500);
    repeats(long, `\n\n${long}n`);
  });

  it("a repetition is seen in other white space and other quotes", () => {
    const quoted = "A line before it.\nHe said “it’s a heron” to the old m";
    repeats(quoted, `\n${`He said "it's a heron"  to the\nold m`}an.`);
  });

  it("less than six letters may come twice on one line, as in honest text, but no word with a capital", () => {
    const before = "What follows is one more sentence of the text. ";
    passes(`${before}ha`, "ha, he said");
    passes(`${before}**`, "**bold**");
    passes(`${before}1`, "1 men");
    passes(`${before}谢`, "谢你");
    passes(`${before}Very`, " very good");
    repeats(`${before}The`, "The heron");
    repeats(`${before}In`, "In the end");
    repeats(`${before}I`, "I think");
    passes(`${before}I`, "II. of England");
    passes(`${before}S`, "SH is a protocol");
  });

  it("one character behind a line end is enough, where the line is as far in", () => {
    const before = "What follows is a list of numbers of any kind:\n";
    repeats(`${before}7\n`, "7\n8");
    passes(`${before}7\n`, "78\n9");
    repeats(`${before}7`, "\n7 and 8");
    passes(`${before}{\n    }\n`, "  }\n}");
    repeats(`${before}{\n    }\n`, "    }\n}");
    passes(`${before}<p>\n    </div>`, "\n  </div>\n");
  });

  it("limits hold at their edges: the ends of code of 10 characters, 6 letters on a line, 16 inside a sentence", () => {
    const before = "// a comment that is long enough to be an anchor by itself\n";
    passes(`${before}    abcdefghi;`, "\n  abcdefghi;\n  done();");
    repeats(`${before}    abcdefghij;`, "\n  abcdefghij;\n  done();");
    passes(`${before}    abcdefghi;`, "\n  abcdefghi;");
    repeats(`${before}    abcdefghi;`, "\n    abcdefghi;");
    repeats(`${before}    abcdefghi;`, "\nabcdefghi;");
    passes(`${before}say. hi-ha`, " hi-ha and hi-ho.");
    repeats(`${before}say. hi-haa`, " hi-haa and hi-ho.");
    passes(`${before}We say 01234567890abcde`, " 1234567890abcde and more.");
    repeats(`${before}We say 01234567890abcdef`, " 1234567890abcdef and more.");
  });

  it("half a character that was shown hides no repetition", () => {
    const whole = "👨‍👩‍👧‍👦🇯🇵🥨👩‍💻🧑🏿‍🚀😀👍🏽🏳️‍🌈";
    const shown = `${whole}\ud83d`;
    repeats(shown, `${whole.slice(1)}\ud83d\ude00`);
    repeats(shown, `${whole}\ud83d\ude00`);
    passes(shown, "\ude00 and so on");
    // The half that was shown may also be the first half of the repetition.
    repeats("😁I was\ud83d", "\ude01I was😁The");
  });

  it("text that only begins like a repetition is held until it differs, and then leaves whole", () => {
    const anchor = anchorOf(text);
    if (typeof anchor === "string") throw new Error(anchor);
    const verifier = SeamVerifier.make({ run: text, anchor, proof: "anchor" });
    assert.deepStrictEqual(verifier.take(anchor.text), { type: "joined", text: "" });
    assert.deepStrictEqual(verifier.take(" \nNobody could"), { type: "joined", text: "" });
    assert.deepStrictEqual(verifier.take(" swim"), { type: "joined", text: " \nNobody could swim" });
  });

  it("what is held leaves where the text ends, or where something comes that is no text", () => {
    for (const end of ["close", "stop"] as const) {
      const anchor = anchorOf(text);
      if (typeof anchor === "string") throw new Error(anchor);
      const verifier = SeamVerifier.make({ run: text, anchor, proof: "anchor" });
      verifier.take(`${anchor.text}\nNobody`);
      assert.deepStrictEqual(verifier[end](), { type: "joined", text: "\nNobody" });
      assert.deepStrictEqual(verifier.take(" came"), { type: "joined", text: " came" });
    }
  });

  it("the whole anchor does not come again within two anchors, and what stood in front of it has left", () => {
    const preface = "n. Excuse me, here it is once more:";
    const played = goOn(text, `${preface}\n\n${first} ${second}n and the goat.`);
    assert.deepInclude(played, { fault: "repeats", released: preface });
  });

  it("the whole anchor may come again further on", () => {
    const other = `n.${" Other words of another matter stand here.".repeat(20)}`;
    passes(text, `${other} ${first} ${second}n.`);
  });

  it("white space without an end is let go, and held by no more than 16 Ki", () => {
    const played = goOn(text, " ".repeat(40_000), 1_000);
    assert.deepInclude(played, { verdict: "joined", released: " ".repeat(40_000) });
  });

  it("reports a late repetition at the next call, so that the text before it is delivered however the new text is split", () => {
    const behind = `n. Excuse me, here it is once more: ${first} ${second}n and the goat.`;
    const apart = [1, 2, 7, 100_000].map((size) => goOn(text, behind, size));
    for (const played of apart)
      assert.deepInclude(played, { fault: "repeats", released: "n. Excuse me, here it is once more:" });
  });
});
