/**
 * Reads the entries of `paths`: what an operator lets clients ask of an upstream beside model requests.
 */

/** One entry of `paths`. */
export interface PathPattern {
  /** Undefined for every method. */
  readonly method: string | undefined;
  /** Fits a whole path without its version. */
  readonly path: RegExp;
}

/** The form of an entry, as a sentence has it. */
export const pathPatternForm =
  "METHOD /path, or /path for every method, where * stands for a text without a slash, as in GET /v1/files/*";

/** Maximum entries of one list. */
export const pathPatternsMax = 64;

/** Maximum length of an entry, in characters. */
const charactersMax = 256;

/** Fits every entry that can be read. */
export const pathPatternExpression = /^(?:(GET|HEAD|POST|PUT|PATCH|DELETE) )?((?:\/[\w.~:@*-]+)+)$/u;

/** Characters that `*` stands for. An escape is none of them: a server that decodes it may read another path. */
const anyText = "[\\w.~:@-]";

/** A segment that begins with `*` is not empty: `GET /v1/files/*` is no list of files. */
const sources: Readonly<Record<string, string>> = { "/*": `/${anyText}+`, "*": `${anyText}*`, ".": "\\." };

/**
 * Reads an entry.
 *
 * @returns undefined for a text of another form
 */
export const readPathPattern = (text: string): PathPattern | undefined => {
  const [, method, path] = pathPatternExpression.exec(text) ?? [];
  if (path === undefined || text.length > charactersMax || /\/\.+(?:\/|$)|\*\*/.test(path)) return undefined;
  const source = withoutVersion(path).replaceAll(/\/\*|[*.]/g, (found) => sources[found] ?? found);
  return { method, path: new RegExp(`^${source}$`) };
};

/** A path without the version that it may begin with. Base addresses have it or not, so it decides nothing. */
export const withoutVersion = (path: string): string => path.replace(/^\/v\d\w*(?=\/)/, "");

/** Says what is wrong with a list of entries; undefined for a list that can be used. */
export const problemOfPaths = (
  paths: ReadonlyArray<string>,
): { readonly at: number | undefined; readonly message: string } | undefined => {
  if (paths.length > pathPatternsMax)
    return { at: undefined, message: `expected at most ${pathPatternsMax} paths, got ${paths.length}` };
  const at = paths.findIndex((path) => readPathPattern(path) === undefined);
  return at === -1 ? undefined : { at, message: `expected ${pathPatternForm}` };
};
