/**
 * Compares the outline of a body with what `JSON.parse` makes of the whole of it.
 */
import { assert } from "@effect/vitest";
import { conversation, outlineOf, schemas, wrapped } from "../../../src/gateway/body/BodyOutline.ts";
import { readIn } from "../../adapters/relay/form/JsonScanCases.ts";
import { nearlyJson, parsed } from "../../adapters/relay/form/JsonTexts.ts";
import { seeded } from "../../Seeded.ts";

/** What an outline leaves of a value whose texts are short. */
export const leftOf = (value: unknown, level = 0): unknown => {
  if (Array.isArray(value)) return value.map((item) => leftOf(item, level + 1));
  if (typeof value !== "object" || value === null) return value;
  const left = Object.entries(value).map(([name, member]) => {
    const isOut = (level === 0 && conversation.has(name)) || (level === 1 && wrapped.has(name)) || schemas.has(name);
    return [name, isOut ? emptied(member) : leftOf(member, level + 1)] as const;
  });
  return Object.fromEntries(left);
};

const emptied = (value: unknown): unknown => {
  if (Array.isArray(value)) return [];
  if (typeof value === "string") return "";
  return typeof value === "object" && value !== null ? {} : value;
};

/** Compares bodies of seeds. */
export const compareOutlines = (from: number, to: number): number => {
  let outlines = 0;
  for (let seed = from; seed < to; seed += 1) {
    const random = seeded(seed);
    const bytes = nearlyJson(random);
    const expected = parsed(bytes);
    const outline = outlineOf(bytes);
    const end = readIn(bytes, outline, () => 1 + Math.floor(random() * 5));
    const said = `seed ${seed}: ${Buffer.from(bytes).toString("latin1")}`;
    assert.strictEqual(end, expected === undefined ? "damaged" : "json", said);
    if (expected === undefined) continue;
    assert.strictEqual(JSON.stringify(JSON.parse(outline.text)), JSON.stringify(leftOf(expected.json)), said);
    outlines += 1;
  }
  return outlines;
};
