/**
 * Makes one line of what a model or a tool says: nothing that could move a cursor or colour a terminal is left in it.
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
