/**
 * Spells one JSON value in many ways: its keys in any order, and with any blanks.
 */
import type { seeded } from "../../../Seeded.ts";
import { oneOf } from "../../../Seeded.ts";

/** A seeded random source. */
export type Random = ReturnType<typeof seeded>;

/** A JSON value whose numbers keep their text. */
export type Tree =
  | { readonly kind: "word"; readonly word: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "list"; readonly items: ReadonlyArray<Tree> }
  | { readonly kind: "object"; readonly members: ReadonlyMap<string, Tree> };

const words = "0 -0 1 1.0 1e0 1E0 -12.50 1e400 12345678901234567890 0.1e+9 true false null".split(" ");

const letters = [...'ab/\\"{}[],: 0\n\t\b\u0000\u001fé\u007f\u2028\ufffd😀', "\ud800", "\udc00"];

const names = ["a", "b", "a b", "a!", "A", "é", "", "__proto__", "constructor", "0", "10", "a/b", "😀"];

/** A value of random shape. */
export const anyTree = (random: Random, depth: number): Tree => {
  const kind = random();
  if (kind < 0.25) return { kind: "word", word: oneOf(random, words) };
  if (depth === 0 || kind < 0.5) {
    const text = Array.from({ length: Math.floor(random() * 6) }, () => oneOf(random, letters)).join("");
    return { kind: "text", text };
  }
  const parts = Array.from({ length: Math.floor(random() * 5) }, () => anyTree(random, depth - 1));
  if (kind < 0.7) return { kind: "list", items: parts };
  return { kind: "object", members: new Map(parts.map((part) => [oneOf(random, names), part])) };
};

/** The one text that stands for a value. */
export const reference = (tree: Tree): string => {
  if (tree.kind === "word") return tree.word;
  if (tree.kind === "text") return JSON.stringify(tree.text);
  if (tree.kind === "list") return `[${tree.items.map(reference).join(",")}]`;
  const members = [...tree.members].map(([key, item]) => [key, reference(item)] as const);
  const inOrder = members.toSorted(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  return `{${inOrder.map(([key, item]) => `${JSON.stringify(key)}:${item}`).join(",")}}`;
};

/** A random spelling of a value. */
export const spelt = (tree: Tree, random: Random): string => {
  if (tree.kind === "word") return tree.word;
  if (tree.kind === "text") return JSON.stringify(tree.text);
  const blank = () => (random() < 0.7 ? "" : oneOf(random, [" ", "\n", "\t\r ", "   "]));
  const joined = (parts: ReadonlyArray<string>) => parts.map((part) => `${blank()}${part}${blank()}`).join(",");
  if (tree.kind === "list") return `[${joined(tree.items.map((item) => spelt(item, random)))}${blank()}]`;
  const members = [...tree.members]
    .map((member) => ({ member, at: random() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ member: [key, item] }) => `${JSON.stringify(key)}${blank()}:${blank()}${spelt(item, random)}`);
  return `{${joined(members)}${blank()}}`;
};
