/** Worlds that the simulation does not draw: texts and models at the edges, and how much is held of what has no end. */
import { assert, describe, it } from "@effect/vitest";
import { anchorOf } from "../../src/seam/Anchor.ts";
import * as SeamVerifier from "../../src/seam/SeamVerifier.ts";
import { shownCharactersMax } from "../../src/seam/TextSeam.ts";
import { type Played, play } from "./model/Player.ts";

const goOn = (shown: string, said: string, size = 1, proof: "anchor" | "prefill" = "anchor"): Played => {
  const anchor = anchorOf(shown);
  if (typeof anchor === "string") throw new Error(anchor);
  return play({ shown, anchor, proof }, said, "stops", () => size);
};

const joins = (shown: string, said: string, released: string): void =>
  assert.deepInclude(goOn(shown, said), { verdict: "joined", released }, JSON.stringify([shown.slice(-90), said]));

const refuses = (shown: string, said: string): void =>
  assert.deepInclude(
    goOn(shown, said),
    { verdict: "unproven", released: "" },
    JSON.stringify([shown.slice(-90), said]),
  );

describe("texts and models at the edges", () => {
  it("a model that changes one digit of a table's row, in the anchor or in a row in front of it, is refused", () => {
    const rows = [
      "| name | amount |",
      "| --- | --- |",
      "| stone | 1204.5 |",
      "| river | 388.0 |",
      "| garden of the town | 77",
    ];
    const shown = rows.join("\n");
    joins(shown, `${rows.slice(2).join("\n")}.25 |`, ".25 |");
    refuses(shown, `${rows.slice(2).join("\n").replace("1204.5", "1205.4")}.25 |`);
    refuses(shown, `${rows.slice(3).join("\n").replace("388", "383")}.25 |`);
    refuses(shown, `${rows.slice(3).join("\n").replace("77", "78")}.25 |`);
  });

  it("a model that begins with the anchor's words at an earlier place of the text is refused where the two places part", () => {
    const shown =
      "To open the door, turn the key to the left and pull.\nThen wait for a moment.\nTo open the door, turn the key to the right and pu";
    joins(shown, "To open the door, turn the key to the right and push.", "sh.");
    refuses(shown, "To open the door, turn the key to the left and pull it.");
  });

  it("a model that goes on from an earlier place to the end of what was shown joins there, whatever it says then", () => {
    const shown = "One two three four five.\nSix seven eight nine ten.\nEleven twelve thirteen four";
    joins(
      shown,
      "Six seven eight nine ten.\nEleven twelve thirteen fourteen. Six seven eight.",
      "teen. Six seven eight.",
    );
  });

  it("a text whose next words are those that the anchor begins with goes on with them", () => {
    const shown = "There are three birds in the garden, and there are three birds in the ";
    joins(shown, `${shown}house. There are three birds in all.`, "house. There are three birds in all.");
  });

  it("very long lines without the end of a sentence go on from a word in them", () => {
    const shown = Array.from({ length: 3_000 }, (_, index) => (index * 7919).toString(36)).join(" ");
    const anchor = anchorOf(shown);
    if (typeof anchor === "string") throw new Error(anchor);
    assert.isAtMost(anchor.text.length, 400);
    joins(shown, `${anchor.quote} and more`, " and more");
    refuses(shown, `${anchor.quote.slice(10)} and more`);
  });

  it("a text of pictures alone goes on, cut in any of them", () => {
    const whole = "👨‍👩‍👧‍👦🇯🇵🥨👩‍💻🧑🏿‍🚀🇩🇪👍🏽🏳️‍🌈🎉";
    for (let at = 2; at < whole.length; at += 1) joins(whole.slice(0, at), whole, whole.slice(at));
  });

  it("a text that ends in white space goes on behind exactly that, in code with its indentation", () => {
    const shown = "Here is the program that you have asked for:\n\n```py\ndef first(one):\n    ";
    const asked = "Here is the program that you have asked for:\n\n```py\ndef first(one):\n    return one\n";
    joins(shown, asked, "return one\n");
    refuses(shown, asked.replace("    return", "  return"));
    joins(shown, asked.replace("    return", "        return"), "    return one\n");
  });

  it("an anchor in an open fence in which another kind of fence stands is compared as code", () => {
    const shown =
      "Write:\n\n````md\n```ts\nconst one = 'a - b';\n```\nand some prose of the document that is “quoted” he";
    joins(shown, `${shown.slice(shown.indexOf("and some"))}re`, "re");
    refuses(shown, `${shown.slice(shown.indexOf("and some")).replaceAll(/[“”]/g, '"')}re`);
  });

  it("a fence that is cut in its opening line is closed by nobody and opened by its own end", () => {
    for (const shown of [
      "The program follows here, as I said before:\n\n``",
      "The program follows here, as I said before:\n\n```t",
    ]) {
      const whole = "The program follows here, as I said before:\n\n```ts\nconst one = 1;\n```\n";
      joins(shown, whole, whole.slice(shown.length));
    }
  });

  it("a model that is stopped by its limit exactly at the seam gives nothing more, and a second one goes on there", () => {
    const shown = "The river was wide and slow that year, as the old men sa";
    joins(shown, shown, "");
    joins(shown, `${shown}y.`, "y.");
  });

  it("a text of one character begins anew, and the response is the model's own whole one", () => {
    joins("S", "So it is.", "o it is.");
    refuses("S", "It is so.");
  });
});

describe("what has no end", () => {
  const end = "and this is how it ends, with something that was never said before";
  const most = `${"a\n".repeat((shownCharactersMax - end.length) / 2)}${end}`;

  it("is read through or refused, and never held", () => {
    const long = 200_000;
    assert.deepInclude(goOn(most, `${" ".repeat(long)}${end} more`, 1_000), { verdict: "joined", released: " more" });
    assert.deepInclude(goOn(most, `${end.slice(0, 3)}${" ".repeat(long)}`, 1_000), { fault: "differs" });
    assert.deepInclude(goOn(most, `${"a\n".repeat(long)}`, 1_000), { fault: "differs" });
    assert.deepInclude(goOn(most, "```".repeat(long), 1_000), { fault: "differs" });
    assert.strictEqual(goOn(end, end + " ".repeat(long), 1_000).released.length, long);
    const again = `${end.slice(0, 60)} `.repeat(2_000);
    assert.strictEqual(goOn(`Before it. ${end}`, `${end} ${again}`, 1_000).released.length, again.length + 1);
  });

  it("delivers text at most two anchors and a possible third one late", () => {
    const shown = `Before it. ${end}`;
    const anchor = anchorOf(shown);
    if (typeof anchor === "string") throw new Error(anchor);
    const verifier = SeamVerifier.make({ run: shown, anchor, proof: "anchor" });
    verifier.take(anchor.text);
    let [taken, left] = [0, 0];
    for (let index = 0; index < 5_000; index += 1) {
      const piece = end.charAt(index % 60);
      const step = verifier.take(piece);
      if (step.type !== "joined") throw new Error(step.type);
      taken += 1;
      left += step.text.length;
      assert.isAtMost(taken - left, 4 * anchor.text.length + 800);
    }
    assert.isAtLeast(left, 5_000 - 4 * anchor.text.length);
  });
});
