/**
 * The public signature of a declaration, copied from its source: without bodies, and without private and `@internal` members.
 */
import {
  type ClassDeclaration,
  type Node,
  type ParameterDeclaration,
  SyntaxKind,
  type VariableDeclaration,
} from "typescript/unstable/ast";
import {
  isArrowFunction,
  isClassDeclaration,
  isConstructorDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isGetAccessorDeclaration,
  isIdentifier,
  isMethodDeclaration,
  isPropertyDeclaration,
  isTypeReferenceNode,
  isVariableDeclaration,
} from "typescript/unstable/ast/is";
import type { Types } from "./Types.ts";

/** Maximum lines of a value's source in a signature. For a longer value its type is shown. */
const sourceLinesMax = 120;

/**
 * Creates the signature as TypeScript that a formatter can parse.
 *
 * @param declaration a function, constant, class, interface or type
 * @param name the name under which it is exported
 */
export const signatureOf = (types: Types, declaration: Node, name: string): string => {
  if (isVariableDeclaration(declaration)) return constant(types, declaration, name);
  if (isFunctionDeclaration(declaration)) return `declare function ${name}${callable(types, declaration, ": ")};`;
  if (isClassDeclaration(declaration)) return classOf(types, declaration);
  return publishedText(declaration);
};

const constant = (types: Types, node: VariableDeclaration, name: string): string => {
  const { initializer, type } = node;
  const variable = name === "default" ? "default_" : name;
  if (type !== undefined) return `declare const ${variable}: ${publishedText(type)};`;
  if (initializer !== undefined && (isArrowFunction(initializer) || isFunctionExpression(initializer)))
    return `declare const ${variable}: ${callable(types, initializer, " => ")};`;
  const text = initializer === undefined ? "" : publishedText(initializer);
  const readable = text.startsWith("Schema.") || (/^[\d"'[{-]/.test(text) && !text.includes("=>"));
  if (readable && text.split("\n").length <= sourceLinesMax) return `const ${variable} = ${text};`;
  return `declare const ${variable}: ${types.inferred(node)};`;
};

const classOf = (types: Types, node: ClassDeclaration): string => {
  const members = node.members.filter((member) => !isHidden(member));
  const body = members.map((member) => memberOf(types, member)).filter((text) => text !== "");
  const head = publishedText(node, node.members.pos);
  return `declare ${head}\n${body.join("\n")}\n}`;
};

const memberOf = (types: Types, node: Node): string => {
  const comment = commentOf(node);
  if (isConstructorDeclaration(node)) return `${comment}constructor(${parameters(types, node.parameters)});`;
  if (isMethodDeclaration(node)) return `${comment}${head(node)}${callable(types, node, ": ")};`;
  if (isGetAccessorDeclaration(node)) return `${comment}readonly ${node.name.getText()}: ${returned(types, node)};`;
  if (!isPropertyDeclaration(node)) return "";
  const optional = node.postfixToken === undefined ? "" : node.postfixToken.getText();
  const { initializer } = node;
  if (node.type === undefined && initializer !== undefined && isArrowFunction(initializer))
    return `${comment}${head(node)}${optional}: ${callable(types, initializer, " => ")};`;
  const type = node.type === undefined ? types.inferred(node) : publishedText(node.type);
  return `${comment}${head(node)}${optional}: ${type};`;
};

interface Callable extends Node {
  readonly parameters: ReadonlyArray<ParameterDeclaration>;
  readonly typeParameters?: ReadonlyArray<Node>;
  readonly type?: Node;
}

const callable = (types: Types, node: Callable, arrow: string): string => {
  const generic = node.typeParameters?.map((parameter) => parameter.getText()).join(", ");
  return `${generic === undefined ? "" : `<${generic}>`}(${parameters(types, node.parameters)})${arrow}${returned(types, node)}`;
};

/** Parameters from the caller's view: a default makes one optional, and a destructured one is named after its type. */
const parameters = (types: Types, nodes: ReadonlyArray<ParameterDeclaration>): string => {
  const unnamed = documentedNames(nodes);
  return nodes
    .map((node) => {
      const type = node.type === undefined ? types.inferred(node) : publishedText(node.type);
      const optional = node.questionToken !== undefined || node.initializer !== undefined ? "?" : "";
      return `${node.dotDotDotToken === undefined ? "" : "..."}${parameterName(node, unnamed)}${optional}: ${type}`;
    })
    .join(", ");
};

/** Names that only the docstring contains: those of destructured parameters. */
const documentedNames = (nodes: ReadonlyArray<ParameterDeclaration>): Array<string> => {
  let owner: Node | undefined = nodes[0]?.parent;
  while (owner !== undefined && owner.jsDoc === undefined && owner.kind !== SyntaxKind.SourceFile) owner = owner.parent;
  const named = new Set(nodes.flatMap(({ name }) => (isIdentifier(name) ? [name.text] : [])));
  const tags = owner === undefined ? [] : [...commentOf(owner).matchAll(/@param\s+(\w+)/g)];
  return [...new Set(tags.map(([, name = ""]) => name))].filter((name) => !named.has(name));
};

const parameterName = ({ name, type }: ParameterDeclaration, unnamed: Array<string>): string => {
  if (isIdentifier(name)) return name.text.replace(/^_/, "");
  const documented = unnamed.shift();
  if (documented !== undefined) return documented;
  if (type === undefined || !isTypeReferenceNode(type)) return "options";
  const [last = "options"] = type.typeName.getText().split(".").slice(-1);
  return last.charAt(0).toLowerCase() + last.slice(1);
};

const returned = (types: Types, node: Callable): string => {
  return node.type === undefined ? types.returned(node) : publishedText(node.type);
};

/** The modifiers and the name of a class member. */
const head = (node: Node & { readonly name: Node }): string =>
  node
    .getSourceFile()
    .text.slice(node.getStart(), node.name.getEnd())
    .replace(/\b(?:async|override) /g, "");

const isHidden = (node: Node): boolean => {
  const text = node.getSourceFile().text.slice(node.getStart(), node.getEnd());
  return (
    /^(?:(?:static|readonly|override|async|get|set) )*(?:private|protected|#|\{)/.test(text) ||
    commentOf(node).includes("@internal")
  );
};

const commentOf = (node: Node): string => {
  const [comment] = node.jsDoc?.slice(-1) ?? [];
  return comment === undefined ? "" : `${node.getSourceFile().text.slice(comment.pos, comment.end)}\n`;
};

/** The text of a node, or its beginning, without `@internal` members and without `export`. */
const publishedText = (node: Node, end = node.getEnd()): string => {
  const text = node.getSourceFile().text;
  const cuts: Array<readonly [number, number]> = [];
  const visit = (child: Node): void => {
    if (child.pos >= end) return;
    if (commentOf(child).includes("@internal")) cuts.push([child.pos, child.end]);
    else child.forEachChild(visit);
  };
  node.forEachChild(visit);
  let kept = "";
  let at = node.getStart();
  for (const [from, to] of cuts) {
    kept += text.slice(at, from);
    at = to;
  }
  return (kept + text.slice(at, end)).replace(/^export\s+(?:declare\s+)?/, "");
};
