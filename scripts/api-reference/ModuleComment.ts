/**
 * The comment at the head of a file, which is the docstring of its module.
 */

/**
 * Reads it.
 *
 * @param text a source
 * @returns its Markdown; empty where the file begins with something else
 */
export const moduleComment = (text: string): string => {
  const [, comment = "", rest = ""] = /^\s*\/\*\*([\s\S]*?)\*\/(\s*)/.exec(text) ?? [];
  const next = text.slice((/^\s*\/\*\*[\s\S]*?\*\/\s*/.exec(text) ?? [""])[0].length);
  // A comment that stands right at a declaration is that declaration's.
  if (!rest.includes("\n\n") && /^(?:export (?!\*|\{|type \{)|const |declare )/.test(next)) return "";
  return comment
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n")
    .trim();
};
