/**
 * Makes plain text of what a model or a tool says: without characters that move a cursor or colour a terminal.
 */

/** Longest line, in characters. */
export const lineCharactersMax = 100;

/** The text in one line, cut to `max` characters. */
export const oneLine = (text: string, max = lineCharactersMax): string => {
  const flat = harmless(text).replace(/\s+/g, " ").trim();
  return flat.length <= max ? flat : `${flat.slice(0, max - 1)}…`;
};

/** The text without control characters but line feeds and tabs: a model must not steer the terminal. */
export const harmless = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out
  text.replace(/\u001b\[[0-?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "");

/**
 * Breaks a text between words.
 *
 * @param columns width of a line
 * @param indent spaces before every line but the first
 */
export const wrapped = (text: string, columns: number, indent: number): string => {
  const lines: Array<string> = [];
  const start = /^ */.exec(text)?.[0] ?? "";
  let line = start;
  for (const [index, word] of text.slice(start.length).split(" ").entries()) {
    if (index === 0) {
      line += word;
      continue;
    }
    const space = line === "" ? "" : " ";
    if (line.trim() !== "" && line.length + space.length + word.length > columns) {
      lines.push(line);
      line = `${" ".repeat(indent)}${word}`;
    } else line += `${space}${word}`;
  }
  return [...lines, line].join("\n");
};
