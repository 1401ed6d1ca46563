/**
 * Reads JSON of a person's: says where it is broken without repeating it, and finds names that stand twice in one object, of
 * which `JSON.parse` would drop all but the last.
 */

/** Steps from the root of a value to a part of it. */
export type JsonPath = ReadonlyArray<string | number>;

/** What was read. */
export type JsonRead =
  | { readonly value: unknown; readonly repeated: ReadonlyArray<JsonPath> }
  | { readonly broken: string };

/** Reads a text. A message never holds any of it: it may hold a secret. */
export const readJson = (text: string): JsonRead => {
  try {
    // A byte order mark is no part of the text.
    const plain = text.replace(/^\uFEFF/, "");
    return { value: JSON.parse(plain), repeated: repeatedNames(plain) };
  } catch (error) {
    const at = /line (\d+) column (\d+)/.exec(error instanceof Error ? error.message : "");
    return { broken: at === null ? "expected JSON" : `expected JSON, and line ${at[1]} column ${at[2]} is none` };
  }
};

/** A path as a person reads it: `$.upstreams.groq.url`. */
export const pathText = (path: ReadonlyArray<PropertyKey>): string =>
  `$${path.map((step) => (typeof step === "string" && /^[\w$-]+$/.test(step) ? `.${step}` : `[${shown(step)}]`)).join("")}`;

const shown = (step: PropertyKey): string =>
  typeof step === "number" ? String(step) : JSON.stringify(String(step).slice(0, shownMax));

/** Most characters of a name that are repeated. */
const shownMax = 64;

/** One object or array that is open. */
interface Frame {
  readonly names: Set<string> | undefined;
  step: string | number;
}

/** Walks over the tokens of a text that is known to be JSON. */
const repeatedNames = (text: string): ReadonlyArray<JsonPath> => {
  const found: Array<JsonPath> = [];
  const frames: Array<Frame> = [];
  let name: string | undefined;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g)) {
    const frame = frames.at(-1);
    if (token === "{") frames.push({ names: new Set(), step: "" });
    else if (token === "[") frames.push({ names: undefined, step: 0 });
    else if (token === "}" || token === "]") frames.pop();
    else if (token === ",") {
      if (typeof frame?.step === "number") frame.step += 1;
    } else if (token === ":") {
      if (frame?.names === undefined || name === undefined) continue;
      frame.step = name;
      if (frame.names.has(name)) found.push(frames.map(({ step }) => step));
      frame.names.add(name);
    } else {
      name = String(JSON.parse(token));
    }
  }
  return found;
};
