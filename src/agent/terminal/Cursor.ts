/**
 * Computes where the cursor of a terminal stands behind a text, so that withdrawn text can be erased from the screen.
 */

/** A position, counted from the place where the text began. */
export interface Position {
  readonly row: number;
  readonly column: number;
}

/** The columns of a code point: two for East Asian and emoji, none for combining marks. */
const widthOf = (character: string): number => {
  if (/\p{Mark}|\u200d|\ufe0f/u.test(character)) return 0;
  return /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
    character,
  )
    ? 2
    : 1;
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const colours = /\u001b\[[0-9;]*m/g;

/**
 * Where the cursor stands behind a text.
 *
 * @param text with colours, without anything else that moves a cursor
 * @param from where it stood before
 * @param columns width of the terminal
 */
export const after = (text: string, from: Position, columns: number): Position => {
  let { column, row } = from;
  for (const character of text.replace(colours, "")) {
    if (character === "\n") {
      row += 1;
      column = 0;
    } else if (character === "\t") column = Math.min(columns, (Math.floor(column / 8) + 1) * 8);
    else {
      const width = widthOf(character);
      // A terminal breaks the line only when the next character comes.
      if (column + width > columns) {
        row += 1;
        column = 0;
      }
      column += width;
    }
  }
  return { row, column };
};
