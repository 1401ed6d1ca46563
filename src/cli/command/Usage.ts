/**
 * Says in one line on stderr what is wrong with what was typed, with the nearest word that there is. Help is printed only where it is asked for.
 */
import { Console } from "effect";
import { type CliError, CliOutput } from "effect/cli";

/** Prints help and versions as ever, and a wrong invocation as one line. */
export const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Console.error(usageLine(event.commandPath, event.errors))
      : CliOutput.defaultPresenter.present(event),
};

/**
 * The line for an invocation that is wrong.
 *
 * @param path the program's name and the commands that were understood
 * @param errors at least one; the first is told
 */
export const usageLine = (
  path: ReadonlyArray<string>,
  [error, ...others]: ReadonlyArray<CliError.NonShowHelpErrors>,
): string => {
  const command = path.length > 1 ? path.slice(1).join(" ") : path.join(" ");
  const said = error === undefined ? "the arguments cannot be read" : sentence(error);
  const more = others.length === 0 ? "" : ` ${others.length} more ${others.length === 1 ? "error" : "errors"}.`;
  return `${command}: ${said}${said.endsWith("?") ? "" : "."}${more} See ${path.join(" ")} --help`;
};

const sentence = (error: CliError.NonShowHelpErrors): string => {
  switch (error._tag) {
    case "UnrecognizedOption":
      return `there is no flag ${shown(error.option)}${nearest(error.suggestions)}`;
    case "UnknownSubcommand":
      return `there is no command ${shown(error.subcommand)}${nearest(error.suggestions)}`;
    case "MissingOption":
      return `--${error.option} is missing`;
    case "MissingArgument":
      return `<${error.argument}> is missing`;
    case "UnexpectedArgument":
      return `${error.arguments.map(shown).join(" ")}: expected no such argument`;
    case "InvalidValue":
      return invalid(error);
    default:
      return oneLine(error.message);
  }
};

const invalid = ({ expected, kind, option, value }: CliError.InvalidValue): string => {
  // A variable's value is not repeated: it may be a token.
  const variable = /at \["?(\w+)"?\]\)?$/.exec(expected)?.[1];
  const wanted = wantedOf(expected);
  if (variable !== undefined) return `$${variable}: expected ${wanted}`;
  const name = kind === "argument" ? `<${option}>` : `--${option}`;
  const got = kind !== "argument" && value === "" ? "got no value" : `got ${shown(value)}`;
  return `${name}: expected ${wanted}, ${got}`;
};

/** What was expected, in this program's words; a choice of words as a list. */
const wantedOf = (expected: string): string => {
  const text = oneLine(expected)
    .replace(/^SchemaError\((.*?)(?: at \[.*)?\)$/, "$1")
    .replace(/^Expected:? /, "")
    .replace(/, (?:got|actual) .*$/, "");
  if (/finite number|\binteger\b|an? int\b/i.test(text)) return "a whole number";
  return text.replaceAll('"', "").replaceAll(" | ", ", ");
};

const nearest = (suggestions: ReadonlyArray<string>): string =>
  suggestions.length === 0 ? "" : `; did you mean ${suggestions.slice(0, 3).join(" or ")}?`;

/** Longest piece of what was typed that is repeated. */
const shownMax = 80;

const shown = (typed: string): string =>
  JSON.stringify(typed.length > shownMax ? `${typed.slice(0, shownMax)}…` : typed);

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();
