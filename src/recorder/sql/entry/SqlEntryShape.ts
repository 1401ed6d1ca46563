/**
 * Compiles a schema to a predicate on values of its type. The predicate is derived from the schema, so it never misses a new field. It runs
 * without effects, exits and copies, because every write checks each of its entries.
 *
 * It supports the kinds of schema that records use. Other kinds fall back to `Schema.is`.
 */
import * as Schema from "effect/Schema";
import * as SchemaAST from "effect/SchemaAST";

type Question = (value: unknown) => boolean;

/** Returns a predicate equivalent to `Schema.is(schema)`. For a transforming schema, it checks the decoded type. */
export const shapeOf = (schema: Schema.Constraint): Question => questionOf(SchemaAST.toType(schema.ast));

const questionOf = (ast: SchemaAST.AST): Question => {
  const kind = kindOf(ast);
  if (kind === undefined) return Schema.is(Schema.make(ast));
  if (ast.checks === undefined) return kind;
  const filters = filtersOf(ast.checks);
  const bounded = boundedOf(ast._tag, filters);
  if (bounded !== undefined) return bounded;
  return (value) => {
    if (!kind(value)) return false;
    // A filter accepts only values of its node's kind. That kind was checked before.
    for (const filter of filters) if (filter.run(value as never, ast, plainly) !== undefined) return false;
    return true;
  };
};

/**
 * Compiles bounded strings and numbers to a single check, because nearly all fields are of these kinds. A generic filter takes several
 * calls and may allocate an issue.
 *
 * @returns undefined for other kinds and unknown filters
 */
const boundedOf = (
  tag: SchemaAST.AST["_tag"],
  filters: ReadonlyArray<SchemaAST.Filter<never>>,
): Question | undefined => {
  let longest = Number.POSITIVE_INFINITY;
  let least = Number.NEGATIVE_INFINITY;
  let isRight: ((value: number) => boolean) | undefined;
  for (const { annotations } of filters) {
    const { id, payload } = annotations?.representation ?? {};
    const { maxLength, minimum } = isObject(payload) ? payload : {};
    if (tag === "String" && id === "effect/schema/isMaxLength" && typeof maxLength === "number")
      longest = Math.min(longest, maxLength);
    else if (tag === "Number" && id === "effect/schema/isGreaterThanOrEqualTo" && typeof minimum === "number")
      least = Math.max(least, minimum);
    else if (tag === "Number" && id === "effect/schema/isInt") isRight = Number.isSafeInteger;
    // Every safe integer is finite.
    else if (tag === "Number" && id === "effect/schema/isFinite") isRight ??= Number.isFinite;
    else return undefined;
  }
  if (tag === "String") return (value) => typeof value === "string" && value.length <= longest;
  const right = isRight;
  return right && ((value) => typeof value === "number" && right(value) && value >= least);
};

/** Compiles a node without its checks; returns undefined for an unsupported kind. */
const kindOf = (ast: SchemaAST.AST): Question | undefined => {
  switch (ast._tag) {
    case "String":
      return (value) => typeof value === "string";
    case "Number":
      return (value) => typeof value === "number";
    case "Boolean":
      return (value) => typeof value === "boolean";
    case "Null":
      return (value) => value === null;
    case "Literal":
      return (value) => value === ast.literal;
    case "Union":
      return ast.options?.mode === "oneOf" ? undefined : oneOf(ast.types);
    case "Arrays":
      return listOf(ast);
    case "Objects":
      return structOf(ast);
    default:
      return undefined;
  }
};

/** Makes a filter stop at the first issue, as `Schema.is` does. */
const plainly: SchemaAST.ParseOptions = {};

const filtersOf = (checks: ReadonlyArray<SchemaAST.Check<never>>): ReadonlyArray<SchemaAST.Filter<never>> =>
  checks.flatMap((check) => (check._tag === "Filter" ? [check] : filtersOf(check.checks)));

const listOf = ({ elements, rest }: SchemaAST.Arrays): Question | undefined => {
  const [item, ...tail] = rest;
  if (item === undefined || elements.length > 0 || tail.length > 0) return undefined;
  const fits = questionOf(item);
  return (value) => {
    if (!Array.isArray(value)) return false;
    // Uses an index, because `every` would skip a hole, and a hole is a missing value.
    for (let n = 0; n < value.length; n += 1) if (!fits(value[n])) return false;
    return true;
  };
};

interface Field {
  readonly name: string;
  readonly isOptional: boolean;
  readonly fits: Question;
}

const structOf = ({ indexSignatures, propertySignatures }: SchemaAST.Objects): Question | undefined => {
  if (indexSignatures.length > 0 || propertySignatures.length === 0) return undefined;
  const fields: Array<Field> = [];
  for (const { name, type } of propertySignatures) {
    if (typeof name !== "string" || name === "__proto__") return undefined;
    fields.push({ name, isOptional: SchemaAST.isOptional(type), fits: questionOf(type) });
  }
  return (value) => {
    if (!isObject(value)) return false;
    for (const { fits, isOptional, name } of fields) {
      const found = value[name];
      if (found === undefined && !(name in value) ? !isOptional : !fits(found)) return false;
    }
    return true;
  };
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const oneOf = (types: ReadonlyArray<SchemaAST.AST>): Question => {
  const plain = types.flatMap((it) => (it._tag === "Literal" && it.checks === undefined ? [it.literal] : []));
  if (plain.length === types.length) {
    const literals: ReadonlySet<unknown> = new Set(plain);
    // A set matches NaN, unlike a comparison. That makes no difference, because no literal of a schema is NaN.
    return (value) => literals.has(value);
  }
  const tagged = byTag(types);
  if (tagged !== undefined) return tagged;
  const questions = types.map(questionOf);
  return (value) => questions.some((fits) => fits(value));
};

/** Compiles a union whose members each have a different literal in the same field, which selects the member. */
const byTag = (types: ReadonlyArray<SchemaAST.AST>): Question | undefined => {
  for (const name of ["_tag", "kind"]) {
    const members = new Map<unknown, Question>();
    for (const type of types) {
      const tag = literalOf(type, name);
      if (tag !== undefined) members.set(tag, questionOf(type));
    }
    if (members.size === types.length) {
      return (value) => isObject(value) && members.get(value[name])?.(value) === true;
    }
  }
  return undefined;
};

const literalOf = (type: SchemaAST.AST, field: string): SchemaAST.LiteralValue | undefined => {
  if (type._tag !== "Objects") return undefined;
  const found = type.propertySignatures.find(({ name }) => name === field)?.type;
  return found?._tag === "Literal" && found.checks === undefined && !SchemaAST.isOptional(found)
    ? found.literal
    : undefined;
};
