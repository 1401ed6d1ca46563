/** Finds the field of a value that does not match its schema. */
import * as SchemaIssue from "effect/SchemaIssue";

const format = SchemaIssue.makeFormatterStandardSchemaV1();

/** Returns the path of the field and the expected value, but never the actual value, which may be a user's text. */
export const fieldMisfit = (issue: SchemaIssue.Issue): { readonly field: string; readonly expected: string } => {
  const first = format(issue).issues[0];
  const path = (first?.path ?? []).map((step) => (typeof step === "object" ? step.key : step));
  return {
    field: path.map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`)).join(""),
    expected: lowerFirst((first?.message ?? "Expected an entry").replace(/, (?:got|actual)\b.*$/s, "")),
  };
};

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
