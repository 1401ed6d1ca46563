/**
 * Says what is wrong with a configuration file: where, and what was expected. No message holds a value of the file or of the
 * environment, because any of them may be a secret.
 */
import { type Schema, SchemaIssue } from "effect";
import { pathText } from "./JsonText.ts";

/** One thing that is wrong. */
export interface ConfigProblem {
  /** Where, as `$.upstreams.groq.url`. */
  readonly path: string;
  /** What was expected. */
  readonly message: string;
}

/** Makes one. */
export const problemAt = (path: ReadonlyArray<PropertyKey>, message: string): ConfigProblem => ({
  path: pathText(path),
  message,
});

/**
 * All that a schema finds.
 *
 * @param below where the value that it was asked of stands
 */
export const problemsOf = (
  error: Schema.SchemaError,
  below: ReadonlyArray<PropertyKey> = [],
): ReadonlyArray<ConfigProblem> => {
  const { issues } = format(error.issue);
  const found = issues.map(({ message, path = [] }) => problemAt([...below, ...path.map(stepOf)], sentence(message)));
  // A union says of each of its members what is wrong; one line is enough.
  return found.filter(({ path }, at) => found.findIndex((other) => other.path === path) === at);
};

const sentence = (message: string): string => `${message.charAt(0).toLowerCase()}${message.slice(1)}`;

const stepOf = (step: PropertyKey | { readonly key: PropertyKey }): PropertyKey =>
  typeof step === "object" ? step.key : step;

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    if (issue._tag === "MissingKey") return "expected this key";
    if (issue._tag === "UnexpectedKey") return "expected no such key";
    return SchemaIssue.defaultLeafHook(issue);
  },
});
