/**
 * Reads the API reference from the declarations and docstrings of the sources: every export of every entry point.
 */
import { join, posix } from "node:path";
import { type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import { isSourceFile } from "typescript/unstable/ast/is";
import { API, type Checker, type Symbol as Declared, type Project, SymbolFlags } from "typescript/unstable/sync";
import { type Docstring, docstringOf } from "./Docstring.ts";
import { format } from "./Format.ts";
import { moduleComment } from "./ModuleComment.ts";
import { type Page, pages } from "./Page.ts";
import { signatureOf } from "./Signature.ts";
import * as Types from "./Types.ts";

/** An export on its page, or a reference to the page that already shows it. */
export interface Entry {
  readonly name: string;
  readonly docstring: Docstring;
  /** Path of its source, from the root of the repository. */
  readonly source: string;
  /** Empty for a module. */
  readonly signature: string;
  /** The exports of a module. */
  readonly members: ReadonlyArray<Entry>;
  /** The page and the name that already show the same declaration. */
  readonly same: { readonly page: Page; readonly name: string } | undefined;
}

/** An entry point with its exports. */
export interface Chapter {
  readonly page: Page;
  readonly docstring: Docstring;
  readonly entries: ReadonlyArray<Entry>;
}

/**
 * Reads the sources.
 *
 * @param root the root of the repository, with a trailing slash
 * @throws Error if an entry point or a leading export of a page does not exist
 */
export const read = (root: string): ReadonlyArray<Chapter> => {
  const api = new API({ cwd: root });
  try {
    const project = api.updateSnapshot({ openProjects: [join(root, "tsconfig.json")] }).getProjects()[0];
    if (project === undefined) throw new Error("tsconfig.json is not a project");
    const modules = pages(root).map((page) => ({ page, ...moduleOf(project, join(root, page.source)) }));
    const types = Types.make(
      project,
      modules.flatMap(({ exported }) => exported.flatMap((one) => findDeclarations(project, one))),
    );
    const reader: Reader = { root, project, types, shown: new Map() };
    return formatSignatures(modules.map(({ exported, file, page }) => buildChapter(reader, page, file, exported)));
  } finally {
    api.close();
  }
};

interface Reader {
  readonly root: string;
  readonly project: Project;
  readonly types: Types.Types;
  /** The page and name of each declaration that is already shown, by its position in the sources. */
  readonly shown: Map<string, { readonly page: Page; readonly name: string }>;
}

interface Module {
  readonly file: SourceFile;
  readonly exported: ReadonlyArray<Declared>;
}

const moduleOf = ({ checker, program }: Project, path: string): Module => {
  const file = program.getSourceFile(path);
  const symbol = file && checker.getSymbolAtLocation(file);
  if (file === undefined || symbol === undefined) throw new Error(`${path} is not a module of tsconfig.json`);
  return { file, exported: checker.getExportsOfModule(symbol) };
};

/** The declarations behind an export: a single one, or all exports of a module. */
const findDeclarations = (project: Project, exported: Declared): ReadonlyArray<Declared> => {
  const symbol = resolveAlias(project.checker, exported);
  const [node] = symbol.declarations;
  return node?.kind === SyntaxKind.SourceFile
    ? project.checker.getExportsOfModule(symbol).map((member) => resolveAlias(project.checker, member))
    : [symbol];
};

const resolveAlias = (checker: Checker, exported: Declared): Declared =>
  (exported.flags & SymbolFlags.Alias) === 0 ? exported : checker.getAliasedSymbol(exported);

const buildChapter = (reader: Reader, page: Page, file: SourceFile, exported: ReadonlyArray<Declared>): Chapter => {
  for (const name of page.lead) {
    if (!exported.some((one) => one.name === name)) throw new Error(`${page.specifier} exports no ${name}`);
  }
  const rank = ({ name }: Declared): number => (page.lead.includes(name) ? page.lead.indexOf(name) : page.lead.length);
  const ordered = exported.toSorted((one, other) => rank(one) - rank(other));
  return {
    page,
    docstring: ofModule(file),
    entries: ordered.flatMap((symbol) => buildEntries(reader, page, symbol, symbol.name)),
  };
};

const buildEntries = (reader: Reader, page: Page, exported: Declared, name: string): ReadonlyArray<Entry> => {
  const { project, root, shown, types } = reader;
  const { checker } = project;
  const symbol = resolveAlias(checker, exported);
  const nodes = symbol.declarations.flatMap((handle) => handle.resolve(project) ?? []);
  const [node] = nodes;
  if (node === undefined) throw new Error(`${page.specifier} exports ${name}, which is declared nowhere`);
  const file = node.getSourceFile();
  const docstring = isSourceFile(node) ? ofModule(node) : findDocstring(checker, exported, symbol);
  if (docstring.tags.some((tag) => tag.name === "internal")) return [];
  const place = `${file.fileName}:${node.pos}`;
  const source = posix.relative(root, file.fileName);
  const same = shown.get(place);
  if (same !== undefined) return [{ name, docstring, source, signature: "", members: [], same }];
  shown.set(place, { page, name });
  // A namespace with the name of a class holds that service's types.
  const own = nodes.filter(({ kind }) => kind !== SyntaxKind.SourceFile && kind !== SyntaxKind.ModuleDeclaration);
  const members = own.length === nodes.length ? [] : membersOf(reader, page, symbol, name);
  const signature = own.map((one) => signatureOf(types, one, name.split(".").at(-1) ?? name)).join("\n");
  return [{ name, docstring, source, signature, members, same: undefined }];
};

const membersOf = (reader: Reader, page: Page, symbol: Declared, name: string): ReadonlyArray<Entry> =>
  reader.project.checker
    .getExportsOfModule(symbol)
    // The exports of a class include its prototype.
    .filter((member) => (member.flags & SymbolFlags.Prototype) === 0 && !isStatic(member))
    .flatMap((member) => buildEntries(reader, page, member, `${name}.${member.name}`));

const isStatic = ({ flags }: Declared): boolean => (flags & (SymbolFlags.Property | SymbolFlags.Method)) !== 0;

const ofModule = ({ text }: SourceFile): Docstring => ({ text: moduleComment(text), tags: [] });

/** The declaration's docstring, or that of the export if the declaration has none, as in `export { a as b }`. */
const findDocstring = (checker: Checker, exported: Declared, symbol: Declared): Docstring => {
  const own = docstringOf(checker, symbol);
  return own.text === "" ? docstringOf(checker, exported) : own;
};

/** Formats all signatures in a single run of the formatter. */
const formatSignatures = (chapters: ReadonlyArray<Chapter>): ReadonlyArray<Chapter> => {
  const texts = new Set<string>();
  const collect = ({ members, signature }: Entry): void => {
    if (signature !== "") texts.add(signature);
    members.forEach(collect);
  };
  for (const { entries } of chapters) entries.forEach(collect);
  const results = format([...texts]);
  const pretty = (one: Entry): Entry => ({
    ...one,
    signature: results.get(one.signature) ?? "",
    members: one.members.map(pretty),
  });
  return chapters.map((one) => ({ ...one, entries: one.entries.map(pretty) }));
};

/** The entries of a chapter, including modules and their members. */
export const flatten = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> =>
  entries.flatMap((one) => [one, ...flatten(one.members)]);
