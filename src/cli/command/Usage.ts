/**
 * Reports invalid usage in one line on stderr, with the closest valid name. Help is printed only on request.
 */
import { Console } from "effect";
import { type CliError, CliOutput } from "effect/cli";
import { findReplacement } from "../../domain/RemovedOptions.ts";

/** Prints help and versions as usual, and invalid usage as one line. */
export const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Console.error(usageLine(event.commandPath, event.errors))
      : CliOutput.defaultPresenter.present(event),
};

/**
 * Formats the error line of an invalid invocation.
 *
 * @param path the program's name and the recognised commands
 * @param errors at least one; the first is printed and the rest are counted
 */
export const usageLine = (
  path: ReadonlyArray<string>,
  [error, ...others]: ReadonlyArray<CliError.NonShowHelpErrors>,
): string => {
  const command = path.length > 1 ? path.slice(1).join(" ") : path.join(" ");
  const said = error === undefined ? "cannot parse the arguments" : toSentence(error);
  const more = others.length === 0 ? "" : ` ${others.length} more ${others.length === 1 ? "error" : "errors"}.`;
  return `${command}: ${said}${said.endsWith("?") ? "" : "."}${more} See ${path.join(" ")} --help`;
};

const toSentence = (error: CliError.NonShowHelpErrors): string => {
  switch (error._tag) {
    case "UnrecognizedOption":
      return `unknown flag ${quote(error.option)}${insteadOr(error.option, formatSuggestions(error.suggestions))}`;
    case "UnknownSubcommand":
      return `unknown command ${quote(error.subcommand)}${formatSuggestions(error.suggestions)}`;
    case "MissingOption":
      return `--${error.option} is missing`;
    case "MissingArgument":
      return `<${error.argument}> is missing`;
    case "UnexpectedArgument":
      return `${error.arguments.map(quote).join(" ")}: expected no further argument`;
    case "InvalidValue":
      return describeInvalidValue(error);
    default:
      return oneLine(error.message);
  }
};

const describeInvalidValue = ({ expected, kind, option, value }: CliError.InvalidValue): string => {
  // A variable's value is never printed, because it may be a token.
  const variable = /at \["?(\w+)"?\]\)?$/.exec(expected)?.[1];
  const wanted = describeExpected(expected);
  if (variable !== undefined) return `$${variable}: expected ${wanted}`;
  const name = kind === "argument" ? `<${option}>` : `--${option}`;
  const got = kind !== "argument" && value === "" ? "got no value" : `got ${quote(value)}`;
  return `${name}: expected ${wanted}, ${got}`;
};

/** Rewrites Effect's description of the expected value: a choice becomes a list. */
const describeExpected = (expected: string): string => {
  const text = oneLine(expected)
    .replace(/^SchemaError\((.*?)(?: at \[.*)?\)$/, "$1")
    .replace(/^Expected:? /, "")
    .replace(/, (?:got|actual) .*$/, "");
  if (/finite number|\binteger\b|an? int\b/i.test(text)) return "a whole number";
  return text.replaceAll('"', "").replaceAll(" | ", ", ");
};

/** @param otherwise text for a flag that no earlier version had */
const insteadOr = (flag: string, otherwise: string): string => {
  const instead = findReplacement(flag);
  return instead === undefined ? otherwise : `: ${instead}`;
};

const formatSuggestions = (suggestions: ReadonlyArray<string>): string =>
  suggestions.length === 0 ? "" : `; did you mean ${suggestions.slice(0, 3).join(" or ")}?`;

/** Maximum characters of user input repeated in an error. */
const shownMax = 80;

const quote = (typed: string): string =>
  JSON.stringify(typed.length > shownMax ? `${typed.slice(0, shownMax)}…` : typed);

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();
