/**
 * Builds the arguments of a Gemini function call from the pieces that `streamFunctionCallArguments` sends:
 * `{ jsonPath: "$.a.b[0]", stringValue: "…", willContinue: true }`.
 */
import * as Json from "../../domain/Json.ts";

/** A value at its path. Text that arrives in pieces is joined. */
export interface Piece {
  readonly path: string;
  readonly value: string | number | boolean | null;
  readonly open: boolean;
}

/** Maximum number of pieces of one call. */
export const piecesMax = 4096;

/** Maximum length of a path, in steps. */
export const stepsMax = 64;

/** Gathers the `partialArgs` of one part. */
export const gather = (pieces: ReadonlyArray<Piece>, partialArgs: ReadonlyArray<unknown>): ReadonlyArray<Piece> => {
  let gathered = pieces;
  for (const entry of partialArgs) {
    const piece = read(Json.record(entry) ?? {});
    // Past the limit the call cannot be read anyway, so further pieces are not kept.
    if (piece === undefined || gathered.length > piecesMax) continue;
    const last = gathered.at(-1);
    const joins = last?.open === true && last.path === piece.path && typeof last.value === "string";
    gathered = joins
      ? gathered.with(-1, { ...piece, value: last.value + (typeof piece.value === "string" ? piece.value : "") })
      : [...gathered, piece];
  }
  return gathered;
};

/**
 * Builds the arguments.
 *
 * @param base arguments that arrived whole, before the pieces or with them
 * @returns their JSON text; undefined if a path does not fit the arguments
 */
export const build = (base: unknown, pieces: ReadonlyArray<Piece>): string | undefined => {
  // Gateways that translate from Chat Completions leave the arguments as a JSON string.
  const whole = Json.record(Json.parse(Json.string(base))?.json) ?? base ?? {};
  const root: Node = Json.parse(JSON.stringify(whole))?.json;
  if (pieces.length === 0) return JSON.stringify(root);
  const holder: Fields = Object.assign(Object.create(null), { root: Json.record(root) ?? {} });
  for (const piece of pieces) {
    const steps = stepsOf(piece.path);
    if (steps === undefined || !put(holder, ["root", ...steps], piece.value)) return undefined;
  }
  return JSON.stringify(holder.root);
};

type Node = unknown;
type Fields = { [key: string]: Node };

const read = (entry: Json.JsonRecord): Piece | undefined => {
  const path = Json.string(entry.jsonPath);
  const open = entry.willContinue === true;
  for (const value of [entry.stringValue, entry.numberValue, entry.boolValue]) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
      return { path, value, open };
    }
  }
  return "nullValue" in entry ? { path, value: null, open } : undefined;
};

/** Parses `$.a['b c'][0]` into `["a", "b c", 0]`; undefined for an invalid path. */
const stepsOf = (path: string): ReadonlyArray<string | number> | undefined => {
  if (!path.startsWith("$")) return undefined;
  const steps: Array<string | number> = [];
  const pattern = /\.([^.[\]]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]/y;
  pattern.lastIndex = 1;
  while (pattern.lastIndex < path.length) {
    const found = pattern.exec(path);
    if (found === null || steps.length >= stepsMax) return undefined;
    steps.push(found[2] === undefined ? (found[1] ?? found[3] ?? found[4] ?? "") : Number(found[2]));
  }
  return steps.length === 0 ? undefined : steps;
};

/** Sets a value. An index may extend a list only by one, so that a path cannot create a list with a billion empty elements. */
const put = (holder: Fields, steps: ReadonlyArray<string | number>, value: Node): boolean => {
  let at: Node = holder;
  for (const [depth, step] of steps.entries()) {
    const next = steps[depth + 1];
    const made: Node = next === undefined ? value : typeof next === "number" ? [] : Object.create(null);
    if (Array.isArray(at)) {
      if (typeof step !== "number" || step > at.length) return false;
      if (next === undefined || typeof at[step] !== "object" || at[step] === null) at[step] = made;
      at = at[step];
    } else if (typeof at === "object" && at !== null) {
      const key = String(step);
      const there = Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined;
      // Uses defineProperty, because assigning `__proto__` would change the prototype instead of the data.
      if (next === undefined || typeof there !== "object" || there === null)
        Object.defineProperty(at, key, { value: made, enumerable: true, writable: true, configurable: true });
      at = Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined;
    } else return false;
  }
  return true;
};
