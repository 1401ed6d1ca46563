/**
 * Compares the scanner with `JSON.parse`: what is JSON, and what stands where, however it is cut into slices.
 */
import { assert } from "@effect/vitest";
import { type JsonEnd, type JsonListener, JsonScan } from "../../../../src/adapters/relay/form/JsonScan.ts";
import { seeded } from "../../../Seeded.ts";
import { nearlyJson, parsed } from "./JsonTexts.ts";

/** Reads bytes in slices. */
export const readIn = (bytes: Uint8Array, listener: JsonListener, slice: () => number): JsonEnd => {
  const scan = new JsonScan(bytes, listener);
  for (let reads = 0; ; reads += 1) {
    const end = scan.read(slice());
    if (end !== undefined) return end;
    if (reads > bytes.length + 9) throw new Error("it reads nothing");
  }
};

/** Makes of what is told a text of JSON: the tokens, and commas where they belong. */
export class ToldText implements JsonListener {
  readonly #bytes: Uint8Array;
  readonly #begun: Array<boolean> = [false];
  text = "";

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  readonly open = (bracket: number, at: number): void => {
    assert.strictEqual(this.#bytes[at], bracket);
    this.#comma();
    this.text += String.fromCharCode(bracket);
    this.#begun.push(false);
  };
  readonly close = (bracket: number, to: number): void => {
    assert.strictEqual(this.#bytes[to - 1], bracket);
    this.#begun.pop();
    this.text += String.fromCharCode(bracket);
  };
  readonly key = (from: number, to: number): void => {
    this.#comma();
    this.text += `${this.#told(from, to)}:`;
    this.#begun[this.#begun.length - 1] = false;
  };
  readonly scalar = (from: number, to: number): void => {
    this.#comma();
    this.text += this.#told(from, to);
  };

  #told(from: number, to: number): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.#bytes.subarray(from, to));
  }

  #comma(): void {
    if (this.#begun.at(-1) === true) this.text += ",";
    this.#begun[this.#begun.length - 1] = true;
  }
}

/** Compares texts of seeds. */
export const compare = (from: number, to: number): { readonly json: number; readonly others: number } => {
  let json = 0;
  for (let seed = from; seed < to; seed += 1) {
    const random = seeded(seed);
    const bytes = nearlyJson(random);
    const expected = parsed(bytes);
    const told = new ToldText(bytes);
    const sliced = new ToldText(bytes);
    const said = `seed ${seed}: ${Buffer.from(bytes).toString("latin1")}`;
    assert.strictEqual(
      readIn(bytes, told, () => bytes.length),
      expected === undefined ? "damaged" : "json",
      said,
    );
    assert.strictEqual(
      readIn(bytes, sliced, () => 1 + Math.floor(random() * 3)),
      expected === undefined ? "damaged" : "json",
      said,
    );
    assert.strictEqual(sliced.text, told.text, said);
    if (expected === undefined) continue;
    json += 1;
    // As text: two NaN and `__proto__` are the same as themselves there too.
    assert.strictEqual(JSON.stringify(JSON.parse(told.text)), JSON.stringify(expected.json), said);
  }
  return { json, others: to - from - json };
};
