/** What a continuation may begin with, by sentence: where, with which white space, quotes and fences. */
import { assert, describe, it } from "@effect/vitest";
import { anchorOf } from "../../src/seam/Anchor.ts";
import { type Ending, type Played, play } from "./model/Player.ts";

/** Plays it unit by unit. */
const goOn = (shown: string, said: string, ending: Ending = "stops"): Played => {
  const anchor = anchorOf(shown);
  if (typeof anchor === "string") throw new Error(anchor);
  return play({ shown, anchor, proof: "anchor" }, said, ending, () => 1);
};

const joins = (shown: string, said: string, released: string): void => {
  const played = goOn(shown, said);
  assert.deepStrictEqual([played.verdict, played.released], ["joined", released], JSON.stringify(played));
};

const refuses = (shown: string, said: string, fault = "differs", read?: number): void => {
  const played = goOn(shown, said);
  assert.deepStrictEqual([played.fault, played.released], [fault, ""]);
  if (read !== undefined) assert.strictEqual(played.read, read);
};

const first = "The river was wide and slow that year, as the old men say.";
const second = "Nobody could cross it by foot but the heron and the goa";
const text = `${first} ${second}`;

describe("a continuation", () => {
  it("continues after the last shown character, in the middle of a word", () => {
    joins(text, `${second}t.`, "t.");
  });

  it("may begin at an earlier sentence, or at the beginning of a short text", () => {
    const third = "And so they built a bridge of stone that stands to this very d";
    joins(`${text}t. ${third}`, `${second}t. ${third}ay.`, "ay.");
    joins(`${text}t. ${third}`, `${text}t. ${third}ay.`, "ay.");
  });

  it("may not begin further back than 1,600 characters, and not at the beginning of a text of more than 2,000", () => {
    const sentences = Array.from({ length: 60 }, (_, index) => `Sentence number ${index} has a number of its own.`);
    const shown = `${sentences.join(" ")} ${second}`;
    joins(shown, `${sentences.slice(30).join(" ")} ${second}t.`, "t.");
    refuses(shown, `${sentences.slice(2).join(" ")} ${second}t.`);
    refuses(shown, `${shown}t.`);
  });

  it("is refused with the first character that differs", () => {
    refuses(text, "Sure, here is the rest: ", "differs", 1);
    refuses(text, `${second.slice(0, 10)}X`, "differs", 11);
    refuses(text, `“${second}t.`, "differs", 1);
  });

  it("is refused where the case differs, a letter is composed otherwise, or a digit is another one", () => {
    refuses(text, `${second.toUpperCase()}t.`);
    const marked = "Cafe\u0301 number 17 in this street has the best coffee of the town";
    refuses(marked, marked.normalize("NFC"));
    refuses(marked, marked.replace("17", "18"));
    joins(marked, `${marked}.`, ".");
  });

  it("may have other white space in the anchor, but none where some was, and some where none was", () => {
    joins(text, `\n  ${second.replaceAll(" ", "\n")}t.`, "t.");
    refuses(text, second.replaceAll(" ", ""));
    refuses(text, second.replace("Nobody", "No body"));
  });

  it("may have plain quotes and dashes for typographic ones, and the other way round", () => {
    const quoted = "She said “it’s here – or there” and closed the garden gate behind h";
    joins(quoted, `${quoted.replaceAll(/[“”]/g, '"').replace("’", "'").replace("–", "-")}er.`, "er.");
    const plain = quoted.replaceAll(/[“”]/g, '"').replace("’", "'").replace("–", "-");
    joins(plain, `${quoted}er.`, "er.");
  });

  it("may have carriage returns or not", () => {
    const lines = "First line of the letter to you\nSecond line of it, which is cut he";
    joins(lines, `${lines.replaceAll("\n", "\r\n")}re`, "re");
    joins(lines.replaceAll("\n", "\r\n"), `${lines}re`, "re");
  });

  it("has at the seam exactly the white space that was shown, and more of it is new", () => {
    joins("Well then.\n", "Well then.\n\nAnd now?", "\nAnd now?");
    joins("Well then. ", "Well then. And now?", "And now?");
    refuses("Well then.\n\n", "Well then.\nAnd now?");
    refuses("Well then. ", "Well then.\n\nAnd now?");
    refuses("Well then. ", "Well then.And now?");
  });

  it("cut between a carriage return and its line end goes on with the line end", () => {
    joins("Well then.\r", "Well then.\r\nAnd now?", "\nAnd now?");
    joins("Well then.\r\n", "Well then.\r\nAnd now?", "And now?");
    joins("Well then.", "Well then.\r\nAnd now?", "\r\nAnd now?");
  });

  it("that stops exactly at the end joins with nothing, also where the provider leaves out the last white space", () => {
    joins(text, second, "");
    joins("Well then.\n\n", "Well then.", "");
    joins("Well then.\n\n", "Well then.\n", "");
  });

  it("that stops in the anchor, or says nothing, is not proven", () => {
    refuses(text, second.slice(0, -1), "stopped");
    refuses(text, "", "stopped");
    refuses(text, "\n\n", "stopped");
  });

  it("that breaks in the anchor has shown nothing, and is neither proven nor refused", () => {
    assert.deepInclude(goOn(text, second.slice(0, -1), "breaks"), { verdict: "open", released: "" });
  });

  it("in which a call comes before the anchor is whole is not proven", () => {
    assert.deepInclude(goOn(text, second.slice(0, -1), "calls"), { fault: "not_text", released: "" });
    assert.deepInclude(goOn(text, "", "calls"), { fault: "not_text", released: "" });
    assert.deepInclude(goOn(text, second, "calls"), { verdict: "joined", released: "" });
  });

  it("joins in a family, a flag, a letter with marks and half a character", () => {
    for (const whole of [
      "Here is a family 👨‍👩‍👧‍👦 and a flag 🇩🇪 and a letter e\u0301\u0323 and thumbs 👍🏽.",
      "\ud83d\ude00\ud83d\ude01",
    ]) {
      for (let at = 1; at < whole.length; at += 1) {
        const anchor = anchorOf(whole.slice(0, at));
        if (typeof anchor !== "string") joins(whole.slice(0, at), whole, whole.slice(at));
      }
    }
  });
});

describe("a continuation of code", () => {
  const code = 'Here it is:\n\n```ts\nconst a = "x";\nfor (const one of all) {\n    if (one > 0) {\n        run(on';

  it("has the white space and the quotes of the program", () => {
    const asked = 'const a = "x";\nfor (const one of all) {\n    if (one > 0) {\n        run(one);';
    joins(code, asked, "e);");
    refuses(code, asked.replace("    if", "  if"));
    refuses(code, asked.replace('"x"', "“x”"));
    refuses(code, asked.replace("{\n    if", "{\n\n    if"));
  });

  it("may open its fence again with the line that opened it", () => {
    const anchor = anchorOf(code);
    if (typeof anchor === "string") throw new Error(anchor);
    joins(code, `\`\`\`ts\n${anchor.text}e);`, "e);");
    joins(code, `\n\`\`\`ts  \r\n${anchor.text}e);`, "e);");
    joins(code.replace("```ts", "~~~ts title=x"), `~~~ts\n${anchor.text}e);`, "e);");
  });

  it("is refused behind any other fence: in another language, one that closes, a second one, or one in prose", () => {
    const anchor = anchorOf(code);
    if (typeof anchor === "string") throw new Error(anchor);
    refuses(code, `\`\`\`js\n${anchor.text}e);`);
    refuses(code, `\`\`\`\n\n${anchor.text}e);`);
    refuses(code, `~~~ts\n${anchor.text}e);`);
    refuses(code, `\`\`\`ts\n\`\`\`ts\n${anchor.text}e);`);
    refuses(text, `\`\`\`\n${second}t.`, "differs", 1);
  });

  it("is not whole with the line that opens its fence, also where white space ends the shown text", () => {
    const lines = Array.from({ length: 60 }, (_, at) => `const value${at} = await valueOf(${at}, "by its name");`);
    const shown = `Here is the code:\n\n\`\`\`ts\n${lines.join("\n")}\nreturn value1 + value2 + `;
    refuses(shown, "```ts", "stopped");
    refuses(shown, "```ts\n", "stopped");
    joins(shown, `\`\`\`ts\n${lines.slice(50).join("\n")}\nreturn value1 + value2 + value3;`, "value3;");
  });

  it("is prose again behind the line that closes the fence", () => {
    const prose = "And that’s all there is to say about this “program” of o";
    joins(`${code}e);\n\`\`\`\n\n${prose}`, `${prose.replace("’", "'").replaceAll(/[“”]/g, '"')}urs`, "urs");
  });

  it("is not closed by a shorter fence, or one of another kind, or one with a word behind it", () => {
    for (const inner of ["```", "~~~~", "````ts"]) {
      const open = `Look:\n\n\`\`\`\`md\nSome “text” here\n${inner}\nconst value = "one" + "two" + "three" + "fou`;
      refuses(open, 'const value = “one” + "two" + "three" + "four"');
    }
  });
});
