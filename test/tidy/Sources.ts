/**
 * Reads TypeScript files with the compiler's own parser, so that a rule can tell code from a comment and from a string.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, posix, relative } from "node:path";
import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import * as is from "typescript/unstable/ast/is";
import { API } from "typescript/unstable/sync";

/** One import or re-export. */
export interface Import {
  readonly specifier: string;
  /** Erased when it runs: `import type`, `export type`. */
  readonly typeOnly: boolean;
  readonly line: number;
  /** The imported file of this repository, where the specifier is relative. */
  readonly target: string | undefined;
}

/** A named place on a line. */
export interface Place {
  readonly name: string;
  readonly line: number;
}

export interface Source {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
  /** The text with blanks for comments and for the contents of strings, templates and regular expressions. */
  readonly code: string;
  /** The text with blanks for everything but comments. */
  readonly comments: string;
  readonly imports: ReadonlyArray<Import>;
  readonly functions: ReadonlyArray<Place & { readonly lines: number }>;
  /** Exported declarations without a docstring directly before them. */
  readonly undocumented: ReadonlyArray<Place>;
  /** Casts other than `as const`. */
  readonly casts: ReadonlyArray<Place>;
  /** Top-level statements other than re-exports. */
  readonly declarations: ReadonlyArray<Place>;
}

/** A committed file of any kind. */
export interface TextFile {
  readonly path: string;
  readonly text: string;
}

/** The input of the rules. */
export interface Tree {
  readonly sources: ReadonlyArray<Source>;
  readonly files: ReadonlyArray<TextFile>;
}

/** The repository. */
export const repository = (root: string): Tree => {
  const files = walk(root, root).map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  const parsed = files.filter(({ path }) => /^(src|test|scripts)\/.*\.ts$/.test(path));
  return { files, sources: parse(join(root, "tsconfig.json"), root, parsed) };
};

/** Small trees that exist only as text: each is parsed like a separate repository. */
export const snippets = (trees: ReadonlyArray<Readonly<Record<string, string>>>): ReadonlyArray<Tree> => {
  const root = mkdtempSync(join(tmpdir(), "tidy-"));
  try {
    const all = trees.flatMap((tree, number) =>
      Object.entries(tree).map(([path, text]) => ({ path: `${number}/${path}`, text })),
    );
    for (const { path, text } of [...all, { path: "tsconfig.json", text: snippetConfig }]) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    const sources = parse(
      join(root, "tsconfig.json"),
      root,
      all.filter(({ path }) => path.endsWith(".ts")),
    );
    return trees.map((tree, number) => ({
      sources: sources
        .filter(({ path }) => path.startsWith(`${number}/`))
        .map((source) => below(source, `${number}/`.length)),
      files: Object.entries(tree).map(([path, text]) => ({ path, text })),
    }));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
};

const snippetConfig = JSON.stringify({
  compilerOptions: { noLib: true, noResolve: true, types: [], allowImportingTsExtensions: true, noEmit: true },
});

const below = (source: Source, length: number): Source => ({
  ...source,
  path: source.path.slice(length),
  imports: source.imports.map((imported) => ({ ...imported, target: imported.target?.slice(length) })),
});

const left = new Set(["node_modules", "dist", ".git", "coverage"]);

const walk = (root: string, folder: string): Array<string> =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !left.has(entry.name) && !/\.(tgz|log)$/.test(entry.name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return walk(root, path);
      return entry.isFile() ? [relative(root, path)] : [];
    });

const parse = (config: string, root: string, files: ReadonlyArray<TextFile>): ReadonlyArray<Source> => {
  const api = new API({ cwd: root });
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error(`the compiler does not open ${config}`);
    return files.map(({ path, text }) => {
      const file = project.program.getSourceFile(join(root, path));
      if (file === undefined) throw new Error(`${path} is not part of ${config}`);
      return source(path, text, file);
    });
  } finally {
    api.close();
  }
};

const source = (path: string, text: string, file: SourceFile): Source => {
  const lineAt = lineFinder(text);
  const nodes = everyNode(file);
  const literals = nodes.filter(isText).map((node): Span => [node.getStart(file), node.end]);
  const comments = commentSpans(text, literals);
  const statements = [...file.statements];
  return {
    path,
    text,
    code: blank(text, [...literals, ...comments]),
    comments: blank(text, complement(comments, text.length)),
    imports: statements.flatMap((statement) => importOf(path, statement, lineAt(statement.getStart(file)))),
    functions: nodes.filter(isFunction).map((node) => {
      const line = lineAt(node.getStart(file));
      return { name: nameOf(node, file), line, lines: lineAt(node.end) - line + 1 };
    }),
    undocumented: statements
      .filter((statement, index) => isExported(statement) && !isDocumented(statements, index, file, text))
      .map((statement) => ({ name: nameOf(statement, file), line: lineAt(statement.getStart(file)) })),
    casts: nodes
      .filter(is.isAsExpression)
      .map(({ type }) => ({ name: type.getText(file), line: lineAt(type.getStart(file)) }))
      .filter(({ name }) => name !== "const"),
    declarations: statements
      .filter((statement) => !(is.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined))
      .map((statement) => ({ name: nameOf(statement, file), line: lineAt(statement.getStart(file)) })),
  };
};

/** From and up to, in characters. */
type Span = readonly [number, number];

const everyNode = (root: Node): Array<Node> => {
  const nodes: Array<Node> = [];
  const visit = (node: Node): void => {
    nodes.push(node);
    node.forEachChild(visit);
  };
  visit(root);
  return nodes;
};

const textKinds = new Set([
  SyntaxKind.StringLiteral,
  SyntaxKind.NoSubstitutionTemplateLiteral,
  SyntaxKind.TemplateHead,
  SyntaxKind.TemplateMiddle,
  SyntaxKind.TemplateTail,
  SyntaxKind.RegularExpressionLiteral,
]);

const isText = (node: Node): boolean => textKinds.has(node.kind);

const isFunction = (node: Node): boolean =>
  is.isFunctionDeclaration(node) ||
  is.isFunctionExpression(node) ||
  is.isArrowFunction(node) ||
  is.isMethodDeclaration(node) ||
  is.isConstructorDeclaration(node) ||
  is.isGetAccessorDeclaration(node) ||
  is.isSetAccessorDeclaration(node);

/** Comments are what starts with a slash outside of literals. */
const commentSpans = (text: string, literals: ReadonlyArray<Span>): ReadonlyArray<Span> => {
  const ends = new Map(literals.map(([from, to]) => [from, to]));
  const spans: Array<Span> = [];
  let at = 0;
  while (at < text.length) {
    const literalEnd = ends.get(at);
    const close = text.startsWith("//", at) ? "\n" : text.startsWith("/*", at) ? "*/" : undefined;
    if (literalEnd !== undefined) {
      at = Math.max(literalEnd, at + 1);
    } else if (close !== undefined) {
      const found = text.indexOf(close, at + 2);
      const end = found < 0 ? text.length : found + (close === "\n" ? 0 : close.length);
      spans.push([at, end]);
      at = end;
    } else {
      at += 1;
    }
  }
  return spans;
};

const complement = (spans: ReadonlyArray<Span>, length: number): ReadonlyArray<Span> => {
  const starts = [0, ...spans.map(([, to]) => to)];
  const ends = [...spans.map(([from]) => from), length];
  return starts.map((from, index) => [from, ends[index] ?? length]);
};

/** The text with blanks in these spans; line breaks stay, so that lines keep their numbers. */
const blank = (text: string, spans: ReadonlyArray<Span>): string => {
  let at = 0;
  let kept = "";
  for (const [from, to] of [...spans].sort(([a], [b]) => a - b)) {
    kept += text.slice(at, from) + text.slice(Math.max(at, from), to).replace(/[^\n]/g, " ");
    at = Math.max(at, to);
  }
  return kept + text.slice(at);
};

/** Gives the line of a position, from 1. */
export const lineFinder = (text: string): ((position: number) => number) => {
  const breaks = [...text.matchAll(/\n/g)].map((match) => match.index);
  return (position) => {
    let low = 0;
    let high = breaks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((breaks[middle] ?? position) < position) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
};

const importOf = (path: string, statement: Node, line: number): ReadonlyArray<Import> => {
  const isImport = is.isImportDeclaration(statement);
  if (!isImport && !is.isExportDeclaration(statement)) return [];
  const module = statement.moduleSpecifier;
  if (module === undefined || !is.isStringLiteral(module)) return [];
  const specifier = module.text;
  const typeOnly = isImport
    ? statement.importClause?.phaseModifier === SyntaxKind.TypeKeyword
    : statement.isTypeOnly === true;
  const target = specifier.startsWith(".") ? posix.join(posix.dirname(path), specifier) : undefined;
  return [{ specifier, typeOnly, line, target }];
};

const isExported = (statement: Node): boolean =>
  (is.isVariableStatement(statement) ||
    is.isFunctionDeclaration(statement) ||
    is.isClassDeclaration(statement) ||
    is.isInterfaceDeclaration(statement) ||
    is.isTypeAliasDeclaration(statement)) &&
  statement.modifiers?.some(({ kind }) => kind === SyntaxKind.ExportKeyword) === true;

/** True if a docstring directly precedes it, or it only names the type of the preceding schema. */
const isDocumented = (statements: ReadonlyArray<Node>, index: number, file: SourceFile, text: string): boolean => {
  const [before, statement] = [statements[index - 1], statements[index]];
  if (statement === undefined) return false;
  const trivia = text.slice(statement.pos, statement.getStart(file)).replace(/(\s*\/\/ biome-ignore.*)+\s*$/, "");
  if (/\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.test(trivia)) return true;
  if (before === undefined || !/^export (type|interface)\b/.test(statement.getText(file))) return false;
  const name = nameOf(before, file);
  return name === nameOf(statement, file) || new RegExp(`\\btypeof ${name}\\.Type\\b`).test(statement.getText(file));
};

const nameOf = (node: Node, file: SourceFile): string => {
  const words = node.getText(file).match(/[A-Za-z_$#][\w$]*/g) ?? [];
  const keywords = new Set(["export", "default", "declare", "abstract", "async", "static", "readonly", "override"]);
  const kinds = new Set(["const", "let", "function", "class", "interface", "type", "get", "set"]);
  return words.find((word) => !keywords.has(word) && !kinds.has(word)) ?? basename(file.fileName);
};
