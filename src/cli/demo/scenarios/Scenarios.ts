/**
 * Collects the demo's scenarios and selects those that `--only` names.
 */
import { Result } from "effect";
import { scenariosAnthropic } from "./Anthropic.ts";
import { scenariosGemini } from "./Gemini.ts";
import { scenariosChat } from "./OpenAiChat.ts";
import { scenariosResponses } from "./OpenAiResponses.ts";
import type { Scenario } from "./Scenario.ts";

/** Every scenario, by protocol. */
export const scenarios: ReadonlyArray<Scenario> = [
  ...scenariosAnthropic,
  ...scenariosChat,
  ...scenariosResponses,
  ...scenariosGemini,
];

/**
 * Selects scenarios.
 *
 * @param only names, or parts of names or protocols, possibly comma-separated; empty for all
 * @returns the scenarios in their order, or a one-line error
 */
export const select = (only: ReadonlyArray<string>): Result.Result<ReadonlyArray<Scenario>, string> => {
  const asked = only
    .flatMap((value) => value.split(","))
    .map((value) => value.trim())
    .filter((value) => value !== "");
  if (asked.length === 0) {
    return only.length === 0 ? Result.succeed(scenarios) : Result.fail("--only: expected a name, got nothing");
  }
  const unknown = asked.find((value) => !scenarios.some((scenario) => isMatch(scenario, value)));
  if (unknown !== undefined) {
    const names = scenarios.map((scenario) => scenario.name).join(", ");
    return Result.fail(`--only: unknown run "${unknown}"; expected ${names}`);
  }
  return Result.succeed(scenarios.filter((scenario) => asked.some((value) => isMatch(scenario, value))));
};

/** An exact name matches only that scenario, even if it is part of another name. */
const isMatch = ({ name, protocol }: Scenario, asked: string): boolean =>
  scenarios.some((it) => it.name === asked) ? name === asked : name.includes(asked) || protocol.includes(asked);
