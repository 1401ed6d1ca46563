/**
 * Assembles the schema of the configuration file from all options that have a key. The published JSON Schema and the table of keys in the
 * docs are generated from this schema.
 */
import { Schema } from "effect";
import { entries, groups } from "./Options.ts";

/** Returns the schemas of a group's keys. Without a group, returns those at the top level of the file. */
const keysOf = (group: string | undefined) =>
  Object.fromEntries(
    entries.flatMap(({ key = [""], schema }) => {
      const [outer, inner] = key;
      const name = group === undefined ? (inner === undefined ? outer : "") : outer === group ? inner : "";
      return name ? [[name, Schema.optionalKey(schema)] as const] : [];
    }),
  );

const [listen, ...others] = Object.entries(groups).map(
  ([name, { description }]) =>
    [name, Schema.optionalKey(Schema.Struct(keysOf(name)).annotate({ description }))] as const,
);

/** The schema of the whole file. */
export const ConfigSchema = Schema.Struct({
  $schema: Schema.optionalKey(Schema.String.annotate({ description: "Location of this schema, for editors" })),
  ...Object.fromEntries(listen === undefined ? [] : [listen]),
  ...keysOf(undefined),
  // `moves_on` is not a separate option: it completes the lists of `routes`.
  moves_on: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Array(Schema.Literals(["refused", "empty", "model_length"]))).annotate({
      description:
        "Ways to finish that count as failures, so that the request moves to the next route; by the name of an upstream with routes",
    }),
  ),
  ...Object.fromEntries(others),
});

/** Builds the file's JSON Schema, draft 2020-12. Like the gateway, it rejects unknown keys. */
export const jsonSchema = (): object => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(ConfigSchema);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Configuration of stream-recovery serve",
    ...strict(schema),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }),
  };
};

const strict = (schema: object): object =>
  Object.fromEntries(
    Object.entries(schema).map(([key, value]): [string, unknown] => {
      if (key === "additionalProperties" && value === true && "properties" in schema) return [key, false];
      return [key, makeStrict(value)];
    }),
  );

const makeStrict = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(makeStrict);
  return typeof value === "object" && value !== null ? strict(value) : value;
};
