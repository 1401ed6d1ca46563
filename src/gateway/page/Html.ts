/**
 * Builds HTML of text that is not trusted: a value in a template is escaped, unless it is HTML itself.
 *
 * Every label of a record (provider, model, tool, call, code, finish reason) came from outside. Attributes are always
 * written in double quotes, so that one escape is right for text and attributes alike.
 */

/** A piece of HTML that is safe to put into another one. */
export class Html {
  /** The markup. */
  readonly markup: string;
  constructor(markup: string) {
    this.markup = markup;
  }
}

/** What a template takes. Nothing stands for `undefined` and `false`. */
export type HtmlValue = Html | string | number | undefined | false | ReadonlyArray<HtmlValue>;

/**
 * A template of HTML: `html\`<b title="${label}">${label}</b>\``.
 *
 * @returns the markup, every value in it escaped
 */
export const html = (parts: TemplateStringsArray, ...values: ReadonlyArray<HtmlValue>): Html =>
  new Html(parts.map((part, index) => `${part}${markupOf(values[index])}`).join(""));

/** Nothing. */
export const none: Html = new Html("");

/**
 * A label of a record, kept apart from the direction of the text around it.
 *
 * @param text any text
 */
export const label = (text: string): Html => html`<bdi class="label">${text}</bdi>`;

const markupOf = (value: HtmlValue): string => {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.markup;
  if (typeof value === "string") return escaped(value);
  return typeof value === "number" ? escaped(String(value)) : value.map(markupOf).join("");
};

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;",
};

const escaped = (text: string): string =>
  printable(text).replace(/[&<>"'`]/g, (character) => entities[character] ?? character);

/** Control characters and halves of a character have no place in a document; direction overrides would turn its words round. */
const printable = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, (it) => (it === "\n" || it === "\t" ? it : "\ufffd"));
