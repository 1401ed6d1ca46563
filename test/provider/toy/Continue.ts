/**
 * Builds the next request of the toy protocol: turns, of which the last is never the toy's own.
 */
import * as Result from "effect/Result";
import * as Json from "../../../src/domain/Json.ts";
import { type ContinuationError, type Prepared, refusal } from "../../../src/provider/continuation/Input.ts";
import type { TurnForm } from "../../../src/provider/continuation/Turn.ts";
import { closingWords } from "../../../src/provider/continuation/Words.ts";

export const turn: TurnForm = { list: "turns", content: "say", bare: true, part: (text) => text };

export const build = ({ body, items, whole }: Prepared): Result.Result<Json.JsonRecord, ContinuationError> => {
  if (!Array.isArray(body.turns)) return refusal("invalid", "turns", "expected a list");
  const turns: ReadonlyArray<unknown> = body.turns;
  const say = items.map(({ json, type }) => (type === "text" ? Json.string(json.say) : "")).join("");
  const closed = items.flatMap(({ closing, json }) => (closing === undefined ? [] : [{ closing, json }]));
  const calls = closed.map(({ json }) => ({ tool: json.name, input: json.input }));
  const results = closed.map(({ closing }) => ({ role: "tool", say: closing.output }));
  const words = closingWords(items, { spoken: say !== "" && results.length === 0, lostHosted: false, whole });
  return Result.succeed({
    ...body,
    turns: [
      ...turns,
      ...(say === "" && calls.length === 0 ? [] : [{ role: "toy", say, calls }]),
      ...results,
      ...(words === undefined ? [] : [{ role: "user", say: words }]),
    ],
  });
};
