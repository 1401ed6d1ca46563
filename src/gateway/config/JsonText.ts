/**
 * Parses JSON that a person wrote. Errors do not quote the text. Repeated names in an object are reported, because `JSON.parse` silently
 * keeps the last one.
 */

/** Path from the root of a value to one of its parts. */
export type JsonPath = ReadonlyArray<string | number>;

/** A parsed value with the paths of its repeated names, or an error. */
export type JsonRead =
  | { readonly value: unknown; readonly repeated: ReadonlyArray<JsonPath> }
  | { readonly broken: string };

/** Parses JSON text. Errors never quote the text, because it may contain a secret. */
export const readJson = (text: string): JsonRead => {
  try {
    // JSON.parse does not accept a byte order mark.
    const plain = text.replace(/^\uFEFF/, "");
    return { value: JSON.parse(plain), repeated: findDuplicateNames(plain) };
  } catch (error) {
    const at = /line (\d+) column (\d+)/.exec(error instanceof Error ? error.message : "");
    return {
      broken: at === null ? "expected JSON" : `expected JSON, got a syntax error at line ${at[1]}, column ${at[2]}`,
    };
  }
};

/** Formats a path for a person, for example `$.upstreams.groq.url`. */
export const pathText = (path: ReadonlyArray<PropertyKey>): string =>
  `$${path.map((step) => (typeof step === "string" && /^[\w$-]+$/.test(step) ? `.${step}` : `[${stepText(step)}]`)).join("")}`;

const stepText = (step: PropertyKey): string =>
  typeof step === "number" ? String(step) : JSON.stringify(String(step).slice(0, shownMax));

/** Maximum number of characters of a name in a formatted path. */
const shownMax = 64;

interface Frame {
  readonly names: Set<string> | undefined;
  step: string | number;
}

/** Finds names that occur twice in the same object. The text must be valid JSON. */
const findDuplicateNames = (text: string): ReadonlyArray<JsonPath> => {
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
