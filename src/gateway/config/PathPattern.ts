/**
 * Parses the entries of `paths`: the requests besides model requests that an operator permits.
 */

/** A parsed entry of `paths`. */
export interface PathPattern {
  /** The permitted method; undefined for all methods. */
  readonly method: string | undefined;
  /** Matches a complete path without its version. */
  readonly path: RegExp;
}

/** Describes the form of an entry, as part of an error message. */
export const pathPatternForm =
  "METHOD /path, or /path for every method, in which * matches any text without a slash, as in GET /v1/files/*";

/** Maximum number of entries in a list. */
export const pathPatternsMax = 64;

/** Maximum length of an entry, in characters. */
const charactersMax = 256;

/** Matches every valid entry. */
export const pathPatternExpression = /^(?:(GET|HEAD|POST|PUT|PATCH|DELETE) )?((?:\/[\w.~:@*-]+)+)$/u;

/** Characters that `*` matches. Percent escapes are excluded, because a server that decodes them might see another path. */
const anyText = "[\\w.~:@-]";

/** A `*` at the start of a segment matches at least one character: `GET /v1/files/*` does not permit listing the files. */
const sources: Readonly<Record<string, string>> = { "/*": `/${anyText}+`, "*": `${anyText}*`, ".": "\\." };

/**
 * Parses an entry.
 *
 * @returns undefined if the text is not a valid entry
 */
export const readPathPattern = (text: string): PathPattern | undefined => {
  const [, method, path] = pathPatternExpression.exec(text) ?? [];
  if (path === undefined || text.length > charactersMax || /\/\.+(?:\/|$)|\*\*/.test(path)) return undefined;
  const source = withoutVersion(path).replaceAll(/\/\*|[*.]/g, (found) => sources[found] ?? found);
  return { method, path: new RegExp(`^${source}$`) };
};

/** Removes the version at the start of a path. A base address may already contain the version, so permissions ignore it. */
export const withoutVersion = (path: string): string => path.replace(/^\/v\d\w*(?=\/)/, "");

/** Describes the first problem of a list; undefined if it is valid. */
export const problemOfPaths = (
  paths: ReadonlyArray<string>,
): { readonly at: number | undefined; readonly message: string } | undefined => {
  if (paths.length > pathPatternsMax)
    return { at: undefined, message: `expected at most ${pathPatternsMax} paths, got ${paths.length}` };
  const at = paths.findIndex((path) => readPathPattern(path) === undefined);
  return at === -1 ? undefined : { at, message: `expected ${pathPatternForm}` };
};
