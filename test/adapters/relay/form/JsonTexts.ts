/**
 * Makes texts that are JSON, and texts that are nearly JSON, as bytes.
 */
import type { seeded } from "../../../Seeded.ts";
import { oneOf } from "../../../Seeded.ts";

type Random = ReturnType<typeof seeded>;

/** Names by which something is left out, and others; some come twice in an object. */
const names = [
  "messages",
  "tools",
  "description",
  "parameters",
  "a",
  "é",
  "__proto__",
  "0",
  "a\\u0062",
  "",
  "\\ud800",
  "constructor",
];

const scalars = [
  ..."0 -0 1 -12.50 1e5 2E-3 0.1e+9 123456789012345678901234567890 1e999 true false null".split(" "),
  ...[
    '""',
    '"text"',
    '"\\"quoted\\" \\\\"',
    '"\\u00e9\\n\\/\\b"',
    '"\\ud83d\\ude00 \\ud800"',
    '"é 𝒳 \u2028"',
    '"{[,]}:"',
  ],
];

const blank = (random: Random): string => (random() < 0.8 ? "" : oneOf(random, [" ", "\n", "\t\r ", "   "]));

/** JSON of any value. */
export const jsonText = (random: Random, depth: number): string => {
  const kind = random();
  if (depth <= 0 || kind < 0.4) return oneOf(random, scalars);
  const parts = Array.from({ length: Math.floor(random() * 4) }, () => jsonText(random, depth - 1));
  if (kind > 0.6) return objectText(random, parts);
  return `[${blank(random)}${parts.join(`${blank(random)},${blank(random)}`)}${blank(random)}]`;
};

/** JSON of an object. */
export const objectText = (random: Random, values: ReadonlyArray<string>): string => {
  const members = values.map((value) => `"${oneOf(random, names)}"${blank(random)}:${blank(random)}${value}`);
  return `{${blank(random)}${members.join(`${blank(random)},${blank(random)}`)}${blank(random)}}`;
};

/** What is put into a text to break it, or not. */
const splinters = [
  ...'{}[]",:\\0123456789eE+-.tfnu \n\u0000\u007f\ufeff',
  "true",
  "null",
  "\\u00",
  "\\x",
  "//",
  "'",
  "NaN",
  "\u00a0",
];

/** Bytes of a text that is JSON, or was before it was damaged. */
export const nearlyJson = (random: Random): Uint8Array<ArrayBuffer> => {
  const text = `${blank(random)}${random() < 0.7 ? objectText(random, [jsonText(random, 3), jsonText(random, 4)]) : jsonText(random, 3)}${blank(random)}`;
  const bytes = [...Buffer.from(random() < 0.05 ? `\ufeff${text}` : text)];
  for (let wounds = Math.floor(random() * 3); wounds > 0; wounds -= 1) {
    const at = Math.floor(random() * (bytes.length + 1));
    const kind = random();
    if (kind < 0.3) bytes.splice(at, 1 + Math.floor(random() * 3));
    else if (kind < 0.4) bytes.splice(at, 1, Math.floor(random() * 256));
    else if (kind < 0.5) bytes.length = at;
    else bytes.splice(at, kind < 0.7 ? 1 : 0, ...Buffer.from(oneOf(random, splinters)));
  }
  return Uint8Array.from(bytes);
};

/** What `JSON.parse` makes of bytes; undefined where they are no JSON. */
export const parsed = (bytes: Uint8Array): { readonly json: unknown } | undefined => {
  try {
    return { json: JSON.parse(new TextDecoder().decode(bytes)) };
  } catch {
    return undefined;
  }
};
