import { assert, describe, it } from "@effect/vitest";
import * as JsonScan from "../../../src/provider/stream/JsonScan.ts";
import { seeded } from "../../Seeded.ts";

const inPieces = (text: string, dice: () => number): JsonScan.JsonScan => {
  let state = JsonScan.start;
  for (let at = 0; at < text.length; ) {
    const size = Math.floor(dice() * 5);
    state = JsonScan.scan(state, text.slice(at, at + size));
    at += size;
  }
  return state;
};

const parses = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

const samples = [
  "{}",
  '{"a":"}"}',
  '{"a":"\\"}"}',
  '{"a":"\\\\"}',
  ' {"a":[1,{"b":"[{"}]} \n',
  "[[[]]]",
  '"a\\u0022b"',
  "12",
  "-1.5e3",
  "true",
  "null",
  " ",
];

describe("JsonScan", () => {
  it("knows the end of a text in any pieces as it knows it of the whole", () => {
    const dice = seeded(27);
    for (const sample of samples)
      for (let end = 0; end <= sample.length; end += 1) {
        const text = sample.slice(0, end);
        assert.deepStrictEqual(inPieces(text, dice), JsonScan.scan(JsonScan.start, text), text);
      }
  });

  it("never overlooks whole JSON: what parses is whole or a word, whatever it is cut out of", () => {
    const dice = seeded(28);
    const alphabet = '{}[]":,\\ab1 \n';
    for (let round = 0; round < 30_000; round += 1) {
      const length = Math.floor(dice() * 9);
      const text = Array.from({ length }, () => alphabet[Math.floor(dice() * alphabet.length)]).join("");
      const { phase } = inPieces(text, dice);
      if (parses(text)) assert.include(["whole", "word"], phase, JSON.stringify(text));
      if (phase === "beyond" || phase === "open") assert.isFalse(parses(text), JSON.stringify(text));
    }
  });

  it("never takes back that more came behind the end", () => {
    const beyond = JsonScan.scan(JsonScan.start, "{}x");
    assert.strictEqual(beyond.phase, "beyond");
    assert.strictEqual(JsonScan.scan(beyond, '"}').phase, "beyond");
    assert.strictEqual(JsonScan.scan(JsonScan.start, "1".repeat(JsonScan.wordCharactersMax + 1)).phase, "beyond");
  });
});
