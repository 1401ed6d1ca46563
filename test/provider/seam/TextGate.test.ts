/**
 * What a splice asks of its gate is asked in order, once for one end of text, and not behind a fault.
 */
import { assert, describe, it } from "@effect/vitest";
import { bytesOf, TextGate } from "../../../src/provider/seam/TextGate.ts";
import type { SeamStep } from "../../../src/seam/SeamVerifier.ts";

/** A gate that notes what its verifier is asked; `joins` says from which question on the seam is proven. */
const noted = (joins: number, cut = 0) => {
  const asked: Array<string> = [];
  const step = (question: string, text: string): SeamStep => {
    asked.push(question);
    return asked.length < joins ? { type: "wait" } : { type: "joined", text: asked.length > joins ? text : "" };
  };
  const gate = new TextGate({
    cut,
    take: (piece) => step(piece, piece),
    close: () => step("close", ""),
    stop: () => step("stop", ""),
  });
  return { asked, gate };
};

describe("the gate of an attempt", () => {
  it("is told of a call in front of the seam, and asked nothing behind that", () => {
    const { asked, gate } = noted(9);
    gate.pass("anchor");
    assert.isUndefined(gate.closeText());
    assert.strictEqual(gate.pass("more") + gate.close(), "");
    gate.fail("unwritable");
    assert.deepStrictEqual(asked, ["anchor", "close"]);
    assert.strictEqual(gate.fault, "not_text");
  });

  it("is closed once for each end of a text", () => {
    const { asked, gate } = noted(1);
    gate.pass("anchor");
    assert.strictEqual(gate.closeText(), "");
    assert.strictEqual(gate.closeText(), "");
    gate.pass("more");
    assert.strictEqual(gate.closeText(), "");
    assert.deepStrictEqual(asked, ["anchor", "close", "more", "close"]);
  });

  it("reports the bytes that were cut off, and keeps no text once some was delivered", () => {
    const { gate } = noted(2, 3);
    gate.pass("\u00e4");
    gate.pass("\ud83d\ude00x");
    assert.strictEqual(gate.cutBytes, 2 + 4);
    gate.pass("y");
    gate.pass("z");
    assert.strictEqual(gate.cutBytes, 2 + 4);
  });

  it("fails on endless text that is not the anchor", () => {
    const { gate } = noted(9);
    for (let at = 0; at < 3; at++) gate.pass(" ".repeat(64 * 1024));
    assert.strictEqual(gate.fault, "unwritable");
  });

  it("counts bytes as UTF-8 has them", () => {
    const text = "a\u00e4\u20ac\ud83d\ude00";
    assert.strictEqual(bytesOf(text), new TextEncoder().encode(text).length);
  });
});
