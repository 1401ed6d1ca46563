/**
 * Says how many tokens the rest of a response may have: what the whole was asked to have, without what was shown of it.
 */
import * as Json from "../../domain/Json.ts";
import { ofCharacters } from "../../domain/Prices.ts";

/** Fewest tokens that a rest is asked to have, unless the whole was asked to have fewer: an estimate must not cut it at once. */
export const restTokensMin = 256;

/** What a rest is made of. */
export interface Rest {
  /** Text of the response that was shown, in UTF-16 code units. */
  readonly shown: number;
  /** Text of it that the rest says once more. */
  readonly quoted: number;
}

/**
 * The budget of a rest. Thinking is paid again, and its budget stays below the whole one, as providers demand it.
 *
 * @param asked what the request asked for; what is no count stays as it is
 * @param thinking the part of it that the model may think, where the request says so
 */
export const restOf = (asked: unknown, { quoted, shown }: Rest, thinking?: unknown): unknown => {
  const whole = Json.natural(asked);
  if (whole === undefined) return asked;
  const thought = Math.min(whole, Json.natural(thinking) ?? 0);
  const least = thought + Math.min(restTokensMin, whole - thought);
  return Math.min(whole, Math.max(least, whole - ofCharacters(shown) + ofCharacters(quoted)));
};

/**
 * A request with the budget of a rest in some of its fields.
 *
 * @param names the fields that may hold the budget; those that the request has not stay away
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
