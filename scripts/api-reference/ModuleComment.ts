/**
 * Reads the comment at the head of a file, which is its module's docstring.
 */

/**
 * Extracts the module comment of a source.
 *
 * @param text the source
 * @returns its Markdown; empty if the file starts with something else
 */
export const moduleComment = (text: string): string => {
  const [, comment = "", rest = ""] = /^\s*\/\*\*([\s\S]*?)\*\/(\s*)/.exec(text) ?? [];
  const next = text.slice((/^\s*\/\*\*[\s\S]*?\*\/\s*/.exec(text) ?? [""])[0].length);
  // A comment directly above a declaration belongs to that declaration.
  if (!rest.includes("\n\n") && /^(?:export (?!\*|\{|type \{)|const |declare )/.test(next)) return "";
  return comment
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n")
    .trim();
};
