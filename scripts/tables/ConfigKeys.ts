/**
 * Prints the keys of a gateway's configuration file from its published schema.
 */
import { Schema } from "effect";
import { jsonSchema } from "../../src/gateway/config/ConfigSchema.ts";
import { entries } from "../../src/gateway/config/Options.ts";
import { code, table } from "./Markdown.ts";

/** The text of docs/gateway.schema.json, which editors read. */
export const schemaText = (): string => `${JSON.stringify(jsonSchema(), null, 2)}\n`;

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: ReadonlyArray<string | number>;
  readonly anyOf?: ReadonlyArray<Node>;
  readonly items?: Node;
  readonly properties?: { readonly [name: string]: Node };
  readonly additionalProperties?: Node | boolean;
}

const Node: Schema.Codec<Node> = Schema.Struct({
  type: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  default: Schema.optionalKey(Schema.Unknown),
  enum: Schema.optionalKey(Schema.Array(Schema.Union([Schema.String, Schema.Finite]))),
  anyOf: Schema.optionalKey(Schema.Array(Schema.suspend((): Schema.Codec<Node> => Node))),
  items: Schema.optionalKey(Schema.suspend((): Schema.Codec<Node> => Node)),
  properties: Schema.optionalKey(
    Schema.Record(
      Schema.String,
      Schema.suspend((): Schema.Codec<Node> => Node),
    ),
  ),
  additionalProperties: Schema.optionalKey(
    Schema.Union([Schema.Boolean, Schema.suspend((): Schema.Codec<Node> => Node)]),
  ),
});

/** Flags that set exactly one key, by key. */
const flagOf = new Map(
  entries.flatMap(({ flag, form, key }) =>
    key === undefined || flag === undefined || form === "pairs" ? [] : [[key.join("."), { flag, form }] as const],
  ),
);

/** The flags that the table of keys describes. */
export const keyedFlags: ReadonlySet<string> = new Set([...flagOf.values()].map(({ flag }) => flag));

/** Prints a row for each key: its flag, its type, its default and its meaning. */
export const configTable = (): string =>
  table(["key", "flag", "holds", "default", "meaning"], rows("", Schema.decodeUnknownSync(Node)(jsonSchema())));

const rows = (path: string, { additionalProperties, properties = {} }: Node): ReadonlyArray<ReadonlyArray<string>> => [
  ...Object.entries(properties).flatMap(([name, node]) => rowOf(path === "" ? name : `${path}.${name}`, node)),
  ...(typeof additionalProperties === "object" ? nestedRows(`${path}.NAME`, additionalProperties) : []),
];

/** The rows below a name, which contains an object or a list of objects. */
const nestedRows = (path: string, node: Node): ReadonlyArray<ReadonlyArray<string>> => {
  if (node.properties !== undefined) return rows(path, node);
  return node.items?.properties === undefined ? [] : rows(`${path}[]`, node.items);
};

const rowOf = (path: string, node: Node): ReadonlyArray<ReadonlyArray<string>> => [
  [code(path), flagCell(path), kindOf(node), defaultOf(path, node), node.description ?? ""],
  ...rows(path, node),
];

const flagCell = (path: string): string => {
  const found = flagOf.get(path);
  return found === undefined ? "" : code(`--${found.flag}${found.form === "on_off" ? " on | off" : ""}`);
};

const defaultOf = (path: string, { default: byDefault }: Node): string => {
  if (byDefault === undefined || (Array.isArray(byDefault) && byDefault.length === 0)) return "";
  const from = entries.find(({ key }) => key?.join(".") === path)?.from;
  return `${code(String(byDefault))}${from === undefined ? "" : `: ${from}`}`;
};

const kindOf = ({ anyOf, enum: words, items, type }: Node): string => {
  if (words !== undefined) return words.map((it) => code(String(it))).join(" · ");
  if (items !== undefined) return `list of ${kindOf(items)}`;
  if (anyOf !== undefined) return [...new Set(anyOf.map(kindOf))].join(" or ");
  return type === "integer" ? "whole number" : (type ?? "");
};
