/** What stands behind a prefill: the white space that was not sent, an echo, and what must not come again. */
import { assert, describe, it } from "@effect/vitest";
import { anchorOf } from "../../src/seam/Anchor.ts";
import * as SeamVerifier from "../../src/seam/SeamVerifier.ts";
import { type Ending, type Played, play } from "./model/Player.ts";

const goOn = (shown: string, said: string, echoes = false, ending: Ending = "stops"): Played => {
  const anchor = anchorOf(shown);
  if (typeof anchor === "string") throw new Error(anchor);
  return play({ shown, anchor, proof: "prefill", echoes }, said, ending, () => 1);
};

const leaves = (played: Played, released: string): void =>
  assert.deepInclude(played, { verdict: "joined", released }, JSON.stringify(played));

const first = "The river was wide and slow that year, as the old men say.";
const text = `${first} Nobody could cross it but the hero`;

describe("behind a prefill", () => {
  it("the new text goes straight on", () => {
    leaves(goOn(text, "n and the goat."), "n and the goat.");
    leaves(goOn("S", "o be it."), "o be it.");
  });

  it("white space at the end was not sent: it comes again, and is taken off where it was shown", () => {
    leaves(goOn("Well then.\n\n", "\n\nAnd now?"), "And now?");
    leaves(goOn("Well then.\n", "\n\nAnd now?"), "\nAnd now?");
    leaves(goOn("Well then.\r\n", "\r\nAnd now?"), "And now?");
    leaves(goOn("Well then.\r", "\r\nAnd now?"), "\nAnd now?");
    leaves(goOn("Well then. ", "And now?"), "And now?");
    leaves(goOn("Well then.", "\n\nAnd now?"), "\n\nAnd now?");
  });

  it("white space that was sent does not come again, and more of it is new", () => {
    const run = "Well then.\n";
    const anchor = anchorOf(run);
    if (typeof anchor === "string") throw new Error(anchor);
    const verifier = SeamVerifier.make({ run, anchor, proof: "prefill", sentToTheEnd: true });
    assert.deepStrictEqual(verifier.take("\nAnd now?"), { type: "joined", text: "\nAnd now?" });
    // an echo has it too
    const echoed = SeamVerifier.make({ run, anchor, proof: "prefill", echoes: true, sentToTheEnd: true });
    assert.deepStrictEqual(echoed.take("Well then.\n\nAnd now?"), { type: "joined", text: "\nAnd now?" });
  });

  it("a whole echo is taken off where it is declared, however short", () => {
    leaves(goOn("So", "So be it.", true), " be it.");
    leaves(goOn(text, `${text}n.`, true), "n.");
    leaves(goOn("Well then. \n", "Well then. \nAnd now?", true), "And now?");
  });

  it("what is declared to be an echo and is none is not proven", () => {
    assert.deepInclude(goOn(text, "n and the goat.", true), { fault: "differs", released: "" });
    assert.deepInclude(goOn(text, first, true), { fault: "stopped", released: "" });
    assert.deepInclude(goOn(text, first, true, "calls"), { fault: "not_text", released: "" });
  });

  it("a whole echo that is not declared is taken off from 40 characters on, and refused below that", () => {
    leaves(goOn(text, `${text}n.`), "n.");
    assert.deepInclude(goOn("Well then, so", "Well then, so be it."), { fault: "repeats", released: "" });
  });

  it("text that only begins as an echo does leaves whole, and what was held with it", () => {
    leaves(goOn(text, "The river was gone."), "The river was gone.");
    leaves(goOn(text, "The river"), "The river");
  });

  it("the cut sentence, an earlier one, or the beginning of the text does not come again", () => {
    for (const said of ["Nobody could cross it but the heron.", `\n\n${text.slice(first.length + 1)}n.`]) {
      assert.deepInclude(
        goOn(`${"Other words before it stand here. ".repeat(3)}${text}`, said),
        { fault: "repeats", released: "" },
        said,
      );
    }
    assert.deepInclude(goOn(`${text}n. ${"And so on it went. Then more. ".repeat(2)}But`, text), {
      fault: "repeats",
      released: "",
    });
  });

  it("nothing further, or a call at once, is a seam with nothing behind it", () => {
    leaves(goOn(text, ""), "");
    leaves(goOn(text, "", false, "calls"), "");
  });

  it("is not cut but for the echo and the white space: the count of what was cut off says so", () => {
    const anchor = anchorOf(`${text} `);
    if (typeof anchor === "string") throw new Error(anchor);
    const verifier = SeamVerifier.make({ run: `${text} `, anchor, proof: "prefill" });
    assert.strictEqual(verifier.cut, 0);
    verifier.take(" and");
    assert.strictEqual(verifier.cut, 1);
    const echoed = SeamVerifier.make({ run: text, anchor, proof: "prefill", echoes: true });
    echoed.take(`${text}n.`);
    assert.strictEqual(echoed.cut, text.length);
  });
});
