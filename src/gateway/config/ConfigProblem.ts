/**
 * Describes a problem in a configuration file: its position and the expected value. Messages never quote the file or the environment,
 * because the quoted value may be a secret.
 */
import { type Schema, SchemaIssue } from "effect";
import { pathText } from "./JsonText.ts";

/** A problem in a configuration file. */
export interface ConfigProblem {
  /** Position in the file, for example `$.upstreams.groq.url`. */
  readonly path: string;
  /** Description of the expected value. */
  readonly message: string;
}

/** Creates a problem with its position as text. */
export const problemAt = (path: ReadonlyArray<PropertyKey>, message: string): ConfigProblem => ({
  path: pathText(path),
  message,
});

/**
 * Lists every problem that a schema found.
 *
 * @param below the position of the decoded value in the file
 */
export const problemsOf = (
  error: Schema.SchemaError,
  below: ReadonlyArray<PropertyKey> = [],
): ReadonlyArray<ConfigProblem> => {
  const { issues } = format(error.issue);
  const found = issues.map(({ message, path = [] }) => problemAt([...below, ...path.map(stepOf)], lowerFirst(message)));
  // A union reports a problem for each of its members, but one per position is enough.
  return found.filter(({ path }, at) => found.findIndex((other) => other.path === path) === at);
};

const lowerFirst = (message: string): string => `${message.charAt(0).toLowerCase()}${message.slice(1)}`;

const stepOf = (step: PropertyKey | { readonly key: PropertyKey }): PropertyKey =>
  typeof step === "object" ? step.key : step;

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    if (issue._tag === "MissingKey") return "expected this key";
    if (issue._tag === "UnexpectedKey") return "expected a known key";
    return SchemaIssue.defaultLeafHook(issue);
  },
});
