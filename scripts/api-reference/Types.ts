/**
 * Writes inferred types with the names that the package exports for them.
 */
import type { Node } from "typescript/unstable/ast";
import { isTypeAliasDeclaration } from "typescript/unstable/ast/is";
import {
  type Checker,
  type Symbol as Declared,
  NodeBuilderFlags,
  type Project,
  type Type,
} from "typescript/unstable/sync";

/** Maximum length of a type that is written in full. In a longer type, its parts are replaced by their names. */
const plainCharactersMax = 200;

const flags = NodeBuilderFlags.NoTruncation | NodeBuilderFlags.UseAliasDefinedOutsideCurrentScope;

/** A writer of inferred types. */
export interface Types {
  readonly inferred: (node: Node) => string;
  readonly returned: (node: Node) => string;
}

/**
 * Creates a writer.
 *
 * @param project the sources
 * @param exported exported types; `type A = typeof A.Type` is inferred as its fields and written as `A` again
 */
export const make = (project: Project, exported: ReadonlyArray<Declared>): Types => {
  const { checker } = project;
  const names = schemaTypes(project, exported);
  const write = (type: Type | undefined, node: Node): string => {
    if (type === undefined) throw new Error(`${node.getSourceFile().fileName}: no type at ${node.pos}`);
    const text = checker.typeToString(type, node, flags);
    return text.length <= plainCharactersMax ? text : replaceExpanded(text, names);
  };
  return {
    inferred: (node) => write(checker.getTypeAtLocation(node), node),
    returned: (node) => {
      const signature = checker.getSignatureFromDeclaration(node);
      return write(signature && checker.getReturnTypeOfSignature(signature), node);
    },
  };
};

/** The inferred text of each schema's type and its name, the longest text first. */
const schemaTypes = (project: Project, exported: ReadonlyArray<Declared>): ReadonlyArray<readonly [string, string]> =>
  exported
    .flatMap((symbol) => {
      const alias = symbol.declarations
        .flatMap((handle) => handle.resolve(project) ?? [])
        .find((node) => isTypeAliasDeclaration(node) && /^typeof [\w.]+\.Type$/.test(node.type.getText()));
      return alias === undefined ? [] : [[typeText(project.checker, symbol), symbol.name] as const];
    })
    .filter(([text, name]) => text.startsWith("{") && text !== name)
    .sort(([one], [other]) => other.length - one.length);

const typeText = (checker: Checker, symbol: Declared): string =>
  checker.typeToString(checker.getDeclaredTypeOfSymbol(symbol), undefined, flags | NodeBuilderFlags.InTypeAlias);

const replaceExpanded = (text: string, names: ReadonlyArray<readonly [string, string]>): string =>
  names.reduce((rest, [expanded, name]) => rest.replaceAll(expanded, name), text);
