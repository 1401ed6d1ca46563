/**
 * Lists every small change that a set of standard operators can make to a source file. The places come from the syntax tree, without any
 * manual choice. Types, imports and text are not changed.
 */
import { type Node, parseSync } from "oxc-parser";

/** One change of a source file. */
export interface Mutation {
  readonly path: string;
  /** Line number, from 1. */
  readonly line: number;
  /** The line's text without its indent. It identifies the place even after lines above have moved it. */
  readonly on: string;
  readonly operator: Operator;
  /** The removed text, from `start` to `end` in UTF-16 code units. */
  readonly find: string;
  readonly start: number;
  readonly end: number;
  readonly replace: string;
}

/** The kinds of change. */
export type Operator = "condition" | "comparison" | "logic" | "arithmetic" | "constant" | "statement" | "call";

const comparisons: Readonly<Record<string, string>> = {
  "===": "!==",
  "!==": "===",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
};
const arithmetic: Readonly<Record<string, string>> = { "+": "-", "-": "+", "*": "/", "/": "*", "%": "*" };
const assignments: Readonly<Record<string, string>> = { "+=": "-=", "-=": "+=", "&&=": "||=", "||=": "&&=" };
const methods: ReadonlyMap<string, string> = new Map([
  ["some", "every"],
  ["every", "some"],
  ["startsWith", "endsWith"],
  ["endsWith", "startsWith"],
  ["min", "max"],
  ["max", "min"],
]);
/** Methods whose call is replaced by its receiver. */
const dropped = new Set(["filter", "slice", "toSorted", "toReversed", "trim", "trimEnd", "toLowerCase", "concat"]);

type Change = readonly [operator: Operator, from: { readonly start: number; readonly end: number }, to: string];

const isText = (node: Node): boolean =>
  node.type === "TemplateLiteral" || (node.type === "Literal" && typeof node.value === "string");

const changesOf = (node: Node, text: (of: Node) => string): ReadonlyArray<Change> => {
  switch (node.type) {
    case "IfStatement":
      return [
        ["condition", node.test, "true"],
        ["condition", node.test, "false"],
      ];
    case "ConditionalExpression":
      return [["condition", node.test, `!(${text(node.test)})`]];
    case "UnaryExpression":
      return node.operator === "!" ? [["condition", node, text(node.argument)]] : [];
    case "LogicalExpression": {
      const [left, right] = [text(node.left), text(node.right)];
      if (node.operator === "??") return [["logic", node, `(${right})`]];
      return [["logic", node, `((${left}) ${node.operator === "&&" ? "||" : "&&"} (${right}))`]];
    }
    case "BinaryExpression": {
      const [left, right] = [text(node.left), text(node.right)];
      const other = comparisons[node.operator];
      if (other !== undefined) return [["comparison", node, `${left} ${other} ${right}`]];
      const sum = arithmetic[node.operator];
      if (sum === undefined || isText(node.left) || isText(node.right)) return [];
      return [["arithmetic", node, `${left} ${sum} ${right}`]];
    }
    case "AssignmentExpression": {
      const other = assignments[node.operator];
      return other === undefined ? [] : [["arithmetic", node, `${text(node.left)} ${other} ${text(node.right)}`]];
    }
    case "UpdateExpression":
      return [["arithmetic", node, text(node).replace(/\+\+|--/, (it) => (it === "++" ? "--" : "++"))]];
    case "Literal":
      if (typeof node.value === "boolean") return [["constant", node, String(!node.value)]];
      return typeof node.value === "number" ? [["constant", node, String(node.value + 1)]] : [];
    case "ExpressionStatement":
      return text(node).startsWith("super(") ? [] : [["statement", node, ";"]];
    case "CallExpression": {
      const { callee } = node;
      if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return [];
      const other = methods.get(callee.property.name);
      if (other !== undefined) return [["call", callee.property, other]];
      return dropped.has(callee.property.name) ? [["call", node, text(callee.object)]] : [];
    }
    default:
      return [];
  }
};

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

/** The children of a node, without types: a mutated type has no effect at run time. */
const childrenOf = (node: Node): ReadonlyArray<Node> => {
  if (node.type.startsWith("TS") && !("expression" in node)) return [];
  if (node.type === "ImportDeclaration" || node.type === "ExportAllDeclaration") return [];
  return Object.entries(node).flatMap(([key, value]) =>
    key === "typeAnnotation" || key === "typeArguments" || key === "returnType"
      ? []
      : [value].flat().filter((it): it is Node => isNode(it)),
  );
};

/**
 * Lists every mutation of a file, in the order of the syntax tree.
 *
 * @param path the file's path; its extension determines the language
 * @param text the source
 * @throws Error if the source does not parse
 */
export const mutationsOf = (path: string, text: string): ReadonlyArray<Mutation> => {
  const { errors, program } = parseSync(path, text);
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`);
  const lines = text.split("\n");
  const found: Array<Mutation> = [];
  const walk = (node: Node): void => {
    for (const [operator, { end, start }, replace] of changesOf(node, (of) => text.slice(of.start, of.end))) {
      const line = text.slice(0, start).split("\n").length;
      const on = (lines[line - 1] ?? "").trim();
      found.push({ path, line, on, operator, find: text.slice(start, end), start, end, replace });
    }
    for (const child of childrenOf(node)) walk(child);
  };
  walk(program);
  return found;
};

/**
 * Draws a sample of mutations, all with the same probability.
 *
 * @param random returns numbers in [0, 1)
 */
export const sampleOf = (
  all: ReadonlyArray<Mutation>,
  count: number,
  random: () => number,
): ReadonlyArray<Mutation> => {
  const left = [...all];
  return Array.from({ length: Math.min(count, left.length) }, () =>
    left.splice(Math.floor(random() * left.length), 1),
  ).flat();
};
