/**
 * Computes the token budget for the rest of a response: the requested budget minus the shown text.
 */
import * as Json from "../../domain/Json.ts";
import { ofCharacters } from "../../domain/Prices.ts";

/** Minimum tokens of a rest, unless the request asked for fewer: an estimate must not cut it at once. */
export const restTokensMin = 256;

/** The sizes that determine the budget of a rest. */
export interface Rest {
  /** Text of the response that was shown, in UTF-16 code units. */
  readonly shown: number;
  /** Shown text that the rest repeats, in UTF-16 code units. */
  readonly quoted: number;
}

/**
 * The budget of a rest. Thinking is paid again, and its budget stays below the total, as providers require.
 *
 * @param asked the requested budget; returned unchanged if it is not a count
 * @param thinking the part reserved for thinking, if the request sets one
 */
export const restOf = (asked: unknown, { quoted, shown }: Rest, thinking?: unknown): unknown => {
  const whole = Json.natural(asked);
  if (whole === undefined) return asked;
  const thought = Math.min(whole, Json.natural(thinking) ?? 0);
  const least = thought + Math.min(restTokensMin, whole - thought);
  return Math.min(whole, Math.max(least, whole - ofCharacters(shown) + ofCharacters(quoted)));
};

/**
 * Replaces the budget in some fields of a request by that of a rest.
 *
 * @param names the fields that may hold the budget; missing ones are not added
 */
export const withRest = (
  request: Json.JsonRecord,
  names: ReadonlyArray<string>,
  rest: Rest,
  thinking?: unknown,
): Json.JsonRecord => {
  const changed = names.flatMap((name) =>
    request[name] === undefined ? [] : [[name, restOf(request[name], rest, thinking)] as const],
  );
  return changed.length === 0 ? request : { ...request, ...Object.fromEntries(changed) };
};
