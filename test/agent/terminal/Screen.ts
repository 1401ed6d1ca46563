/**
 * A small terminal: what stands on it after text, line feeds, and the three movements that a view may make.
 */
export class Screen {
  readonly #columns: number;
  readonly #rows: number;
  #lines: Array<string> = [""];
  #row = 0;
  #column = 0;

  constructor(columns: number, rows: number) {
    this.#columns = columns;
    this.#rows = rows;
  }

  /** Everything that was ever on it and was not erased, without blanks at the ends of lines. */
  get text(): string {
    return this.#lines
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  }

  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal reads control characters
    for (const [token] of text.matchAll(/\u001b\[(\d*)([ACJ])|[\s\S]/gu)) this.#take(token);
  }

  #take(token: string): void {
    const [, count = "", movement] = token.length > 1 ? (/\[(\d*)([ACJ])/.exec(token) ?? []) : [];
    const top = Math.max(0, this.#lines.length - this.#rows);
    if (movement === "A") this.#row = Math.max(top, this.#row - Number(count || 1));
    else if (movement === "C") this.#column += Number(count || 1);
    else if (movement === "J") {
      this.#lines.length = this.#row + 1;
      this.#lines[this.#row] = (this.#lines[this.#row] ?? "").slice(0, this.#column);
    } else if (token === "\n") this.#feed();
    else if (token === "\r") this.#column = 0;
    else this.#put(token);
  }

  #feed(): void {
    this.#row += 1;
    this.#column = 0;
    this.#lines[this.#row] ??= "";
  }

  #put(character: string): void {
    if (this.#column >= this.#columns) this.#feed();
    const line = (this.#lines[this.#row] ?? "").padEnd(this.#column);
    this.#lines[this.#row] = line.slice(0, this.#column) + character + line.slice(this.#column + character.length);
    this.#column += 1;
  }
}
